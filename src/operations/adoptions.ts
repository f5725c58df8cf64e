import type { Cluster } from '../domain/cluster.ts';
import { UserError } from '../domain/user-error.ts';

/** One rank that somebody started: pid or container on a node, and its log where it is known. */
export type Adoption = {
  readonly rank: number;
  readonly node: string;
  readonly target: string;
  readonly log: string | undefined;
};

const HINT =
  'firstlight adopt --rank 0=spark-a:4711,log=/home/aurora/head.log --rank 1=spark-b:sglang-worker --engine sglang';

/** `RANK=NODE:PID` or `RANK=NODE:CONTAINER`, then `,log=PATH`; the parts may come apart, as flags in lists do. */
export function adoptions(words: readonly string[], cluster: Cluster): readonly Adoption[] {
  const found = words
    .join(',')
    .split(/,(?=\d+=)/)
    .map((text): Adoption => {
      const match = /^(\d+)=([A-Za-z0-9][\w.-]*):([A-Za-z0-9][\w.-]*)(?:,log=(.+))?$/s.exec(text);
      const [, rank, node, target, log] = match ?? [];
      if (rank === undefined || node === undefined || target === undefined)
        throw new UserError('bad-input', `--rank ${text} is not RANK=NODE:PID or RANK=NODE:CONTAINER`, HINT);
      if (!cluster.nodes.some(({ name }) => name === node))
        throw new UserError(
          'bad-input',
          `there is no node ${node} in ${cluster.file}`,
          `nodes are: ${cluster.nodes.map(({ name }) => name).join(', ')}`,
        );
      return { rank: Number(rank), node, target, log };
    });
  for (const { rank } of found)
    if (found.filter((one) => one.rank === rank).length > 1)
      throw new UserError('bad-input', `--rank names rank ${rank} twice`, HINT);
  return found.toSorted((a, b) => b.rank - a.rank);
}
