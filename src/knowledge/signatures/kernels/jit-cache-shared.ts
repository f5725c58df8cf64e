import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** Folders in which engines and their libraries keep what they compiled. */
const CACHE =
  '(?:torch_compile_cache|torchinductor|inductor|triton|\\.triton|flashinfer|tilelang|deep_gemm|deepgemm|torch_extensions|vllm[-_]cache|ComputeCache|cutlass|cute_dsl|cached_ops|jit|nv_?cache|xdg|cache)';

/** What a network file system says when two nodes write to the same cache of kernels. */
export const jitCacheShared = lineSignature({
  name: 'jit-cache-shared',
  cause: 'jit-cache-shared-between-nodes',
  seenOn: 'vLLM 0.26 on two Sparks with the cache on NFS, August 2026',
  source: "Linux errno 116, 37, 26 and 16; Python's OSError; glibc dl-load",
  forms: [
    pattern(
      ['Stale file handle', 'ESTALE'],
      /Stale (?:NFS )?file handle(?:[^'"]{0,400}['"](?<path>\/[^'"]{1,400})['"])?/,
    ),
    pattern(
      ['No locks available', '.nfs0000'],
      /\[Errno 37\] No locks available(?:: '(?<path>\/[^']{1,400})')?|Device or resource busy: '?(?<busy>\S{0,300}\.nfs0000\w{1,80})|Directory not empty.{0,600}\.nfs0000/,
    ),
    pattern(
      ['Text file busy', 'Directory not empty', 'FileExistsError', 'file too short', 'invalid ELF header'],
      new RegExp(
        `(?:Text file busy|Directory not empty|FileExistsError: \\[Errno 17\\] File exists)[^'"]{0,400}['"](?<path>/[^'"]{0,400}${CACHE}[^'"]{0,400})|(?<library>/\\S{0,300}${CACHE}\\S{0,300}\\.so\\S{0,300}): (?:file too short|invalid ELF header)`,
        'i',
      ),
    ),
    pattern(
      ['could not be acquired', 'Timeout acquiring', 'Waiting for lock'],
      new RegExp(`(?:file lock|lock) ['"]?(?<path>/\\S*${CACHE}[^'"\\s]*)['"]? could not be acquired`, 'i'),
    ),
    pattern(
      ['No such file or directory: '],
      /FileNotFoundError: \[Errno 2\] No such file or directory: '(?<path>\/[^']{0,400}(?:triton|inductor|flashinfer|tilelang|deep_gemm|torch_compile_cache|cached_ops)[^']{0,400}(?:tmp\.pid|\.tmp|\.lock|\.cubin|\.ptx|\.json|\.so|\.cu|\.o|\.ninja)[^']{0,400})'/,
    ),
  ],
  whileServing: true,
  title: ({ groups }, where) =>
    `${where} shares its cache of compiled kernels with another node${groups['path'] ? `: ${groups['path']}` : ''}`,
  why: 'Two nodes build kernels into the same folder of a network file system, and take each other files away.',
  advice: (_found, where) => [
    `On ${where}: df -T shows whether the folder lies on NFS: df -T ~/.cache`,
    'Give each node a cache on its own disk: VLLM_CACHE_ROOT, SGLANG_CACHE_DIR, TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, FLASHINFER_WORKSPACE_BASE and TILELANG_CACHE_DIR; share only the weights.',
  ],
  confidence: ({ message }) => (/Stale|No locks|\.nfs0000/.test(message) ? 0.9 : 0.68),
  specificity: 3,
  looks: ["OSError: [Errno 116] Stale file handle: '/share/cache/triton/7c1e'"],
});
