import type { Cured } from './cured.ts';

const SGLANG = { engines: ['sglang'] } as const;

/** Images that lack something which another setting does without. */
export const curedImages: readonly Cured[] = [
  {
    name: 'old-ptxas',
    title: 'The ptxas that Triton brings along does not know the GPU; the one of the CUDA toolkit is used',
    cause: 'bundled-ptxas-too-old',
    remedy: 'toolkit-ptxas',
    recipe: SGLANG,
    images: { lacks: ['ptxas-sm_121a'] },
  },
  {
    name: 'kernels-missing',
    title: 'The image has no code for quantised experts on this GPU; the Marlin kernels serve',
    cause: 'kernels-not-built-for-sm121',
    remedy: 'proven-kernels',
    recipe: SGLANG,
    images: { lacks: ['expert-kernels-sm_121'] },
  },
];
