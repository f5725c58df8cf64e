import { quotePlainly } from '../../domain/quote.ts';
import { list } from '../../domain/units.ts';
import { peersOf } from './scene.ts';
import { pattern, type Signature } from './signature.ts';

const barrier = pattern(
  'could finish the model loading, but',
  /TP rank (?<rank>\d+) could finish the model loading, but there are other ranks/,
);

/** SGLang's barrier after loading waits 480 s; the rank that prints this is the one that was ready. */
export const loadBarrier: Signature = {
  name: 'load-barrier',
  causes: ['unbalanced-load-barrier-timeout'],
  seenOn: 'SGLang nightly of September 2026 on two Sparks',
  source: 'SGLang model_executor/model_runner_components/load_model_utils.py',
  patterns: [barrier],
  match({ evidence, find }) {
    const first = find(barrier)[0];
    if (first === undefined) return undefined;
    const slow = evidence.ranks.filter((rank) => rank.node !== first.node && rank.stage === 'weights');
    const peers = peersOf(evidence, first.node);
    const node = slow[0]?.node ?? (peers.length === 1 ? peers[0] : undefined);
    const percent = slow[0]?.percent;
    return {
      cause: 'unbalanced-load-barrier-timeout',
      node,
      shown: [first],
      title: `${node ?? `One of ${list(peers)}`} read the weights so slowly that ${first.node} stopped waiting`,
      why: `SGLang gives the slowest rank eight minutes after the first is ready${percent === undefined ? '' : `; ${node} was at ${Math.floor(percent)} %`}.`,
      advice: [
        `Read the files once before the launch, on ${node ?? 'the slow node'}: cat ${quotePlainly(evidence.recipe.path)}/*.safetensors > /dev/null`,
        'See that all nodes keep the model on a disk of the same speed.',
      ],
      confidence: 0.85,
      specificity: 2,
    };
  },
};
