import { pattern, type Signature } from './signature.ts';

const world = pattern(
  'distributed_init_method=',
  /^world_size=(?<world>\d+) rank=(?<rank>\d+) .*distributed_init_method=/,
);

/** Two nodes were started under the same rank: each waits for one that never comes. */
export const duplicateRank: Signature = {
  name: 'duplicate-rank',
  causes: ['duplicate-node-rank'],
  seenOn: 'vLLM 0.26, September 2026',
  source: 'vLLM distributed/parallel_state.py',
  patterns: [world],
  match({ find }) {
    const seen = find(world);
    for (const [index, one] of seen.entries()) {
      const other = seen
        .slice(index + 1)
        .find((found) => found.node !== one.node && found.groups['rank'] === one.groups['rank']);
      if (other === undefined) continue;
      return {
        cause: 'duplicate-node-rank',
        node: undefined,
        shown: [one, other],
        title: `${one.node} and ${other.node} were both started as rank ${one.groups['rank']}`,
        why: 'Each waits for the rank that nobody is.',
        advice: ['Give each node its own --node-rank; see the command of each rank in its folder.'],
        values: { rank: one.groups['rank'] ?? '' },
        confidence: 0.92,
        specificity: 3,
      };
    }
    return undefined;
  },
};
