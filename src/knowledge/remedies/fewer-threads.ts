import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** The maths libraries start a thread for each core in every process; a limit on processes counts them all. */
export const fewerThreads: Remedy = {
  name: 'fewer-threads',
  causes: ['process-limit-too-low'],
  title: () => 'Let each process of a rank start four threads for arithmetic',
  cost: () => 'little: the work is done on the GPU',
  apply: ({ recipe }) =>
    setEnv(recipe, { OMP_NUM_THREADS: '4', OPENBLAS_NUM_THREADS: '4', RAYON_NUM_THREADS: '4' }),
};
