import { lineSignature } from '../line-signature.ts';
import { severalNodes } from '../scene.ts';
import { pattern } from '../signature.ts';

/** The head count, or the ranks over the nodes, do not divide. */
export const headsDoNotDivide = lineSignature({
  name: 'heads-do-not-divide',
  cause: 'tp-size-not-divisible',
  seenOn: 'vLLM 0.3 to 0.32; SGLang 0.4 to 0.5.23',
  source:
    'vLLM config/model.py, config/parallel.py and distributed/utils.py; SGLang server_args.py, distributed/parallel_state.py and models',
  forms: [
    pattern(
      ['must be divisible by', 'should be divisible by'],
      /(?:number of )?attention heads? \((?<heads>\d+)\) must be divisible by (?:the )?tensor[ -]parallel(?:ism)? size \((?<tensor>\d+)\)/,
    ),
    pattern(
      'is not divisible by',
      /(?:AssertionError: |Error: |^)(?<heads>\d+) is not divisible by (?<tensor>\d+)\.?$/,
    ),
    pattern(
      ['must be divisible by', 'should be divisible by', 'must divide', 'not divisible by'],
      /(?:tp_size|tensor_model_parallel_size|tensor[ _-]parallel[ _-]size|world[ _]size|nnodes|num_(?:attention_|kv_|key_value_)?heads|num_experts|vocab_size|hidden_size|heads|intermediate_size)\b[^.]{0,400}\b(?:must|should) (?:be divisible by|divide)\b/i,
    ),
    // What Python shows of an assertion without words is its source line.
    pattern(
      ['== 0'],
      /^\s*assert .{0,600}(?:head|size|expert|dim)\w{0,80} % [\w.]{0,400}(?:tp|tensor|world|parallel|size)\w{0,80} == 0/,
    ),
    pattern(
      ['is greater than the number of experts', 'cannot be divided'],
      /[Tt]ensor parallel size (?<tensor>\d+) is greater than the number of experts|cannot be (?:evenly )?divided (?:by|over|across) .{0,600}(?:tensor|tp)/,
    ),
  ],
  counts: ({ message }) =>
    !/quantization|block|group|packed|per_partition|min_thread|mxfp|MXFP|nvfp|page|chunk|seq|batch|token|slots|stride|warmup|cuda graph/i.test(
      message,
    ),
  title: ({ groups }, where) =>
    groups['heads']
      ? `${where} cannot begin: ${groups['heads']} attention heads do not split over ${groups['tensor']} ranks`
      : `${where} cannot begin: the model does not split evenly over the ranks`,
  why: 'Every rank must get the same number of attention heads.',
  advice: () => [
    'Choose another layout.tensor in the recipe, a number that divides the heads; pipeline parallelism (layout.pipeline) takes any number of nodes.',
  ],
  confidence: ({ message }) => (/^\s*assert/.test(message) ? 0.78 : 0.94),
  specificity: 3,
  looks: ['ValueError: Total number of attention heads (52) must be divisible by tensor parallel size (3).'],
});

/** A quantised weight becomes narrower than its block when it is split. */
export const blocksDoNotDivide = lineSignature({
  name: 'blocks-do-not-divide',
  cause: 'tp-breaks-quantization-blocks',
  seenOn: 'SGLang 0.4.2 to 0.5.23, vLLM 0.4 to 0.32',
  source:
    'fp8.py, fp8_utils.py, marlin_utils.py, awq.py, modelopt.py and compressed_tensors of both engines; SGLang model_runner_components/moe_ep_setup.py',
  forms: [
    pattern(
      ['is not divisible by', 'not divisible by'],
      /= ?(?<width>\d{1,9})\b[^=]{0,40}? is not divisible by\s{1,3}(?:weight quantization )?(?<side>block_[nk]|min_thread_[nk]|group_size|min_\w{1,20})(?: ?= ?(?<block>\d{1,9}))?/,
    ),
    pattern(
      ['not aligned with the quantized', 'too large tensor parallel size'],
      /(?:input|output) size is not aligned with the quantized|too large tensor parallel size/,
    ),
    pattern(
      ['weight_block_size', 'moe_tp_size', 'block_n', 'block_k'],
      /For quantized MoE models, please make sure .{0,600}?(?:\(moe_intermediate_size=(?<width>\d+) \/ moe_tp_size=(?<tensor>\d+)\).{0,600}?weight_block_size_n=(?<block>\d+))?|assert .{0,600}% \w{0,80}(?:block_[nk]|block_size\w{0,80}|group_size) == 0/,
    ),
    pattern(
      [
        'must be divisible by',
        'to be divisible by',
        'requires',
        'should be multiple of',
        'is not multiple of',
        'divisible by group size',
      ],
      /(?:NVFP4|NvFp4|MXFP[48]|mxfp[48]|[Gg]roup size|group_size|quantiz\w{1,80}|per_partition|packed_factor|[Mm]arlin|[Mm]achete|block_size|features? size).{0,120}(?:divisible by|multiple of)|(?:divisible by|multiple of).{0,80}(?:group[_ ]size|packed_factor|block_size|block_[nk])|in features size is not multiple of/,
    ),
  ],
  counts: ({ message }) => !/[Ff]alling back|^WARNING|Unfortunately, falling|prefix|page size/.test(message),
  title: ({ groups }, where) =>
    groups['width'] === undefined
      ? `The quantised weights do not split over the ranks of ${where}`
      : `${where} got weights ${groups['width']} wide, and their quantisation wants multiples of ${groups['block'] ?? 'its block'}`,
  why: 'The checkpoint is quantised in blocks, and every rank must hold whole ones.',
  advice: () => [
    'Choose a smaller layout.tensor in the recipe, or split experts by number (layout.expert), or take a checkpoint without blocks.',
  ],
  confidence: ({ groups, message }) =>
    groups['width'] !== undefined || /too large tensor|For quantized MoE/.test(message) ? 0.95 : 0.76,
  specificity: 3,
  looks: [
    'ValueError: Weight input_size_per_partition = 64 is not divisible by weight quantization block_k = 128.',
  ],
});

/** More ranks on a node than it has GPUs: a Spark has one. */
export const moreRanksThanGpus = lineSignature({
  name: 'more-ranks-than-gpus',
  cause: 'more-ranks-than-gpus',
  seenOn: 'vLLM 0.3 to 0.32, SGLang 0.4 to 0.5, NCCL 2.18 to 2.30',
  source: 'vLLM config/parallel.py and v1/worker/gpu_worker.py; CUDA runtime error 101; NCCL init.cc; Ray',
  forms: [
    pattern(
      [
        'larger than the number of available GPUs',
        'larger than the number of',
        'than the number of available GPUs',
      ],
      /(?:[Ww]orld size|[Tt]ensor parallel size) \((?<wanted>\d+)\) (?:is|cannot be) larger than the number of (?:available )?GPUs(?: \((?<there>\d+)\))?/,
    ),
    pattern(
      ['exceeds the total number of available GPUs', 'number of visible devices', 'is out of bounds'],
      /number of required (?:GPUs|\w{1,80}) exceeds the total number of available (?:GPUs|\w{1,80})|(?:local_world_size|tensor_parallel_size) \((?<wanted>\d+)\) must\s+be less than or equal to the number of visible devices \((?<there>\d+)\)|local rank (?<rank>\d+) is out of bounds/,
    ),
    pattern(
      ['invalid device ordinal', 'Duplicate GPU detected', 'CUDA_ERROR_INVALID_DEVICE'],
      /invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|Duplicate GPU detected : rank (?<rank>\d+) and rank (?<other>\d+) both on CUDA device/,
    ),
    pattern(
      ['GPUs are available', 'GPUs available', 'Not enough GPUs'],
      /[Nn]ot enough GPUs|(?:needs?|requires?|requested) (?<wanted>\d+) GPUs?.{0,40}(?:only )?(?<there>\d+) (?:GPUs? )?(?:is|are)? ?available/,
    ),
  ],
  title: ({ groups }, where) =>
    groups['wanted'] === undefined
      ? `More ranks were placed on ${where} than it has GPUs`
      : `${groups['wanted']} ranks were wanted on ${where}, and it has ${groups['there'] ?? 'fewer'} ${groups['there'] === '1' ? 'GPU' : 'GPUs'}`,
  why: 'A Spark has one GPU: two ranks need two nodes, and the engine must be told so (--nnodes and --node-rank, or Ray).',
  advice: () => [
    'In the recipe: layout.nodes as many as there are Sparks; firstlight then gives each rank its own node.',
    'By hand: give every rank --nnodes, --node-rank and the address of the head.',
  ],
  confidence: ({ message }, { evidence }) =>
    /Duplicate GPU/.test(message) && severalNodes(evidence)
      ? 0.6
      : /ordinal|INVALID_DEVICE|Duplicate/.test(message)
        ? 0.8
        : 0.93,
  specificity: 3,
  looks: ['ValueError: World size (2) is larger than the number of available GPUs (1) in this node.'],
});
