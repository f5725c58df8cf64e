import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** Variables for folders of compiled kernels, and where they lie without: in the container's own layer. */
const CACHES: Readonly<Record<'sglang' | 'vllm', readonly (readonly [name: string, usual: string])[]>> = {
  sglang: [['TRITON_CACHE_DIR', '/root/.triton/cache']],
  vllm: [
    ['VLLM_CACHE_ROOT', '/root/.cache/vllm'],
    ['TRITON_CACHE_DIR', '/root/.triton/cache'],
  ],
};

/** The folders that compiled kernels go to are made: throws Python's OSError for one below a read-only mount. */
export function makeCaches(env: Env, engine: 'sglang' | 'vllm'): void {
  const readOnly = (env['FIRSTLIGHT_LAB_READ_ONLY'] ?? '').split('\n').filter((target) => target !== '');
  for (const [name, usual] of CACHES[engine]) {
    const path = env[name] ?? usual;
    if (readOnly.some((target) => `${path}/`.startsWith(`${target.replace(/\/$/, '')}/`)))
      throw new PythonError('graphs', 'OSError', `[Errno 30] Read-only file system: '${path}'`);
  }
}
