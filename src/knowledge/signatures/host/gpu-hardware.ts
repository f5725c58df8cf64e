import { whoSaid } from '../line-signature.ts';
import { nodesOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

/**
 * What the driver reports of the hardware itself. Other Xids (13, 31, 43, 45, 69) are told of what a program did, and
 * 63 and 92 of errors that were mended.
 */
const XIDS: Readonly<Record<string, string>> = {
  48: 'its memory had an error of two bits that could not be corrected',
  64: 'a faulty row of its memory could not be replaced',
  74: 'its NVLink failed',
  79: 'it has fallen off the bus',
  94: 'its memory had an error that could not be corrected',
  95: 'its memory had an error that could not be corrected',
  140: 'its memory had an error that could not be corrected',
};

const xid = pattern(
  'Xid (',
  /\bXid \((?<device>[^)]{1,80})\): (?<code>48|64|74|79|94|95|140)\b(?:, (?<said>.{0,400}))?/,
);
const offTheBus = pattern('fallen off the bus', /fallen off the bus/);
const lost = pattern(
  ['GPU is lost', 'Unable to determine the device handle for GPU'],
  /GPU is lost|Unable to determine the device handle for GPU/,
);
const ecc = pattern(
  ['ncorrectable ECC error', 'ECCUncorrectable', 'ECC_UNCORRECTABLE', "'uncorrectable ECC"],
  /[Uu]ncorrectable ECC error|cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE/,
);
/** What programs on such a GPU meet: not what a wrong build or too little memory gives. */
const met = pattern(
  [
    'illegal memory access',
    'illegal instruction was encountered',
    'misaligned address',
    'unspecified launch failure',
    'hardware stack error',
    'unknown error',
    'cudaErrorUnknown',
    'CUDA_ERROR_UNKNOWN',
    'busy or unavailable',
    'no CUDA-capable device',
    'No CUDA GPUs are available',
    'invalid device ordinal',
    'CUDA initialization',
    'initialization error',
    'unhandled cuda error',
    'Cuda failure',
    'NVMLError',
    'NVML: ',
    'launch timed out',
    'cudaErrorLaunch',
    'CUDA_ERROR_LAUNCH',
    'cudaErrorIllegal',
    'CUDA_ERROR_ILLEGAL',
  ],
  /illegal memory access|illegal instruction was|misaligned address|unspecified launch failure|hardware stack error|CUDA (?:unknown )?error: unknown error|CUDA unknown error|cudaErrorUnknown|CUDA_ERROR_UNKNOWN|busy or unavailable|no CUDA-capable device|No CUDA GPUs are available|invalid device ordinal|CUDA initialization|initialization error|unhandled cuda error|Cuda failure (?!\d{0,3} ?'out of memory)|NVMLError_(?:Unknown|GpuIsLost)|NVML: (?:Unknown|GPU is lost)|launch timed out|cudaErrorLaunch|CUDA_ERROR_LAUNCH|cudaErrorIllegal|CUDA_ERROR_ILLEGAL/,
);

/** The GPU itself failed, by the driver's word: what CUDA says of it in a rank is no fault of a kernel. */
export const gpuHardware: Signature = {
  name: 'gpu-hardware',
  causes: ['gpu-hardware-fault'],
  seenOn: 'NVIDIA drivers 530 to 580, 2023 to 2026',
  source:
    "NVIDIA's Xid catalogue; spark.md 2; NVIDIA/open-gpu-kernel-modules#507; NVIDIA/NVSentinel#155; vllm-project/vllm#5222",
  patterns: [xid, offTheBus, lost, ecc, met],
  looks: [
    "NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    'NVRM: Xid (PCI:0000:0a:00): 48, pid=4821, name=python3, DBE (double bit error)',
  ],
  match(view) {
    const driver = [...view.find(xid), ...view.find(offTheBus), ...view.find(lost)];
    const first = driver[0] ?? view.find(ecc)[0];
    if (first === undefined) return undefined;
    const errors = [...view.find(ecc), ...view.find(met)];
    const node = nodeOf(view, first, errors);
    const error = errors.find((found) => found !== first && (node === undefined || found.node === node));
    return told(view, first, error, node);
  },
};

/** Whether the GPU of this line's node failed by itself: then what CUDA says there has no other cause. */
export function hardwareFailed(view: View, { node }: Found): boolean {
  const match = gpuHardware.match(view);
  return match !== undefined && match.specificity === 4 && (match.node === undefined || match.node === node);
}

/** The node whose kernel said it; a log that is no node's is of the one whose rank met it. */
function nodeOf(view: View, first: Found, errors: readonly Found[]): string | undefined {
  const nodes = nodesOf(view.evidence);
  if (nodes.includes(first.node)) return first.node;
  const met = errors.find((found) => nodes.includes(found.node))?.node;
  return met ?? whoSaid(first, [first], view).node ?? nodes[0];
}

function told(view: View, first: Found, error: Found | undefined, node: string | undefined): Match {
  const { code, device } = first.groups;
  const where = node ?? first.node;
  const bus = code === '79' || (code === undefined && !ecc.regex.test(first.message));
  const what = XIDS[code ?? (bus ? '79' : '48')] ?? 'it failed';
  const proved = error !== undefined || ecc.regex.test(first.message);
  return {
    cause: 'gpu-hardware-fault',
    node: node ?? first.node,
    shown: error === undefined ? [first] : [first, error],
    title: `The GPU of ${where} failed: ${what}${code === undefined ? '' : ` (Xid ${code})`}`,
    why: `${code === undefined ? 'It was said' : 'The driver reports it'} of the hardware itself${error === undefined ? '' : '; what CUDA said in the rank followed from it, and is no fault of a kernel or a backend'}.`,
    advice: [
      bus
        ? `Shut ${where} down, take its power away for some minutes, see that the GPU and its power are seated and that it is not too hot, and boot again.`
        : `On ${where}: nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT; then restart it: rows that failed are replaced at the next start.`,
      `It has helped when, on ${where}: nvidia-smi lists every GPU, and sudo dmesg -T | grep -i xid shows nothing new. If it comes again, the GPU is a case for its maker: nvidia-bug-report.sh gathers what they ask for.`,
    ],
    values: {
      ...(code === undefined ? {} : { xid: code }),
      ...(device === undefined ? {} : { device }),
    },
    confidence: proved ? (view.find(xid).length > 0 ? 0.94 : 0.85) : 0.62,
    specificity: proved ? 4 : 2,
  };
}
