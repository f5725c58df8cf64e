import { quotePlainly } from '../../../domain/quote.ts';
import { list } from '../../../domain/units.ts';
import { inOrder } from '../line-signature.ts';
import { headOf, peersOf } from '../scene.ts';
import { pattern, type Signature } from '../signature.ts';

const barrier = pattern(
  ['could finish the model loading, but', "didn't finish loading"],
  /TP rank (?<rank>\d+) could finish the model loading, but|other ranks that didn't finish loading/,
);
const monitored = pattern(
  'monitoredBarrier',
  /Rank (?<slow>\d+) failed to pass monitoredBarrier in (?<milliseconds>\d+) ?ms/,
);
const loaded = pattern(
  ['Load weight end', 'Loading weights took'],
  /^Load weight end\.|^Loading weights took /,
);

/** SGLang's barrier after loading waits 480 s; the rank that prints this is the one that was ready. */
export const loadBarrier: Signature = {
  name: 'load-barrier',
  causes: ['unbalanced-load-barrier-timeout'],
  seenOn: 'SGLang 0.4 to 0.5.23 on two Sparks, September 2026',
  source: 'SGLang model_executor/model_runner_components/load_model_utils.py; torch monitored_barrier',
  patterns: [barrier, monitored, loaded],
  looks: [
    "ValueError: TP rank 1 could finish the model loading, but there are other ranks that didn't finish loading.",
  ],
  match(view) {
    const { evidence, find } = view;
    const first = inOrder([barrier], view)[0];
    if (first === undefined) return undefined;
    const ready = new Set([...find(loaded), ...find(barrier)].map((found) => found.node));
    const byNumber = Number(find(monitored)[0]?.groups['slow'] ?? Number.NaN);
    const slow =
      evidence.ranks.find((rank) => rank.rank === byNumber && rank.node !== first.node) ??
      evidence.ranks.find((rank) => rank.node !== first.node && !ready.has(rank.node)) ??
      evidence.ranks.find((rank) => rank.node !== first.node && rank.stage === 'weights');
    const peers = peersOf(evidence, first.node);
    const spoke = Number(first.groups['rank'] ?? Number.NaN);
    const node =
      slow?.node ??
      (peers.length === 1 ? peers[0] : undefined) ??
      // With one log only: the rank that was ready is in it, the slow one is the other.
      (peers.length > 0 || Number.isNaN(spoke) ? undefined : spoke > 0 ? 'head' : 'worker');
    const percent = slow?.percent;
    const where = node ?? (peers.length === 0 ? 'another node' : `one of ${list(peers)}`);
    return {
      cause: 'unbalanced-load-barrier-timeout',
      node,
      shown: [first, ...find(monitored).slice(0, 1)],
      title: `${where} read the weights so slowly that ${first.node} stopped waiting`,
      why: `SGLang gives the slowest rank eight minutes after the first is ready${percent === undefined ? '' : `; ${where} was at ${Math.floor(percent)} %`}. Nothing was broken: one page cache was warm and the other cold, or one disk is slower.`,
      advice: [
        `Read the files once before the launch, on ${where}: cat ${quotePlainly(evidence.recipe.path === '/unknown' ? '/THE/MODEL' : evidence.recipe.path)}/*.safetensors > /dev/null`,
        'See that all nodes keep the model on a disk of the same speed.',
      ],
      values: percent === undefined ? {} : { percent: String(Math.floor(percent)) },
      confidence: headOf(evidence) === undefined && peers.length === 0 ? 0.75 : 0.86,
      specificity: 3,
    };
  },
};
