import { argsOf, type Software, softwareOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';
import { flagValue, setArgs, type Wanted } from './set-args.ts';
import { dropEnv } from './set-env.ts';

/** Variables that force kernels made for data centre GPUs (vllm/envs.py; engines.md 7). */
const FORCING = [
  'VLLM_USE_FLASHINFER_MOE_FP4',
  'VLLM_USE_FLASHINFER_MOE_FP8',
  'VLLM_USE_FLASHINFER_MOE_FP16',
  'VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8',
  'VLLM_USE_FLASHINFER_MOE_MXFP4_BF16',
  'VLLM_FLASHINFER_MOE_BACKEND',
  'VLLM_NVFP4_GEMM_BACKEND',
  'VLLM_USE_DEEP_GEMM',
  'VLLM_MOE_USE_DEEP_GEMM',
];
/** Marlin runs on sm_121 in all images seen (engines.md 7, SGLang's own recipe for two Sparks). */
const PROVEN: Readonly<Record<Software, Wanted>> = {
  sglang: { '--moe-runner-backend': 'marlin', '--fp4-gemm-backend': 'marlin' },
  vllm: { '--moe-backend': 'marlin' },
};
const FORCING_FLAGS: Readonly<Record<Software, readonly string[]>> = {
  sglang: [
    '--moe-runner-backend',
    '--fp4-gemm-backend',
    '--fp8-gemm-backend',
    '--enable-flashinfer-cutlass-moe',
  ],
  vllm: ['--moe-backend', '--linear-backend'],
};
const CAUSES = [
  'kernels-not-built-for-sm121',
  'kernels-exceed-sm121-shared-memory',
  'experimental-kernel-crash',
] as const;

/** Takes away what forces kernels that this GPU does not have: the engine then chooses by itself. */
export const unforcedKernels: Remedy = {
  name: 'unforced-kernels',
  causes: CAUSES,
  title: () => 'Leave the choice of kernels to the engine',
  cost: () => 'nothing but the kernels that were asked for',
  apply({ recipe, engine }) {
    const args = argsOf(recipe, engine);
    const set = FORCING_FLAGS[softwareOf(engine)].filter(
      (flag) => flagValue(args, flag) !== undefined && flagValue(args, flag) !== 'marlin',
    );
    const edits = [
      ...(dropEnv(recipe, FORCING) ?? []),
      ...(set.length === 0
        ? []
        : (setArgs(recipe, engine, Object.fromEntries(set.map((flag) => [flag, undefined]))) ?? [])),
    ];
    return edits.length === 0 ? undefined : edits;
  },
};

/** Marlin's kernels for quantised weights, which need nothing that a GB10 lacks. */
export const provenKernels: Remedy = {
  name: 'proven-kernels',
  causes: CAUSES,
  title: () => 'Use the Marlin kernels for quantised weights',
  cost: () => 'long prompts are read more slowly; each answer is about as fast',
  apply: ({ recipe, engine }) => setArgs(recipe, engine, PROVEN[softwareOf(engine)]),
};
