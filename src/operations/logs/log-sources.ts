import { readLogName } from '../../diagnosis/log-names.ts';
import { UserError } from '../../domain/user-error.ts';

/** One log: a file on a node, or on this machine where there is none; `-` is standard input. */
export type LogSource = {
  /** Its rank, where the name or the order of names says it. */
  readonly rank: number | undefined;
  /** Node of the cluster file that the file lies on. */
  readonly node: string | undefined;
  readonly path: string;
  /** What the log is called: as the user named it, else the node, else the role by its order. */
  readonly name: string;
  /** As the user wrote it, less the name. */
  readonly text: string;
};

const HINT =
  '--log head=spark-a:/home/aurora/sglang-head.log --log worker=spark-b:/home/aurora/sglang-worker.log';

/** Behind every rank. */
const LAST = Number.MAX_SAFE_INTEGER;

type Read = {
  readonly given: string | undefined;
  readonly place: RegExpExecArray | null;
  readonly rest: string;
  readonly rank: number | undefined;
};

/**
 * `[NAME=]FILE` or `…=NODE:PATH`. A name is a role (head, worker, worker2), a rank (0, rank1), what else wrote it
 * (client, launcher, dmesg, worker-dmesg, docker …), or a node's; without names the order counts. Throws a UserError
 * for a rank or a name that is given twice.
 */
export function logSources(texts: readonly string[]): readonly LogSource[] {
  const taken = new Set<number>();
  const read = texts.map((text): Read => {
    const match = /^([A-Za-z0-9][\w.-]*)=(.*)$/s.exec(text);
    const rest = match?.[2] ?? text;
    if (rest === '') throw new UserError('bad-input', `--log ${text} names no file`, HINT);
    const rank = match?.[1] === undefined ? undefined : readLogName(match[1]).rank;
    if (rank !== undefined) {
      if (taken.has(rank)) throw new UserError('bad-input', `--log names rank ${rank} twice`, HINT);
      taken.add(rank);
    }
    return { given: match?.[1], place: /^([A-Za-z0-9][\w.-]*):(.+)$/s.exec(rest), rest, rank };
  });
  const found = read.map(({ given, place, rest, rank }): LogSource => {
    const own = given === undefined ? nextFree(taken) : rank;
    if (own !== undefined) taken.add(own);
    const role = own === 0 ? 'head' : own === 1 ? 'worker' : `worker${own}`;
    return {
      rank: own,
      node: place?.[1],
      path: place?.[2] ?? rest,
      name: place?.[1] ?? (given === undefined || /^(?:rank)?\d+$/.test(given) ? role : given),
      text: rest,
    };
  });
  const sorted = found.toSorted((a, b) => (a.rank ?? LAST) - (b.rank ?? LAST));
  return apart(sorted);
}

/** A log found under a name: in a folder, in an archive. */
export function sourceOf(name: string, path: string): LogSource {
  return { rank: readLogName(name).rank, node: undefined, path, name, text: path };
}

/** Two logs of one node are told apart by their ranks; any other two of one name are a mistake. */
function apart(sources: readonly LogSource[]): readonly LogSource[] {
  const twice = (one: LogSource): boolean => sources.filter(({ name }) => name === one.name).length > 1;
  return sources.map((one) => {
    if (!twice(one)) return one;
    if (one.rank === undefined) throw new UserError('bad-input', `--log names ${one.name} twice`, HINT);
    return { ...one, name: `${one.name} rank ${one.rank}` };
  });
}

function nextFree(taken: ReadonlySet<number>): number {
  let rank = 0;
  while (taken.has(rank)) rank += 1;
  return rank;
}
