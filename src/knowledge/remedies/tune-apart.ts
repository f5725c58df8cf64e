import { argsOf, softwareOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** Ranks that tune kernels in step stand still once their caches differ (vllm-project/vllm#52291, #52292). */
export const tuneApart: Remedy = {
  name: 'tune-apart',
  causes: ['rank-local-kernel-cache-drift'],
  title: ({ engine }) =>
    softwareOf(engine) === 'vllm'
      ? 'Let each rank tune its kernels by itself'
      : 'Start without tuning kernels',
  cost: ({ engine }) =>
    softwareOf(engine) === 'vllm'
      ? 'ranks may choose different kernels'
      : 'kernels of the default choice, a little slower',
  apply({ recipe, engine }) {
    if (softwareOf(engine) === 'vllm')
      return setEnv(recipe, { VLLM_FLASHINFER_AUTOTUNE_DISTRIBUTED_SYNC: '0' });
    const args = argsOf(recipe, engine);
    const flag = '--disable-flashinfer-autotune';
    return args.includes(flag) ? undefined : [{ path: `args.${engine}`, from: args, to: [...args, flag] }];
  },
};
