import type { FitInput } from './input.ts';

const GIB = 2 ** 30;

/** What the engine takes where nothing is set; `given` says which figures the user set. */
export type Assumed = {
  readonly context: number | undefined;
  readonly sequences: number;
  readonly batchedTokens: number;
  readonly fraction: number;
  /** On by itself but for Mamba hybrids in vLLM. */
  readonly prefixCaching: boolean;
};

/**
 * The engines' own defaults (engines.md 1.2, 2.1, 5.2). vLLM asks NVML for the card's size, which answers nothing on
 * unified memory, so its smallest class applies there.
 */
export function assume(input: FitInput): Assumed {
  const { engine, memory, settings, model } = input;
  const total = memory.totalBytes;
  const size = memory.unified || total === undefined ? 0 : total / GIB;
  const vllm = engine === 'vllm';
  const large = size >= 160 ? 16_384 : size >= 70 ? 8192 : 2048;
  // SGLang sees a unified host's size by torch, and cards by nvidia-smi.
  const sglangSize = total === undefined ? 80 : total / GIB;
  const chunk = sglangSize >= 60 ? 8192 : sglangSize >= 35 ? 4096 : 2048;
  const batchedTokens = settings.batchedTokens ?? (vllm ? large : chunk);
  return {
    context: input.context ?? model.architecture?.maxTokens,
    sequences: input.sequences ?? (vllm ? (size >= 70 ? 1024 : 256) : 256),
    batchedTokens,
    fraction: settings.fraction ?? (vllm ? 0.92 : sglangFraction(input, batchedTokens, total)),
    prefixCaching: settings.prefixCaching ?? !(vllm && model.architecture?.mamba !== undefined),
  };
}

/** server_args.py: what SGLang leaves free by itself, as a share of the total; less again for models that see. */
function sglangFraction(input: FitInput, chunk: number, total: number | undefined): number {
  const { tensor, pipeline } = input.layout;
  const megabytes = (total ?? 80 * GIB) / 2 ** 20;
  const batch = input.settings.eager === true ? 0 : tensor < 4 ? 256 : 512;
  const reserved = 512 + 1.5 * Math.max(chunk, 2048) + ((tensor * pipeline) / 8) * 1024 + 2 * batch + 8 * 58;
  const least = megabytes > 60_000 ? Math.max(reserved, 10_240) : reserved;
  const share = Math.min(0.95, Math.max(0.1, (megabytes - least) / megabytes));
  const sees = input.model.architecture?.vision !== undefined && input.settings.languageOnly !== true;
  return Math.round(share * (sees ? 0.925 : 1) * 1000) / 1000;
}
