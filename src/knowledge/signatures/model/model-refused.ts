import { rayAddressOf } from '../../engines/log-line.ts';
import { lineSignature, type Where, whoSaid } from '../line-signature.ts';
import { type Found, pattern, type View } from '../signature.ts';

/** The model brings its own Python code, which runs only when the user says so: never a remedy, only advice. */
export const trustRemoteCode = lineSignature({
  name: 'trust-remote-code',
  cause: 'trust-remote-code-missing',
  seenOn: 'vLLM 0.3 to 0.32, SGLang 0.4 to 0.5, transformers 4 and 5',
  source: 'transformers dynamic_module_utils.py; vLLM transformers_utils/config.py',
  forms: [
    pattern(
      ['trust_remote_code', '--trust-remote-code', 'run the custom code'],
      /requires you to execute (?:the .{0,600} file|custom code)|(?:contains|references) custom code(?: contained in \S{1,300})? which must be executed|Please pass the argument `?trust_remote_code=True|set(?:ting)? (?:the option )?`?trust_remote_code=True|Do you wish to run the custom code|using the `--trust-remote-code` flag/,
    ),
    pattern(
      ['requires you to execute', 'custom code which'],
      /requires you to execute (?:the .{0,600} file|custom code)|(?:contains|references) custom code which must be executed/,
    ),
  ],
  title: (_found, where) => `The model wants to run its own code on ${where}`,
  why: 'Its folder holds Python files that the engine runs only when it is told to trust them.',
  advice: () => [
    'Read the .py files in the model folder first; they run with all rights of the engine.',
    'If you trust them, add "--trust-remote-code" to args of the engine in the recipe.',
  ],
  confidence: 0.94,
  specificity: 3,
  looks: [
    'ValueError: The repository org/model contains custom code which must be executed to correctly load the model.',
  ],
});

/** A worker unpickles a class of the model's own code without having that code. */
export const remoteModule = lineSignature({
  name: 'remote-module',
  cause: 'remote-code-module-missing-on-worker',
  seenOn: 'vLLM 0.4 to 0.20 over Ray and with several processes, transformers 4',
  source: 'transformers dynamic_module_utils.py; pickle; ray cloudpickle',
  forms: [
    pattern(
      'transformers_modules',
      /No module named '?transformers_modules(?<module>[\w.-]{0,400})|(?:Can't get attribute|cannot pickle|Can't pickle) .{0,600}transformers_modules|No such file or directory: '(?<path>\/[^']{0,400}transformers_modules[^']{0,400})'|ImportError.{0,600}transformers_modules/,
    ),
  ],
  at: workerWho,
  title: (_found, where) => `The model's own code is missing on ${where}`,
  why: "The head made a module (transformers_modules) of the model's Python files; the worker gets objects of it and has no such module.",
  advice: (_found, where) => [
    `Put the whole model folder, with its .py files, at the same path on ${where}: firstlight plan compares the nodes.`,
    'Give --trust-remote-code to every rank, and HF_MODULES_CACHE a folder of its own on each node.',
  ],
  confidence: 0.93,
  specificity: 3,
  looks: ["ModuleNotFoundError: No module named 'transformers_modules'"],
});

/** Of a worker's line in the head's log, the worker; else who printed it. */
function workerWho(first: Found, all: readonly Found[], view: View): Where {
  const workers = view.evidence.ranks.filter(({ role }) => role === 'worker');
  const brought = all.find(({ line, role }) => role === 'head' && rayAddressOf(line.text) !== undefined);
  if (brought !== undefined && workers.length === 1) return { node: workers[0]?.node };
  const own = all.find(({ role, rank }) => role === 'worker' && rank >= 0);
  return own === undefined ? whoSaid(first, all, view) : { node: own.node };
}

/** The engine does not have the model's architecture, or not its quantisation. */
export const modelNotSupported = lineSignature({
  name: 'model-not-supported',
  cause: 'model-not-supported-by-engine',
  seenOn: 'vLLM 0.3 to 0.32, SGLang 0.4 to 0.5.23',
  source:
    'vLLM model_executor/models/registry.py and config/model.py; SGLang models/registry.py, model_loader/utils.py',
  forms: [
    pattern(
      [
        'Model architecture',
        'has no vLLM implementation',
        'has no SGlang implementation',
        'has no SGLang implementation',
        'Unsupported architectures',
        'nsupported model architecture',
        'nsupported architectures',
      ],
      /Model architectures? \[?'?(?<architecture>[\w, ']{1,400}?)'?\]? (?:(?:are|is) not supported|failed to be inspected|was supported in vLLM until)|(?<other>\w{1,80}) has no (?:vLLM|SG[Ll]ang) implementation and|[Uu]nsupported (?:model )?architectures?:? ?\[?'?(?<third>\w{1,80})?/,
    ),
    pattern(
      ['Cannot find model module', 'not a registered model', 'No model architectures are specified'],
      /Cannot find model module\.? '?(?<architecture>\w{1,80})|'(?<other>\w{1,80})' is not a registered model|No model architectures are specified/,
    ),
    pattern(
      ['quantization method', 'Unknown quantization', 'nvalid quantization', 'nsupported quantization'],
      /(?:[Uu]nknown|[Ii]nvalid|[Uu]nsupported) quantization(?: method| scheme)?:? ?'?(?<quantization>[\w-]{1,400})/,
    ),
    pattern(
      ['There is no module or parameter named', 'weights were not initialized from checkpoint'],
      /There is no module or parameter named '(?<weight>[^']{1,400})' in (?<architecture>\w{1,80})|weights were not initialized from checkpoint/,
    ),
  ],
  counts: ({ message, line }) =>
    !/falling back|^WARNING/.test(message) &&
    (!/quantization|not initialized|No model architectures/.test(message) || /Error|ERROR/.test(line.text)),
  title: ({ groups }, where) =>
    groups['quantization'] === undefined
      ? `The engine on ${where} does not know the architecture ${groups['architecture'] ?? groups['other'] ?? groups['third'] ?? 'of this model'}`
      : `The engine on ${where} does not know the quantisation ${groups['quantization']}`,
  why: 'This release of the engine is older than the model, or was built without it.',
  advice: () => ['Use a newer image, or name the other engine in engines of the recipe: it is then tried.'],
  confidence: ({ message }) =>
    /no module or parameter|not initialized/.test(message) ? 0.6 : /quantization/.test(message) ? 0.72 : 0.92,
  specificity: 3,
  looks: ["ValueError: Model architectures ['NewForCausalLM'] are not supported for now."],
});

/** transformers is older than the model. */
export const transformersTooOld = lineSignature({
  name: 'transformers-too-old',
  cause: 'transformers-too-old',
  seenOn: 'transformers 4.40 to 5, 2024 to 2026',
  source: 'transformers models/auto/configuration_auto.py, tokenization_utils_base.py and utils/versions.py',
  forms: [
    pattern(
      [
        'does not recognize this architecture',
        'version of Transformers is out of date',
        'pgrade transformers',
        'pgrade Transformers',
        '--upgrade transformers',
      ],
      /model type `?(?<type>[\w.-]{1,400})`? but Transformers does not recognize this architecture|version of Transformers is out of date|(?:[Pp]lease |[Yy]ou (?:can|should|need to) |to )(?:upgrade|update) [Tt]ransformers|pip install (?:--upgrade|-U) transformers/,
    ),
    pattern(
      ['transformers>', 'transformers version', 'Transformers version', 'transformers =='],
      /transformers ?[>=]=? ?(?<wanted>[\d.]{1,400}\S{0,300}) is required|requires (?:`)?transformers ?[>=]=? ?(?<needed>[\d.]{1,400})|[Tt]ransformers version (?<have>[\d.]{1,400}) is (?:too old|not supported)/,
    ),
    pattern(
      [
        "from 'transformers",
        'Tokenizer class ',
        'not currently imported',
        'Unrecognized model in',
        'Unrecognized configuration class',
        'Unrecognized model identifier',
      ],
      /cannot import name '(?<name>\w{1,80})' from 'transformers|Tokenizer class (?<tokenizer>\w{1,80}) does not exist or is not currently imported|Unrecognized (?:model in|configuration class|model identifier)/,
    ),
    pattern(
      "KeyError: '",
      /^(?:\[rank\d+\]: ?)?KeyError: '(?<type>(?:qwen|llama|mistral|ministral|gemma|glm|deepseek|phi|gpt_oss|minimax|kimi|nemotron|granite|ernie|step|longcat|mimo|inkling|apertus|olmo|exaone|bailing|hunyuan)[\w]{0,400})'$/,
    ),
    pattern('`rope_scaling` must be a dictionary', /`rope_scaling` must be a dictionary with/),
  ],
  title: ({ groups }, where) =>
    `transformers on ${where} does not know ${groups['type'] ? `the model type ${groups['type']}` : 'this model'}`,
  why: 'The library in the image is older than the model.',
  advice: (_found, where) => [
    'Use a newer image; or in a plain environment: pip install -U transformers, as far as the engine allows it.',
    `See what is there, in the environment on ${where}: python3 -c "import transformers; print(transformers.__version__)"`,
  ],
  confidence: ({ message }) =>
    /does not recognize|out of date/.test(message)
      ? 0.95
      : /Unrecognized|KeyError/.test(message)
        ? 0.66
        : 0.85,
  specificity: 3,
  looks: [
    'The checkpoint you are trying to load has model type `new_moe` but Transformers does not recognize this architecture.',
  ],
});

/** tokenizer.json was written by a newer tokenizers than the one that reads it. */
export const tokenizersTooOld = lineSignature({
  name: 'tokenizers-too-old',
  cause: 'tokenizers-too-old',
  seenOn: 'tokenizers 0.13 to 0.21',
  source: 'serde errors of huggingface/tokenizers',
  forms: [
    pattern(
      ['untagged enum', 'unknown variant `'],
      /did not match any variant of untagged enum (?<what>\w{1,80})|unknown variant `(?<variant>\w{1,80})`, expected/,
    ),
    pattern(
      ['tokenizers>', 'tokenizers version', 'tokenizers =='],
      /tokenizers ?[>=]=? ?(?<wanted>[\d.]{1,400}\S{0,300}) is required|requires (?:`)?tokenizers ?[>=]=? ?(?<needed>[\d.]{1,400})/,
    ),
  ],
  title: (_found, where) => `tokenizers on ${where} cannot read the model's tokenizer.json`,
  why: 'The file was written by a newer release of the library than the one in the image.',
  advice: (_found, where) => [
    'Use a newer image; or in a plain environment: pip install -U tokenizers transformers, as far as the engine allows it.',
    `See what is there, in the environment on ${where}: python3 -c "import tokenizers; print(tokenizers.__version__)"`,
  ],
  confidence: 0.94,
  specificity: 3,
  looks: ['Exception: data did not match any variant of untagged enum ModelWrapper at line 757443 column 3'],
});
