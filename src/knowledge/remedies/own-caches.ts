import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** On each node's own disk, or in the container's: never on a share, and writable by any user. */
const ROOT = '/tmp/firstlight-kernels';

/** Compiled kernels go where no other node writes and the rank may write (variables: engines.md 1.7 and 2.4; Triton, TileLang and FlashInfer). */
export const ownCaches: Remedy = {
  name: 'own-caches',
  causes: ['jit-cache-shared-between-nodes', 'cache-directory-not-writable'],
  title: () => 'Give each rank a cache of kernels of its own',
  cost: () => 'kernels are compiled anew: the first start takes some minutes longer',
  apply({ recipe, finding }) {
    const hub = /huggingface|\/hub\b|hf[-_]/.test(finding.values['path'] ?? '');
    return setEnv(recipe, {
      TRITON_CACHE_DIR: `${ROOT}/triton`,
      TORCHINDUCTOR_CACHE_DIR: `${ROOT}/inductor`,
      VLLM_CACHE_ROOT: `${ROOT}/vllm`,
      SGLANG_CACHE_DIR: `${ROOT}/sglang`,
      FLASHINFER_WORKSPACE_BASE: `${ROOT}/flashinfer`,
      TILELANG_CACHE_DIR: `${ROOT}/tilelang`,
      DG_JIT_CACHE_DIR: `${ROOT}/deep-gemm`,
      ...(hub ? { HF_HOME: `${ROOT}/hub` } : {}),
    });
  },
};
