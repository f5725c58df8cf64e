import { argsOf, type Software, softwareOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';

const FLAGS: Readonly<Record<Software, string>> = {
  sglang: '--disable-cuda-graph',
  vllm: '--enforce-eager',
};
const MAYBE_GRAPHS: readonly string[] = [
  'nccl-build-incompatible-with-platform',
  'experimental-kernel-crash',
];
const GRAPH_STAGES: readonly (string | undefined)[] = ['graphs', 'warmup'];

/** No CUDA graphs: what fails while they are captured, or for want of their memory, is not done at all. */
export const eager: Remedy = {
  name: 'eager',
  causes: [
    'cuda-graph-capture-oom',
    'cuda-graph-capture-with-host-staged-nccl',
    'nccl-build-incompatible-with-platform',
    'experimental-kernel-crash',
  ],
  title: () => 'Start without CUDA graphs',
  cost: () => 'each token takes longer, by a third to a half',
  apply({ recipe, engine, finding }) {
    // A hang of NCCL or a crash elsewhere has nothing to do with graphs.
    if (MAYBE_GRAPHS.includes(finding.cause) && !GRAPH_STAGES.includes(finding.stage)) return undefined;
    const args = argsOf(recipe, engine);
    const flag = FLAGS[softwareOf(engine)];
    return args.includes(flag) ? undefined : [{ path: `args.${engine}`, from: args, to: [...args, flag] }];
  },
};
