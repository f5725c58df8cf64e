import { nodesOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const world = pattern(
  'distributed_init_method=',
  /^world_size=(?<world>\d{1,20}) rank=(?<rank>\d{1,20}) .{0,400}distributed_init_method=/,
);
const nodeRank = pattern(
  ['node_rank', 'node-rank', 'node rank', 'NODE_RANK'],
  /\b(?:from node_rank |node[_ -]rank['"]?\s{0,60}[=: ]\s{0,60}['"]?|NODE_RANK=)(?<rank>\d{1,20})\b/,
);
const sglangRank = pattern('Init torch distributed begin', /^Init torch distributed begin/);
const checkedIn = pattern(
  'already checked in',
  /[Bb]ootstrap ?[Rr]oot ?: rank (?<rank>\d{1,20}) of (?<world>\d{1,20}) ranks? (?:has )?already checked in|rank (?<rank2>\d{1,20}) of \d{1,20} (?:ranks )?has already checked in/,
);
const torch = pattern(
  ['uplicate rank', 'rank already', 'same rank'],
  /[Dd]uplicate (?:global )?rank (?<rank>\d{1,20})?|rank (?<rank2>\d{1,20}) (?:is |was )?already (?:taken|registered|joined)|same rank/,
);

/** Two nodes were started under the same rank: each waits for one that never comes. */
export const duplicateRank: Signature = {
  name: 'duplicate-rank',
  causes: ['duplicate-node-rank'],
  seenOn: 'vLLM 0.26 and SGLang 0.5, 2026; NCCL 2.20 to 2.30',
  source: 'vLLM distributed/parallel_state.py, engine/arg_utils.py; SGLang server_args.py; NCCL bootstrap.cc',
  looks: [
    'world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.0.0.1:29501, in the logs of two nodes',
  ],
  patterns: [world, nodeRank, sglangRank, checkedIn, torch],
  match(view) {
    const { evidence, find } = view;
    const said = find(checkedIn)[0] ?? find(torch)[0];
    if (said !== undefined) return told(view, [said], said.groups['rank'] ?? said.groups['rank2'] ?? '', 0.9);
    if (!severalNodes(evidence) || view.serves) return undefined;
    const twice =
      pairOf(find(world), (one) => one.groups['rank']) ??
      pairOf(find(nodeRank), (one) => one.groups['rank']) ??
      pairOf(find(sglangRank), tensorRank);
    return twice === undefined ? undefined : told(view, twice.found, twice.rank, 0.93);
  },
};

/** "[2026-11-29 10:00:09 PP0 TP1] " → "PP0 TP1" */
function tensorRank(found: Found): string | undefined {
  return /^\[[\d-]+ [\d:.,]+ ((?:(?:DP|PP|TP|EP)\d+ ?)+)\]/.exec(found.line.text)?.[1];
}

/** Two nodes whose ranks are all the same: a node with several GPUs has several, and shares none with another. */
function pairOf(
  all: readonly Found[],
  rankOf: (found: Found) => string | undefined,
): { readonly found: readonly Found[]; readonly rank: string } | undefined {
  for (const [index, one] of all.entries()) {
    const rank = rankOf(one);
    const other = all.slice(index + 1).find((found) => found.node !== one.node && rankOf(found) === rank);
    if (rank !== undefined && other !== undefined) return { found: [one, other], rank };
  }
  return undefined;
}

function told(view: View, shown: readonly Found[], rank: string, confidence: number): Match {
  const names = shown.length > 1 ? shown.map((found) => found.node) : nodesOf(view.evidence);
  return {
    cause: 'duplicate-node-rank',
    node: undefined,
    atFault: 'launcher',
    shown,
    title: `${names.join(' and ')} were both started as rank ${rank === '' ? 'of another' : rank}`,
    why: 'Each waits for the rank that nobody is.',
    advice: [
      'Give each node its own --node-rank, and vLLM on all but the head --headless; firstlight up does so.',
      'The ranks that the logs print ("rank=", "TP") must all differ.',
    ],
    values: { rank },
    confidence,
    specificity: 3,
  };
}
