import { type Pattern, pattern } from '../knowledge/signatures/signature.ts';

/** Lines in which a rank or a launcher tells how it was started. */
export const COMMAND_LINES: Pattern = pattern(
  [
    'non-default args: ',
    'server_args=ServerArgs(',
    'vllm serve ',
    'sglang.launch_server',
    'sglang serve ',
    'torchrun ',
    'docker run ',
    'podman run ',
    'ray start ',
  ],
  /non-default args: |server_args=ServerArgs\(|\b(?:vllm|sglang) serve |sglang\.launch_server|\btorchrun |\b(?:docker|podman) run |\bray start /,
);

/** Lines in which variables of the environment are named. */
export const ENV_LINES: Pattern = pattern(
  [
    'NCCL_',
    'GLOO_',
    'VLLM_',
    'SGLANG_',
    'SGL_',
    'RAY_',
    'UCX_',
    'HF_',
    'CUDA_',
    'TRITON_',
    'PYTORCH_',
    'TORCH_',
    'MASTER_',
    'MAX_JOBS',
  ],
  /\b[A-Z][A-Z0-9_]{3,}(?:=| set by environment to | set to )/,
);

/** Value of a variable in such a line: `NAME=value`, or as NCCL says it. */
export function envIn(message: string, name: string): string | undefined {
  const match = new RegExp(
    `(?:^|[^A-Z0-9_])${name}(?:=| set by environment to | set to )("[^"]*"|'[^']*'|[^\\s'",;]+)`,
  ).exec(message);
  return match?.[1]?.replace(/^["']|["'.]$/g, '');
}

/** What versions are printed as: what is versioned, and the line. */
export const VERSION_LINES: readonly { readonly what: string; readonly form: Pattern }[] = [
  { what: 'vllm', form: pattern('vLLM API server version', /vLLM API server version (?<version>[\w.+-]+)/) },
  { what: 'vllm', form: pattern('LLM engine (v', /LLM engine \(v(?<version>[\w.+-]+)\)/) },
  {
    what: 'sglang',
    form: pattern(
      ['sglang.__version__', 'SGLang version', 'sglang=='],
      /(?:sglang\.__version__\W+|SGLang version:? |sglang==)v?(?<version>\d[\w.+-]*)/,
    ),
  },
  {
    what: 'nccl',
    form: pattern(
      ['NCCL version ', 'vLLM is using nccl=='],
      /(?:NCCL version |using nccl==)(?<version>\d[\w.]*)/,
    ),
  },
  {
    what: 'driver',
    form: pattern(
      ['Driver Version: ', 'Kernel Module', 'cudaDriverVersion '],
      /(?:Driver Version: |Kernel Module\s+(?:for \S+\s+)?|cudaDriverVersion )(?<version>\d[\d.]*)/,
    ),
  },
  { what: 'cuda', form: pattern('CUDA Version: ', /CUDA Version: (?<version>[\d.]+)/) },
  { what: 'kernel', form: pattern('Linux version ', /Linux version (?<version>\d\S+)/) },
  {
    what: 'torch',
    form: pattern(['torch==', 'PyTorch version'], /(?:torch==|PyTorch version\W+)(?<version>\d[\w.+-]*)/),
  },
  {
    what: 'ray',
    form: pattern(
      ['ray==', 'Ray version', 'ray, version'],
      /(?:ray==|[Rr]ay,? version:? )(?<version>\d[\w.]*)/,
    ),
  },
  {
    what: 'transformers',
    form: pattern(
      ['transformers==', 'transformers version'],
      /transformers(?:==| version:? )v?(?<version>\d[\w.]*)/,
    ),
  },
];

/** All of these, to be looked for in the same pass as the signatures' own. */
export const AMBIENT: readonly Pattern[] = [
  COMMAND_LINES,
  ENV_LINES,
  ...VERSION_LINES.map(({ form }) => form),
];
