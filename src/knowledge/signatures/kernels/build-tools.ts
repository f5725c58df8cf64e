import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

const TOOL =
  '(?<tool>ninja|nvcc|g\\+\\+|gcc|clang\\+{0,2}|cc|c\\+\\+|cc1plus|cicc|cmake|make|ld|cudafe\\+\\+|ptxas|nvlink)';

/** Kernels are compiled while the engine starts or serves, and what compiles them is not there. */
export const buildTools = lineSignature({
  name: 'build-tools',
  cause: 'build-tool-missing',
  seenOn: 'FlashInfer in SGLang 0.5 and vLLM 0.11, Triton 3, torch 2.x',
  source:
    'torch utils/cpp_extension.py and _inductor/cpp_builder.py; triton runtime/build.py; flashinfer jit/cpp_ext.py; gcc',
  forms: [
    pattern(
      ['No such file or directory: ', 'not found', 'executable file not found'],
      new RegExp(
        `(?:No such file or directory: ['"]?(?:/\\S{0,300}/)?${TOOL}['"]?$|^(?:/bin/)?(?:ba)?sh: (?:line )?\\d*:? ?(?:/\\S{0,300}/)?${TOOL.replace('tool', 'shell')}: (?:command )?not found)`,
      ),
    ),
    pattern(
      ['Ninja is required', 'ninja is required', 'inja not found', 'Could not find nvcc', 'CUDA_HOME'],
      /(?<tool>[Nn]inja) is required to load C\+\+ extensions|[Nn]inja not found|Could not find (?<compiler>nvcc)|CUDA_HOME (?:environment variable )?is not set|CUDA_HOME.{0,40}(?:does not exist|doesn't exist)/,
    ),
    pattern(
      ['Failed to find C compiler', 'No working C++ compiler', 'InvalidCxxCompiler', 'C compiler not found'],
      /Failed to find C compiler|No working C\+\+ compiler found|InvalidCxxCompiler|C compiler not found/,
    ),
    pattern(
      [
        'fatal error: ',
        'cannot find -lcuda',
        'libcuda.so cannot found',
        'error trying to exec',
        'cannot execute',
      ],
      /fatal error: (?<header>Python\.h|cuda\w{0,80}\.h|cu\w{1,80}\.h|nv\w{1,80}\.h|cub\/\S{1,300}|curand\S{0,300}|cublas\S{0,300}): No such file|cannot find -lcuda(?:rt)?|libcuda\.so cannot found|error trying to exec '(?<tool>\S{1,300})'|cannot execute ['‘"]?(?<part>cc1plus|cicc|as|ld)/,
    ),
  ],
  title: ({ groups }, where) => {
    const what =
      groups['tool'] ?? groups['shell'] ?? groups['compiler'] ?? groups['part'] ?? groups['header'];
    return `${what ?? 'A compiler'} is missing where the rank runs on ${where}`;
  },
  why: 'FlashInfer, Triton and torch compile kernels at first use, with the tools of the environment that the engine runs in.',
  advice: ({ groups, message }, where) => [
    /ninja/i.test(message)
      ? 'pip install ninja in that environment, and see that its bin is on PATH.'
      : groups['header'] === 'Python.h'
        ? 'Install the headers of Python there: apt install python3-dev'
        : /nvcc|CUDA_HOME|\.h:/.test(message)
          ? 'Install the CUDA toolkit there and set CUDA_HOME, or use an image that has it (a devel image).'
          : 'Install a C++ compiler there: apt install build-essential',
    `firstlight plan looks again; in the environment on ${where}: which ninja nvcc g++`,
  ],
  values: ({ groups }): Readonly<Record<string, string>> => {
    const tool = groups['tool'] ?? groups['shell'] ?? groups['compiler'] ?? groups['part'];
    return tool === undefined ? {} : { tool };
  },
  confidence: 0.92,
  specificity: 3,
  looks: ["FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"],
});

/** Programs by which a host fetches models and packages; no part of an engine's image. */
export const FETCHERS = 'hf|huggingface-cli|huggingface-hub|uvx?|git-lfs|git lfs|pipx?3?|hf_transfer';

const fetcher = (name: string): string => `['"‘\`]?\\b(?<${name}>${FETCHERS})\\b['"’\`]?`;

/** A host lacks what fetches the model or builds the image. */
export const fetchTools = lineSignature({
  name: 'fetch-tools',
  cause: 'build-tool-missing',
  seenOn: 'huggingface_hub 0.34 and 1.0, uv 0.5 to 0.9, git 2.43, bash and zsh',
  source: 'shells; git; scripts that look for their tools first',
  forms: [
    pattern(
      [
        'not found',
        'No such file or directory',
        'not installed',
        'not available',
        'is missing',
        'required but',
      ],
      new RegExp(
        `^(?:\\S{0,300}(?:(?:ba|z)?sh|sudo|env|exec|nohup|timeout): (?:line )?(?:\\d+: )?)${fetcher('shell')}: (?:command )?not found|command not found: ${fetcher('zsh')}$|(?:failed to run command|exec:|[Cc]ommand) ${fetcher('run')}:? (?:No such file|not found|executable file not found)|No such file or directory: ${fetcher('path')}$|(?:^|[\\s\\]:])${fetcher('named')}(?: CLI| command| client| tool)? (?:is )?(?:not (?:found|installed|available)|missing|required but)|(?:[Nn]either|[Nn]o|(?:[Cc]ould not|[Cc]annot|[Cc]an't|[Uu]nable to) find) ${fetcher('neither')}.{0,40}(?:found|installed|available)`,
      ),
    ),
    pattern(
      ['ould not find', 'annot find', 'nable to find', 'which: no '],
      new RegExp(
        `(?:[Cc]ould not|[Cc]annot|[Uu]nable to) find (?:the )?${fetcher('neither')}(?: |$)|which: no ${fetcher('path')} in`,
      ),
    ),
    pattern('is not a git command', /git: '(?<git>lfs)' is not a git command/),
  ],
  title: ({ groups }, where) => `${toolOf(groups)} is not installed on ${where}`,
  why: 'It fetches the model or the packages, and belongs to the host, not to the image of the engine.',
  advice: ({ groups }, where) => [
    /^(?:hf|hugg)/.test(toolOf(groups))
      ? `On ${where}: pip install -U "huggingface_hub[cli]", or run hf in the image of the engine: docker run --rm -v "$HOME/.cache/huggingface:/root/.cache/huggingface" IMAGE hf download MODEL`
      : /lfs/.test(toolOf(groups))
        ? `On ${where}: sudo apt install git-lfs && git lfs install`
        : `Install it on ${where}, or fetch there by other means.`,
  ],
  values: ({ groups }) => ({ tool: toolOf(groups) }),
  confidence: 0.74,
  specificity: 3,
  alternatives: [{ cause: 'package-missing-in-image', confidence: 0.25 }],
  looks: ['bash: line 1: hf: command not found'],
});

function toolOf(groups: Readonly<Record<string, string | undefined>>): string {
  const { shell, zsh, run, path, named, neither, git } = groups;
  return shell ?? zsh ?? run ?? path ?? named ?? neither ?? (git === undefined ? 'A tool' : 'git-lfs');
}
