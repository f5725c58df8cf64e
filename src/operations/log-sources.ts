import { UserError } from '../domain/user-error.ts';

/** One rank's log file: on a node, or on this machine where there is none. */
export type LogSource = {
  readonly rank: number;
  /** Node of the cluster file that the file lies on. */
  readonly node: string | undefined;
  readonly path: string;
  /** What the rank's place is called: the node, or the role of a file on this machine. */
  readonly name: string;
  /** As the user wrote it, less the rank. */
  readonly text: string;
};

const HINT =
  '--log head=spark-a:/home/aurora/sglang-head.log --log worker=spark-b:/home/aurora/sglang-worker.log';

/**
 * `[head|worker|workerN|RANK=]FILE` or `…=NODE:PATH`, one per rank, in order where no rank is said. Throws a
 * UserError for a rank that is named twice and for a set without a head.
 */
export function logSources(texts: readonly string[]): readonly LogSource[] {
  const found: LogSource[] = [];
  for (const text of texts) {
    const match = /^(head|worker\d*|(?:rank)?\d+)=(.*)$/s.exec(text);
    const rest = match?.[2] ?? text;
    const rank = rankOf(match?.[1], found);
    const place = /^([A-Za-z0-9][\w.-]*):(.+)$/s.exec(rest);
    const path = place?.[2] ?? rest;
    if (path === '') throw new UserError('bad-input', `--log ${text} names no file`, HINT);
    if (found.some((other) => other.rank === rank))
      throw new UserError('bad-input', `--log names rank ${rank} twice`, HINT);
    const role = rank === 0 ? 'head' : rank === 1 ? 'worker' : `worker${rank}`;
    found.push({ rank, node: place?.[1], path, name: place?.[1] ?? role, text: rest });
  }
  const sorted = found.toSorted((a, b) => a.rank - b.rank);
  // Two ranks of one host are told apart by their roles.
  const names = sorted.map(({ name }) => name);
  return sorted.map((one) =>
    names.filter((name) => name === one.name).length > 1
      ? { ...one, name: `${one.name} rank ${one.rank}` }
      : one,
  );
}

function rankOf(word: string | undefined, before: readonly LogSource[]): number {
  const next = (from: number): number => {
    let rank = from;
    while (before.some((one) => one.rank === rank)) rank += 1;
    return rank;
  };
  if (word === undefined) return next(0);
  if (word === 'head') return 0;
  const number = /\d+$/.exec(word)?.[0];
  return number === undefined ? next(1) : Number(number);
}
