import type { FitInput } from './input.ts';
import { sglangChunk, sglangFraction } from './sglang-defaults.ts';

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
  const batchedTokens = settings.batchedTokens ?? (vllm ? large : sglangChunk(total));
  return {
    context: input.context ?? model.architecture?.maxTokens,
    sequences: input.sequences ?? (vllm ? (size >= 70 ? 1024 : 256) : 256),
    batchedTokens,
    fraction: settings.fraction ?? (vllm ? 0.92 : sglangFraction(input, batchedTokens)),
    prefixCaching: settings.prefixCaching ?? !(vllm && model.architecture?.mamba !== undefined),
  };
}
