import { lacks } from './lacks.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** Attention whose tiles fit into what a GB10 has for a block; Triton chooses its own at run time. */
const TILES = 'attention-tiles-sm_121';
const PLAIN = { sglang: 'triton', vllm: 'TRITON_ATTN' } as const;

/** The backend is made for this GPU: throws in its own words where it is not. `backend` undefined is the engine's choice. */
export function openAttention(env: Env, engine: 'sglang' | 'vllm', backend: string | undefined): void {
  // SGLang's attention_registry.py, v0.5.18; a GB10 is SM 121.
  if (backend === 'fa3')
    throw new PythonError(
      'pool',
      'AssertionError',
      'FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.',
    );
  if (!lacks(env, TILES) || backend === PLAIN[engine]) return;
  throw new PythonError(
    'graphs',
    'RuntimeError',
    'Failed to set the allowed dynamic shared memory size to 147456',
  );
}

/** Experts' kernels that are marked experimental crash on a GB10 (flashinfer-ai/flashinfer#2776). */
export function runExperts(backend: string | undefined, warn: (text: string) => void): void {
  if (backend === undefined || !/cutedsl|b12x/.test(backend)) return;
  warn(`The MoE backend ${backend} is experimental on this GPU.`);
  throw new PythonError(
    'graphs',
    'torch.AcceleratorError',
    'CUDA error: an illegal instruction was encountered',
    [
      'CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.',
      'For debugging consider passing CUDA_LAUNCH_BLOCKING=1',
      'Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.',
      '',
    ],
  );
}
