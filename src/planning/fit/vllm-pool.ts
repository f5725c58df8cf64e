import type { Cache, CacheKind } from './cache-kinds.ts';
import { groupCounts, keyOf, pagesOf } from './vllm-groups.ts';

export type Pool = {
  readonly blockTokens: number;
  /** Bytes that one request of the whole length takes, padding counted in. */
  readonly requestBytes: number;
  /** Pages there are for state: no more sequences than that are taken. */
  readonly stateBlocks: number | undefined;
  readonly maxConcurrency: number;
};

type Asked = {
  readonly cache: Cache;
  readonly availableBytes: number;
  readonly context: number;
  readonly batchedTokens: number;
  /**
   * Steps whose tokens a sliding window keeps besides its own: one, and two since 0.26, which frees a window only
   * when the step behind is done (max_in_flight_tokens, vllm#47728).
   */
  readonly steps?: 1 | 2;
  readonly draftTokens: number;
  readonly prefixCaching: boolean;
  readonly blockSize: number | undefined;
  readonly dcp: number;
};

/**
 * vLLM's pool of pages (FORMULAS 5, kv_cache_utils.py). All layers share one page size; layers of a kind are dealt
 * into groups of the same number of layers over the whole model, and the groups' padding is real memory. A pipeline
 * stage holds its own layers of every group, and the stage with the fewest blocks decides.
 */
export function vllmPool(of: Asked): Pool {
  const { cache, context, dcp } = of;
  const { whole } = cache;
  const fixed = cache.stepBytesPerToken * Math.min(of.batchedTokens, context);
  const uneven = whole.some((kind) => kind.name === 'state' || kind.window !== undefined);
  if (!uneven) return plain(of, fixed);
  const mamba = whole.some((kind) => kind.name === 'state' && kind.of === 'mamba');
  // Prefix caching runs Mamba layers in mode `all`: a state for every block, whose size follows the kernel's chunk.
  const everyBlock = mamba && of.prefixCaching;
  const { page, block, tokensOf } = pagesOf(cache, of.blockSize, everyBlock);
  const groups = groupCounts(whole);
  const count = (kind: CacheKind): number => groups.get(keyOf(kind)) ?? 1;
  // Mode `align`, which prefix caching switches on, keeps one more slot (FORMULAS 5.4).
  const slots = (of.prefixCaching ? 2 : 1) + of.draftTokens;
  const needed = whole.reduce((sum, kind) => {
    if (kind.name === 'state')
      return sum + count(kind) * (everyBlock ? Math.ceil(context / block) + of.draftTokens : slots);
    const tokens = tokensOf(kind);
    const all = Math.ceil(context / (tokens * dcp));
    if (kind.window === undefined) return sum + count(kind) * all;
    // Drafters with a window are younger than 0.26.
    const steps = kind.name === 'draft' ? 2 : (of.steps ?? 1);
    const kept = Math.min(kind.window - 1 + steps * of.batchedTokens, context);
    return sum + count(kind) * (Math.ceil(kept / tokens) + 1);
  }, 0);
  const deep = Math.max(1, ...cache.kinds.map((kind) => Math.ceil(kind.layers / count(kind))));
  const blocks = Math.max(0, Math.floor(of.availableBytes / (page * deep)));
  const full = whole.find((kind) => kind.name === 'full');
  return {
    blockTokens: full === undefined || full.name === 'state' ? block : tokensOf(full),
    requestBytes: needed * page * deep + fixed,
    stateBlocks: whole.some(({ name }) => name === 'state') ? blocks : undefined,
    maxConcurrency: needed === 0 ? 0 : blocks / needed,
  };
}

/** Nothing but full attention is one group, whatever the widths: a block is one page of each layer. */
function plain(of: Asked, fixed: number): Pool {
  const step = of.blockSize ?? 16;
  const blockBytes = of.cache.kinds.reduce(
    (sum, kind) => sum + (kind.name === 'state' ? 0 : step * kind.layers * kind.tokenBytes),
    0,
  );
  const needed = Math.ceil(of.context / (step * of.dcp));
  const requestBytes = needed * blockBytes + fixed;
  const available = Math.max(0, of.availableBytes);
  const blocks = Math.floor(available / Math.max(1, blockBytes));
  return {
    blockTokens: step,
    requestBytes,
    stateBlocks: undefined,
    maxConcurrency: fixed > 0 ? available / Math.max(1, requestBytes) : blocks / Math.max(1, needed),
  };
}
