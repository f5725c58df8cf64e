import { hardwareFailed } from '../host/gpu-hardware.ts';
import { lowPower } from '../host/low-power.ts';
import { inOrder, sameLog, whoSaid } from '../line-signature.ts';
import { type Found, pattern, type Signature } from '../signature.ts';

const crash = pattern(
  [
    'illegal memory access',
    'illegal instruction was encountered',
    'misaligned address',
    'unspecified launch failure',
    'cudaErrorIllegal',
    'CUDA_ERROR_ILLEGAL',
    'device-side assert triggered',
    'hardware stack error',
  ],
  /(?<what>illegal memory access|illegal instruction|misaligned address|unspecified launch failure|device-side assert|hardware stack error)|cudaErrorIllegal|CUDA_ERROR_ILLEGAL/,
);
const experimental = pattern(
  ['xperimental', 'b12x', 'B12X', 'EXPERIMENTAL', 'not validated', 'beta feature', 'unstable'],
  /[Ee]xperimental|EXPERIMENTAL|b12x|B12X|not (?:been )?validated|beta feature/,
);
const forced = pattern(
  [
    'VLLM_USE_FLASHINFER_MOE',
    'FLASHINFER_CUTLASS',
    'flashinfer_cutlass',
    'cute_dsl',
    'cutedsl',
    'CUTEDSL',
    'fused_moe_120',
    'tilelang',
    'TileLang',
    'deep_gemm',
    'DEEPGEMM',
    'nvfp4',
    'NvFp4',
    'NVFP4',
    'mxfp4',
    'MXFP4',
  ],
  /(?<kernel>FLASHINFER_\w{1,80}|flashinfer_\w{1,80}|VLLM_USE_FLASHINFER_MOE_\w{1,80}|cute_?dsl\w{0,80}|CUTEDSL|fused_moe_12\w{1,80}|tilelang|TileLang|deep_gemm|DEEPGEMM|nvfp4|NvFp4|NVFP4|mxfp4|MXFP4)/,
);

/** A kernel crashed; where the log says that it is experimental, or is made for other GPUs, that is why. */
export const kernelCrash: Signature = {
  name: 'kernel-crash',
  causes: ['experimental-kernel-crash'],
  seenOn: 'FlashInfer 0.5 to 0.7 on GB10 and RTX PRO 6000, 2025 and 2026',
  source: 'CUDA runtime errors 700, 715, 716 and 719; flashinfer-ai/flashinfer#2065, #2776, #5446',
  patterns: [crash, experimental, forced],
  looks: ['CUDA error: an illegal instruction was encountered'],
  match(view) {
    const all = inOrder([crash], view);
    const first = all[0];
    // A GPU without power, or one that fails itself, crashes kernels that are right.
    if (first === undefined || lowPower.match(view) !== undefined || hardwareFailed(view, first))
      return undefined;
    const marked = view.find(experimental).filter((found) => before(found, first));
    const named = view.find(forced).filter((found) => before(found, first));
    const kernel = named.at(-1)?.groups['kernel'];
    const place = whoSaid(first, all.slice(0, 1), view);
    const where = place.node ?? first.node;
    const what = first.groups['what'] ?? 'CUDA error';
    const confidence =
      marked.length > 0 ? 0.82 : kernel !== undefined ? 0.66 : what === 'illegal instruction' ? 0.66 : 0.52;
    return {
      cause: 'experimental-kernel-crash',
      ...place,
      shown: [first, ...marked.slice(-1), ...named.slice(-1)],
      title: `A kernel crashed on the GPU of ${where}: ${what}`,
      why:
        marked.length > 0
          ? 'The log says itself that this kernel or feature is experimental.'
          : `CUDA reports it at a later call than the one that did it${kernel === undefined ? '' : `; the log names ${kernel}, which is young on this GPU`}.`,
      advice: [
        'Choose a proven backend: marlin or triton for experts, triton for attention; leave out what forces another.',
        'If it crashes the same way there, look at the clock of the GPU under load: nvidia-smi --query-gpu=pstate,clocks.sm,power.draw,utilization.gpu --format=csv',
        `On ${where}: sudo dmesg -T | grep -i xid`,
      ],
      values: kernel === undefined ? { what } : { what, kernel },
      confidence,
      specificity: confidence > 0.6 ? 3 : 2,
      alternatives: [
        { cause: 'engine-bug-speculative-decoding', confidence: 0.15 },
        { cause: 'gpu-stuck-in-low-power-state', confidence: 0.1 },
      ],
    };
  },
};

function before(found: Found, first: Found): boolean {
  return sameLog(found, first) && found.line.line <= first.line.line + 30;
}
