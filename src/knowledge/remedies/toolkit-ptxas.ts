import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** Triton takes the ptxas of the CUDA toolkit, which knows the GPU, instead of its own (triton-lang/triton#8539). */
export const toolkitPtxas: Remedy = {
  name: 'toolkit-ptxas',
  causes: ['bundled-ptxas-too-old'],
  title: () => 'Let Triton use the ptxas of the CUDA toolkit',
  cost: () => 'nothing',
  apply: ({ recipe }) => setEnv(recipe, { TRITON_PTXAS_PATH: '/usr/local/cuda/bin/ptxas' }),
};
