import { GIB, rankWeightBytes, type Split, sequenceBytes, tokenBytes } from './memory-model.ts';
import type { Model } from './model-folder.ts';
import { PythonError } from './python-error.ts';

/** `101.5`, `121.69`: vLLM rounds to two decimals and shows no trailing zeros. */
export const gib = (bytes: number): string => String(Number((bytes / GIB).toFixed(2)));

/** vLLM's check at start: what is free must be at least total · utilization. Throws in its words. */
export function checkFree(freeBytes: number, totalBytes: number, utilization: number): number {
  const requested = Math.ceil(totalBytes * utilization);
  if (freeBytes < requested)
    throw new PythonError(
      'memory-check',
      'ValueError',
      `Free memory on device cuda:0 (${gib(freeBytes)}/${gib(totalBytes)} GiB) on startup is less than desired GPU memory utilization (${utilization}, ${gib(requested)} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.`,
    );
  return requested;
}

const NON_TORCH_BYTES = 0.6 * GIB;
const ACTIVATION_BYTES = 1.4 * GIB;

/** What is left for the KV cache by engines.md §5.1; may be negative. */
export function kvBudget(
  model: Model,
  split: Split,
  of: {
    readonly requestedBytes: number;
    readonly graphBytes: number;
    readonly share: number;
    /** How much others took since the start: it cannot be told from what the engine took outside torch. */
    readonly othersBytes: number;
  },
): number {
  const overhead = (NON_TORCH_BYTES + ACTIVATION_BYTES) * of.share + of.graphBytes + of.othersBytes;
  return of.requestedBytes - rankWeightBytes(model, split) - overhead;
}

export type KvPlan = { readonly tokens: number; readonly maxModelLen: number; readonly concurrency: number };

/**
 * Tokens that fit, and how many longest requests; throws in vLLM's words when not even one fits. A hybrid's state
 * counts once per request. `maxModelLen` undefined fits it to the memory.
 */
export function planKv(
  model: Model,
  split: Split,
  want: {
    readonly budgetBytes: number;
    readonly elementBytes: number;
    readonly maxModelLen: number | undefined;
  },
): KvPlan {
  const perToken = tokenBytes(model, split, want.elementBytes);
  const state = sequenceBytes(model, split);
  const perRequest = state.convolution + state.ssm;
  if (want.budgetBytes <= 0)
    throw new PythonError(
      'kv-check',
      'ValueError',
      'No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
    );
  const longest = Math.floor((want.budgetBytes - perRequest) / perToken / 16) * 16;
  const maxModelLen = want.maxModelLen ?? Math.min(model.maxPositions, longest);
  const need = maxModelLen * perToken + perRequest;
  if (need > want.budgetBytes || maxModelLen <= 0)
    throw new PythonError(
      'kv-check',
      'ValueError',
      `To serve at least one request with the model's max seq len (${maxModelLen}), ${gib(need)} GiB KV cache is needed, which is larger than the available KV cache memory (${gib(want.budgetBytes)} GiB). Based on the available memory, the estimated maximum model length is ${Math.max(0, longest)}. Try increasing \`gpu_memory_utilization\` or decreasing \`max_model_len\` when initializing the engine.`,
    );
  const concurrency = want.budgetBytes / need;
  return { tokens: Math.floor(concurrency * maxModelLen), maxModelLen, concurrency };
}

/** Tokens per attention block so that its page is no smaller than a state page; undefined for plain models. */
export function hybridBlock(model: Model, split: Split, elementBytes: number): number | undefined {
  const linear = model.linear;
  if (linear === undefined) return undefined;
  const state = sequenceBytes(model, split);
  const page = (state.convolution + state.ssm) / (linear.layers / split.pipeline);
  const perToken = tokenBytes(model, split, elementBytes) / Math.ceil(model.fullLayers / split.pipeline);
  return Math.ceil(page / perToken / 16) * 16;
}
