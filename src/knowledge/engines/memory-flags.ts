import { parseObject } from '../../domain/json.ts';
import { type Software, sizeBytes } from '../../domain/recipe.ts';

/** What an engine's own arguments say about memory; undefined is the engine's default. Sizes in bytes. */
export type MemoryFlags = {
  readonly fraction: number | undefined;
  readonly kvCacheDtype: string | undefined;
  readonly kvCacheBytes: number | undefined;
  readonly batchedTokens: number | undefined;
  readonly speculative: { readonly method: string; readonly tokens: number } | undefined;
  readonly eager: boolean | undefined;
  readonly blockSize: number | undefined;
  readonly prefixCaching: boolean | undefined;
  readonly languageOnly: boolean | undefined;
  readonly cpuOffloadBytes: number | undefined;
  readonly swapBytes: number | undefined;
  readonly dcp: number | undefined;
  readonly context: number | undefined;
  readonly sequences: number | undefined;
};

/** Reads the flags of vLLM (arg_utils.py) or SGLang (server_args.py, engines.md 1.2) that decide about memory. */
export function memoryFlags(args: readonly string[], software: Software): MemoryFlags {
  const text = (...flags: readonly string[]): string | undefined => flagValue(args, flags);
  const number = (...flags: readonly string[]): number | undefined => {
    const value = Number(text(...flags));
    return Number.isFinite(value) && value > 0 ? value : undefined;
  };
  const has = (...flags: readonly string[]): true | undefined =>
    args.some((arg) => flags.includes(arg)) ? true : undefined;
  const gib = (...flags: readonly string[]): number | undefined => {
    const value = number(...flags);
    return value === undefined ? undefined : value * 2 ** 30;
  };
  const common = {
    kvCacheDtype: text('--kv-cache-dtype'),
    languageOnly: has('--language-model-only'),
    cpuOffloadBytes: gib('--cpu-offload-gb'),
  };
  if (software === 'vllm') {
    return {
      ...common,
      fraction: number('--gpu-memory-utilization'),
      kvCacheBytes: size(text('--kv-cache-memory-bytes')),
      batchedTokens: number('--max-num-batched-tokens'),
      speculative: vllmSpeculative(text('--speculative-config', '-sc')),
      eager: has('--enforce-eager'),
      blockSize: number('--block-size'),
      prefixCaching: has('--no-enable-prefix-caching') ? false : has('--enable-prefix-caching'),
      swapBytes: gib('--swap-space'),
      dcp: number('--decode-context-parallel-size', '-dcp'),
      context: number('--max-model-len'),
      sequences: number('--max-num-seqs'),
    };
  }
  const method = text('--speculative-algorithm');
  return {
    ...common,
    fraction: number('--mem-fraction-static'),
    kvCacheBytes: undefined,
    batchedTokens: number('--chunked-prefill-size'),
    speculative:
      method === undefined
        ? undefined
        : {
            method: method.toLowerCase(),
            tokens: number('--speculative-num-draft-tokens', '--speculative-num-steps') ?? 1,
          },
    eager: has('--disable-cuda-graph'),
    blockSize: number('--page-size'),
    prefixCaching: has('--disable-radix-cache') ? false : undefined,
    swapBytes: undefined,
    dcp: number('--dcp-size'),
    context: number('--context-length'),
    sequences: number('--max-running-requests'),
  };
}

/** Value of `--flag value` or `--flag=value`, the last one, as argparse reads it. */
function flagValue(args: readonly string[], flags: readonly string[]): string | undefined {
  let value: string | undefined;
  args.forEach((arg, index) => {
    for (const flag of flags) {
      if (arg === flag) value = args[index + 1];
      else if (arg.startsWith(`${flag}=`)) value = arg.slice(flag.length + 1);
    }
  });
  return value;
}

/** Plain bytes, or with a unit as vLLM takes it: 4G, 4GiB. */
function size(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const bytes = sizeBytes(text.replace(/^(\d+(?:\.\d+)?)([KMGT])$/, '$1$2iB'));
  return Number.isFinite(bytes) && bytes > 0 ? bytes : undefined;
}

function vllmSpeculative(text: string | undefined): MemoryFlags['speculative'] {
  const config = text === undefined ? undefined : parseObject(text);
  if (config === undefined) return undefined;
  const method = config['method'];
  const tokens = config['num_speculative_tokens'];
  return {
    method: typeof method === 'string' ? method : 'draft_model',
    tokens: typeof tokens === 'number' && tokens > 0 ? tokens : 1,
  };
}
