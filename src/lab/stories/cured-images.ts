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
  {
    name: 'large-tiles',
    title: 'The image’s attention wants more shared memory than the GPU has; Triton’s chooses its own tiles',
    cause: 'kernels-exceed-sm121-shared-memory',
    remedy: 'other-attention',
    recipe: SGLANG,
    images: { lacks: ['attention-tiles-sm_121'] },
  },
  {
    name: 'wrong-attention',
    title: 'An attention backend of another GPU is asked for; the one that SGLang names serves',
    cause: 'attention-backend-unsupported',
    remedy: 'other-attention',
    recipe: { ...SGLANG, args: { sglang: ['--attention-backend', 'fa3'] } },
  },
  {
    name: 'experimental-experts',
    title: 'Experimental kernels are asked for and crash; the engine chooses by itself',
    cause: 'experimental-kernel-crash',
    remedy: 'unforced-kernels',
    recipe: { ...SGLANG, args: { sglang: ['--moe-runner-backend', 'flashinfer_cutedsl'] } },
  },
  {
    name: 'many-compilers',
    title: 'Kernels are built with a compiler for each core, and the kernel ends one; two at once fit',
    cause: 'jit-compile-parallelism-oom',
    remedy: 'fewer-compilers',
    recipe: SGLANG,
    images: { lacks: ['prebuilt-kernels'] },
  },
  {
    name: 'shared-cache',
    title: 'Both nodes compile into one folder of a network file system, and take each other’s files away',
    cause: 'jit-cache-shared-between-nodes',
    remedy: 'own-caches',
    recipe: {
      ...SGLANG,
      env: { TRITON_CACHE_DIR: '/srv/cache/triton' },
      run: {
        in: 'docker',
        image: { sglang: 'lmsysorg/sglang:v0.5.18-spark' },
        volumes: ['/home/aurora/models:/home/aurora/models:ro', '/srv/cache:/srv/cache'],
      },
    },
    shares: ['/srv/cache'],
  },
];
