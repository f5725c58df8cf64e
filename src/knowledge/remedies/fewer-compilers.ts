import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** torch's and FlashInfer's builds start a compiler for each core unless told otherwise; each takes several GiB. */
export const fewerCompilers: Remedy = {
  name: 'fewer-compilers',
  causes: ['jit-compile-parallelism-oom'],
  title: () => 'Compile with two compilers at once',
  cost: () => 'the first start takes longer; later ones find the kernels in the cache',
  apply: ({ recipe }) => setEnv(recipe, { MAX_JOBS: '2', FLASHINFER_NVCC_THREADS: '1' }),
};
