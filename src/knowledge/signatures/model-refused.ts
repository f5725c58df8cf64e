import { plainSignature } from './plain-signature.ts';
import { pattern } from './signature.ts';

/** The model brings its own Python code, which runs only when the user says so: never a remedy, only advice. */
export const trustRemoteCode = plainSignature({
  name: 'trust-remote-code',
  cause: 'trust-remote-code-missing',
  seenOn: 'vLLM 0.3 and later, transformers 4 and 5',
  source: 'transformers dynamic_module_utils.py; vLLM transformers_utils/config.py',
  forms: [
    pattern(
      ['trust_remote_code=True', '--trust-remote-code'],
      /(?:requires you to execute the .* file in that repo|contains custom code which must be executed|set(?:ting)? (?:the option )?`?trust_remote_code=True)/,
    ),
  ],
  title: (found) => `The model wants to run its own code on ${found.node}`,
  why: 'Its folder holds Python files that the engine runs only when it is told to trust them.',
  advice: () => [
    'Read the .py files in the model folder first; they run with all rights of the engine.',
    'If you trust them, add "--trust-remote-code" to args of the engine in the recipe.',
  ],
  confidence: 0.95,
  specificity: 3,
});

/** The engine is older than the model's architecture. */
export const modelNotSupported = plainSignature({
  name: 'model-not-supported',
  cause: 'model-not-supported-by-engine',
  seenOn: 'vLLM 0.7, January 2025; SGLang 0.5',
  source: 'vLLM model_executor/models/registry.py',
  forms: [
    pattern(
      ['Model architectures [', 'has no vLLM implementation', 'Unsupported architectures'],
      /Model architectures \['?(?<architecture>[\w, ']+?)'?\] (?:are not supported|failed to be inspected)|has no vLLM implementation|Unsupported architectures/,
    ),
  ],
  title: (found) =>
    `The engine on ${found.node} does not know the architecture ${found.groups['architecture'] ?? 'of this model'}`,
  why: 'This release of the engine is older than the model, or was built without it.',
  advice: () => ['Use a newer image, or the other engine.'],
  confidence: 0.92,
  specificity: 3,
});

/** transformers is older than the model. */
export const transformersTooOld = plainSignature({
  name: 'transformers-too-old',
  cause: 'transformers-too-old',
  seenOn: 'transformers 4.5x, 2025',
  source: 'transformers configuration_auto.py',
  forms: [
    pattern(
      'but Transformers does not recognize this architecture',
      /model type `?(?<type>[\w-]+)`? but Transformers does not recognize this architecture/,
    ),
  ],
  title: (found) =>
    `transformers on ${found.node} does not know the model type ${found.groups['type'] ?? ''}`,
  why: 'The library in the image is older than the model.',
  advice: () => ['Use a newer image.'],
  confidence: 0.93,
  specificity: 3,
});

/** The head count or the quantisation does not split over that many ranks. */
export const headsDoNotDivide = plainSignature({
  name: 'heads-do-not-divide',
  cause: 'tp-size-not-divisible',
  seenOn: 'vLLM 0.x to 0.28; SGLang 0.5',
  source: 'vLLM config/model.py; SGLang server_args.py',
  forms: [
    pattern(
      'must be divisible by tensor parallel size',
      /[Tt]otal number of attention heads \((?<heads>\d+)\) must be divisible by tensor parallel size \((?<tensor>\d+)\)/,
    ),
    pattern('is not divisible by', /AssertionError: (?<heads>\d+) is not divisible by (?<tensor>\d+)$/),
    pattern('must be divisible by number of nodes', /size must be divisible by number of nodes/),
  ],
  title: (found) =>
    found.groups['heads']
      ? `${found.node} cannot begin: ${found.groups['heads']} attention heads do not split over ${found.groups['tensor']} ranks`
      : `${found.node} cannot begin: the ranks do not split evenly over the nodes`,
  why: 'Every rank must get the same number of attention heads.',
  advice: () => ['Choose another layout.tensor in the recipe, a number that divides the heads.'],
  confidence: 0.95,
  specificity: 3,
});

/** A quantised weight becomes narrower than its block when it is split. */
export const blocksDoNotDivide = plainSignature({
  name: 'blocks-do-not-divide',
  cause: 'tp-breaks-quantization-blocks',
  seenOn: 'SGLang 0.4.2, February 2025; vLLM 0.26, August 2026',
  source: 'fp8.py of both engines',
  forms: [
    pattern(
      'is not divisible by weight quantization block',
      /= (?<width>\d+) is not divisible by weight quantization (?<side>block_[nk]) = (?<block>\d+)/,
    ),
  ],
  title: (found) =>
    `${found.node} got weights ${found.groups['width'] ?? ''} wide, and their quantisation wants multiples of ${found.groups['block'] ?? ''}`,
  why: 'The checkpoint is quantised in blocks, and every rank must hold whole ones.',
  advice: () => ['Choose a smaller layout.tensor, or expert parallelism, or a checkpoint without blocks.'],
  confidence: 0.95,
  specificity: 3,
});
