import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';
import { FETCHERS } from './build-tools.ts';

/** Programs that compile kernels or fetch models; they have a cause of their own. */
const COMPILERS = new RegExp(`^(?:ninja|nvcc|g\\+\\+|gcc|cc|c\\+\\+|clang|cmake|make|ptxas|ld|${FETCHERS})$`);
/** Libraries whose absence says something else: of CUDA, of the driver, of RDMA. */
const OTHER_LIBRARIES = /^lib(?:cuda|cudart|nvrtc|cu\w+|nv\w+|nccl|ibverbs|mlx\w*|rdmacm|torch\w*|c10\w*)\b/;

/** A Python package or a program that the image lacks. Import notes that engines print in passing are not meant. */
export const packageMissing = lineSignature({
  name: 'package-missing',
  cause: 'package-missing-in-image',
  seenOn: 'Python 3.10 to 3.13, bash, dash, zsh, docker 24 to 29, rsync 3.2',
  source:
    "Python's import machinery and importlib.metadata; transformers dynamic_module_utils.py; shells; runc",
  forms: [
    pattern(
      ['No module named', 'PackageNotFoundError'],
      /(?:^|[\])] |: )(?:\[rank\d+\]: ?)?ModuleNotFoundError: No module named '?(?<package>(?!transformers_modules)[\w.-]{1,400})|^\S{0,300}python[\d.]{0,400}: No module named (?<module>[\w.]{1,400})|^Error while finding module specification .{0,600}No module named '(?<found>[\w.]{1,400})'|PackageNotFoundError: (?:No package metadata was found for )?(?<meta>[\w.-]{1,400})/,
    ),
    pattern(
      ['packages that were not found in your environment', 'mportError: '],
      /packages that were not found in your environment: (?<package>[\w, -]{1,400})|ImportError: .{0,600}(?:[Pp]lease (?:install|run `?pip)|`?pip install|is not installed|not found\. Please)/,
    ),
    pattern(
      [
        'command not found',
        ': not found',
        'No such file or directory',
        'ailed to run command',
        'Unknown command',
      ],
      /^(?:\S{0,300}(?:bash|sh|zsh|env|sudo|exec|nohup|timeout|fish|entrypoint\S{0,300})\b[^:]{0,400}: (?:line )?(?:\d+: )?(?:exec: )?)["'‘]?(?:\S{0,300}\/)?(?<program>[A-Za-z][\w.+-]{0,400})["'’]?: (?:command )?(?:not found|No such file or directory|executable file not found in \$PATH)|^(?:zsh: )?command not found: (?<zsh>[\w.+-]{1,400})|failed to run command ['‘"](?<run>[\w./+-]{1,400})|^Command '(?<run2>[\w.+-]{1,80})' not found|^fish: Unknown command: (?<fish>\S{1,300})/,
    ),
    pattern(
      'executable file not found in $PATH',
      /exec: "(?<program>[^"]{1,400})": executable file not found in \$PATH/,
    ),
    pattern(
      'cannot open shared object file',
      /(?:ImportError|OSError|error while loading shared libraries): (?<library>lib[\w.+-]{1,400}\.so[\d.]{0,400}): cannot open shared object file/,
    ),
  ],
  counts: ({ message, groups }) => {
    const name =
      (groups['program'] ?? groups['zsh'] ?? groups['run'] ?? groups['run2'] ?? groups['fish'] ?? '')
        .split('/')
        .at(-1) ?? '';
    if (/Ignore import error|nvidia-container|^WARNING|UserWarning/.test(message)) return false;
    if (COMPILERS.test(name) || OTHER_LIBRARIES.test(groups['library'] ?? '')) return false;
    return !/\.(?:sh|py|yaml|json|log|txt|env)$/.test(name);
  },
  title: (found, where) => `${what(found.groups)} is not installed where it is needed on ${where}`,
  why: 'What was to run cannot run without it.',
  advice: ({ groups }, where) => [
    groups['program'] === 'rsync'
      ? 'rsync must be there on both ends of a copy: sudo apt install rsync'
      : 'Install it there, use an image that has it, or correct run.command or run.venv in the recipe.',
    `See that it is there, where the rank runs on ${where}: ${(groups['package'] ?? groups['module']) ? `python3 -c "import ${what(groups).split(',')[0]}"` : `command -v ${what(groups)}`}; then firstlight up`,
  ],
  values: ({ groups }) => ({ missing: what(groups) }),
  confidence: 0.82,
  specificity: 3,
  looks: ["ModuleNotFoundError: No module named 'vllm'", 'bash: line 1: rsync: command not found'],
});

function what(groups: Readonly<Record<string, string | undefined>>): string {
  const names = ['package', 'module', 'found', 'meta', 'program', 'zsh', 'run', 'run2', 'fish', 'library'];
  const name = names.map((key) => groups[key]).find((one) => one !== undefined);
  return name?.trim() ?? 'A package';
}

/** A package has no build for the processor of a Spark, which is aarch64. */
export const noWheel = lineSignature({
  name: 'no-wheel',
  cause: 'no-wheel-for-aarch64',
  seenOn: 'pip 23 to 26, uv 0.5 to 0.9',
  source: 'pip resolution and wheel.py; uv resolver',
  forms: [
    pattern(
      ['No matching distribution found for', 'Could not find a version that satisfies the requirement'],
      /No matching distribution found for (?<package>\S{1,300})|Could not find a version that satisfies the requirement (?<wanted>\S{1,300})/,
    ),
    pattern(
      'is not a supported wheel on this platform',
      /(?<package>\S{1,300}\.whl) is not a supported wheel on this platform/,
    ),
    pattern(
      [
        'no wheels with a matching platform tag',
        'only has wheels for the following platform',
        'source distribution or wheel for the current platform',
        'no wheels with a matching Python',
      ],
      /`?(?<package>[\w.[\]=-]{1,400})`?(?: \([^)]{0,400}\))? (?:has no wheels with a matching|only has wheels for the following platform)|source distribution or wheel for the current platform/,
    ),
  ],
  title: ({ groups }, where) =>
    `${groups['package'] ?? groups['wanted'] ?? 'A package'} has no build for the processor of ${where}`,
  why: 'A Spark is ARM (aarch64), and the index holds builds of this package for x86-64 only, or for other Pythons.',
  advice: () => [
    'Use an image for arm64 that has it, take a version that has an aarch64 wheel, or build it from source; pip index versions PACKAGE shows what there is for this processor.',
    'Builds of torch for ARM with CUDA lie in their own index: pip install torch --index-url https://download.pytorch.org/whl/cu130',
  ],
  confidence: ({ message }) => (/x86_64|aarch64|platform/.test(message) ? 0.9 : 0.75),
  specificity: 3,
  looks: ['ERROR: No matching distribution found for decord'],
});

const blind = pattern(
  ['No CUDA GPUs are available', 'Failed to infer device type', 'No accelerator ('],
  /No CUDA GPUs are available|Failed to infer device type|No accelerator \(/,
);

/** torch was installed from an index where its ARM build has no CUDA. */
export const cpuOnlyTorch = lineSignature({
  name: 'cpu-only-torch',
  cause: 'cpu-only-torch-wheel',
  seenOn: 'torch 2.0 to 2.13, transformers 4',
  source: 'torch cuda/__init__.py and serialization.py; transformers utils/import_utils.py',
  forms: [
    pattern(
      [
        'not compiled with CUDA enabled',
        'Torch not compiled',
        'libtorch_cuda.so',
        'not linked with support for cuda',
      ],
      /[Tt]orch not compiled with CUDA|libtorch_cuda\.so: cannot open shared object file|not linked with support for cuda/,
    ),
    pattern(
      ['torch.cuda.is_available() is False', "from the 'CUDA' backend", 'torch.version.cuda'],
      /torch\.cuda\.is_available\(\) is False|Could not run '[^']{1,400}' with arguments from the 'CUDA' backend|torch\.version\.cuda\S{0,300}\s*[:=]?=?\s*None/,
    ),
    pattern('+cpu', /(?:torch|PyTorch)[\w\s'":=(]*\b(?<version>\d+\.\d+[\w.]*\+cpu)\b/i),
  ],
  also: [blind],
  evenWarnings: true,
  // vLLM for processors is +cpu by design: the version alone proves nothing.
  counts: ({ message }, { find }) => !/\+cpu/.test(message) || find(blind).length > 0,
  title: (_found, where) => `The torch installed on ${where} was built without CUDA`,
  why: "On ARM, pip's usual index gives a torch for the processor alone.",
  advice: (_found, where) => [
    'pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu130, or use an image that was built for the GPU.',
    `See that it worked, in the environment on ${where}: python3 -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"`,
  ],
  confidence: ({ message }) => (/\+cpu/.test(message) ? 0.93 : 0.95),
  specificity: 3,
  looks: ['AssertionError: Torch not compiled with CUDA enabled'],
});
