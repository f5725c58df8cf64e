import { lineSignature } from './line-signature.ts';
import { pattern } from './signature.ts';

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
        `(?:No such file or directory: ['"]?(?:/\\S*/)?${TOOL}['"]?$|^(?:/bin/)?(?:ba)?sh: (?:line )?\\d*:? ?(?:/\\S*/)?${TOOL.replace('tool', 'shell')}: (?:command )?not found)`,
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
      /fatal error: (?<header>Python\.h|cuda\w*\.h|cu\w+\.h|nv\w+\.h|cub\/\S+|curand\S*|cublas\S*): No such file|cannot find -lcuda(?:rt)?|libcuda\.so cannot found|error trying to exec '(?<tool>\S+)'|cannot execute ['‘"]?(?<part>cc1plus|cicc|as|ld)/,
    ),
  ],
  unless: [],
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
