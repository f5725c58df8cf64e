import { inOrder, lineSignature, whoSaid } from '../line-signature.ts';
import { CUDA_OUT_OF_MEMORY } from '../memory/memory-taken.ts';
import { pattern, type Signature } from '../signature.ts';

const ADVICE = [
  'Use an image that was built for sm_121 (the GB10): its CUDA must be 12.9 or newer, better 13.',
  'Till then another backend may run: --moe-runner-backend and --fp4-gemm-backend of SGLang, --moe-backend of vLLM, set to marlin or triton.',
];

/** CUDA found no code for this GPU, or a backend says that it has none. */
export const kernelsNotBuilt = lineSignature({
  name: 'kernels-not-built',
  cause: 'kernels-not-built-for-sm121',
  seenOn: 'vLLM 0.8 to 0.32, SGLang 0.4 to 0.5.23, FlashInfer 0.6',
  source:
    'CUDA runtime error table; vLLM fused_moe/oracle and csrc/quantization; sgl-kernel; flashinfer compilation_context.py',
  forms: [
    pattern(
      [
        'no kernel image is available',
        'cudaErrorNoKernelImageForDevice',
        'CUDA_ERROR_NO_BINARY_FOR_GPU',
        'invalid device function',
        'device kernel image is invalid',
      ],
      /no kernel image is available|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|(?:CUDA error|Error \[CUDA\]|failed with error).{0,600}(?:invalid device function|device kernel image is invalid)/,
    ),
    pattern(
      [
        'kernels unavailable for',
        'kernel does not support current device',
        'backend supports the deployment',
      ],
      /(?<backend>\w{1,80}) kernels unavailable for (?<kernel>\w{1,80})|kernel does not support current device|No \w{1,80}(?: Int8)? MoE backend supports the deployment/,
    ),
    pattern(
      ['No compiled ', 'No implemented ', 'is not compiled for', 'not implemented for the current'],
      /No (?:compiled|implemented) (?<kernel>\w{1,80})\b|(?<other>\w{1,80}) is not compiled for (?:the |this )?(?:current )?(?:device|GPU|sm)/,
    ),
    pattern(
      ['No supported CUDA architectures found', 'Arch conditional MMA instruction', 'Unsupported SM version'],
      /No supported CUDA architectures found|Arch conditional MMA instruction used without targeting|Unsupported SM version/,
    ),
    pattern(
      ['Unsupported architecture', 'Unsupported compute capability', 'Unsupported CUDA capability'],
      /(?:deep_gemm|DeepGEMM|csrc\/\S{0,300}|gemm|Assertion error).{0,600}Unsupported architecture|Unsupported (?:compute|CUDA) capability:? ?\(?(?:12|sm_?12)/i,
    ),
    pattern(
      ["not supported on .target 'sm_12", 'requires .target sm_12', 'requires .target sm_10'],
      /not supported on \.target '?sm_12|requires \.target '?sm_1[02]/,
    ),
    pattern(
      ['is not supported for the current GPU', 'does not support the current GPU'],
      /(?:quantization method|scheme).{0,600}(?:is not supported for|does not support) the current GPU/,
    ),
    pattern(
      ['SM100', 'SM90', 'SM10x', 'sm_100', 'sm_90', 'Blackwell', 'Hopper', 'does not support NVFP4', 'SM89'],
      /(?:Error|Exception)\b.{0,600}(?:requires?|only supports?|only supported on|needs?|ships?) (?:\w{1,80} ){0,6}\(?(?:an? )?(?:CUDA )?(?:SM ?(?:100|90|10[xX]|89)|sm_?(?:100|90)|Blackwell|Hopper)|platform does not support NVFP4/,
    ),
  ],
  // Autotuners try what the GPU cannot do and go on.
  counts: ({ message, line }) =>
    !/Skipping tactic|[Ff]alling back|falls back|Ignoring|UserWarning/.test(message) &&
    (!/kernels unavailable/.test(message) || /Error|ERROR/.test(line.text)),
  title: (_found, where) => `The image's kernels were not built for the GPU of ${where}`,
  why: ({ groups }) =>
    groups['kernel'] === undefined
      ? 'CUDA looked for code for this GPU (sm_121 on a GB10) in the engine and its libraries, and found none.'
      : `${groups['kernel']} has no code for this GPU, which is sm_121 on a GB10.`,
  advice: (found) =>
    found.groups['backend'] === undefined
      ? ADVICE
      : [
          'Leave out the variable or flag that forces this backend, such as VLLM_USE_FLASHINFER_MOE_FP4.',
          ...ADVICE,
        ],
  confidence: ({ message }) =>
    /invalid device function|image is invalid/.test(message)
      ? 0.7
      : /no kernel image|NoKernelImage|kernels unavailable|No (?:compiled|implemented)|deployment/.test(
            message,
          )
        ? 0.9
        : 0.8,
  specificity: 3,
  looks: ['RuntimeError: CUDA error: no kernel image is available for execution on the device'],
});

const weightOnly = pattern(
  ['does not have native support for FP4', 'does not have native support for FP8', "Using 'MARLIN' "],
  /does not have native support for FP[48] computation|Using '?MARLIN'? NvFp4/,
);

/** Without native FP4 the weights are repacked for Marlin, which takes memory that unified memory does not have. */
export const repackRanOut: Signature = {
  name: 'repack-ran-out',
  causes: ['kernels-not-built-for-sm121'],
  seenOn: 'vLLM nightly of August 2026 on a GB10',
  source: 'vLLM model_executor/layers/quantization/utils/marlin_utils_fp4.py',
  patterns: [weightOnly, ...CUDA_OUT_OF_MEMORY],
  looks: [
    'Your GPU does not have native support for FP4 computation but FP4 quantization is being used.',
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.19 GiB.',
  ],
  match(view) {
    const ran = inOrder(CUDA_OUT_OF_MEMORY, view).find(({ stage }) => ['weights', 'kv'].includes(stage));
    const noticed = view.find(weightOnly).filter(({ node }) => node === ran?.node);
    if (ran === undefined || !noticed.some(({ message }) => message.includes('FP4'))) return undefined;
    const { node = ran.node } = whoSaid(ran, [ran], view);
    return {
      cause: 'kernels-not-built-for-sm121',
      node,
      shown: [ran, ...noticed.slice(0, 2)],
      title: `${node} has no kernels for FP4 weights, and ran out of memory repacking them`,
      why: 'The image has no native FP4 path for this GPU, so the weights are repacked for Marlin, which needs a second copy for a while.',
      advice: ADVICE,
      confidence: 0.72,
      specificity: 3,
      alternatives: [{ cause: 'insufficient-free-memory-at-startup', confidence: 0.15 }],
    };
  },
};

/** A GPU of this family has 99 KiB of shared memory a block; kernels made for data centres ask for up to 227. */
export const sharedMemoryExceeded = lineSignature({
  name: 'shared-memory-exceeded',
  cause: 'kernels-exceed-sm121-shared-memory',
  seenOn: 'Triton 3.x, TileLang, CUTLASS 4.2, 2025 and 2026',
  source:
    'triton runtime/errors.py; torch _inductor/runtime/triton_heuristics.py; TVM cuda_module.cc; NVIDIA/cutlass#3096; spark.md 1',
  forms: [
    pattern(
      ['out of resource: ', 'Hardware limit'],
      /out of resource: (?:shared memory|\S{1,300})\W.{0,600}?Required: ?(?<required>\d+)\W+Hardware limit: ?(?<limit>\d+)/,
    ),
    pattern('out of resource: shared memory', /out of resource: shared memory/),
    pattern(
      ['dynamic shared memory size to', 'dynamic shared'],
      /[Ff]ailed to set the allowed dynamic shared\s*memory size to (?<required>\d+)/,
    ),
    pattern(
      ['uses too much shared data', 'too much shared memory', 'shared memory size exceeds'],
      /uses too much shared data(?: \((?<required>0x[0-9a-f]{1,400}) bytes, (?<limit>0x[0-9a-f]{1,400}) max\))?|too much shared memory|shared memory size exceeds/,
    ),
    pattern(
      ['max_smem_per_sm', 'smem_size', 'shared memory per block', 'shared memory capacity'],
      /(?:exceeds?|larger than|greater than|insufficient|not enough).{0,600}(?:max_smem|smem_size|shared memory (?:per block|capacity))|(?:smem_size|shared memory).{0,600}(?:exceeds?|is larger than) .{0,600}(?:limit|max|capacity)/i,
    ),
    pattern(
      ['Failed to initialize cutlass', 'Failed to initialize GEMM', 'Failed to initialize the TMA'],
      /Failed to initialize (?:cutlass [\w ]{1,400}gemm|GEMM)/i,
    ),
  ],
  counts: ({ message }) => !/Skipping tactic|[Ff]alling back/.test(message),
  title: (_found, where) => `A kernel wants more shared memory than the GPU of ${where} has`,
  why: ({ groups }) =>
    groups['required'] === undefined
      ? 'A GB10 has 99 KiB of shared memory for a block of threads; this kernel was sized for a larger GPU.'
      : `It asks for ${Number(groups['required'])} bytes a block${groups['limit'] === undefined ? '' : ` and ${Number(groups['limit'])} are there`}: it was sized for a larger GPU.`,
  advice: () => [
    'Choose another backend for that layer: triton or flashinfer for attention, marlin for experts.',
    'Or use an image whose kernels are tuned for sm_121.',
  ],
  confidence: ({ message }) => (/Failed to initialize/.test(message) ? 0.66 : 0.92),
  specificity: 3,
  looks: [
    'triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.',
  ],
});
