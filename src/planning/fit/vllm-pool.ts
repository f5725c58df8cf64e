import type { Cache, CacheKind } from './cache-kinds.ts';

type Attention = Extract<CacheKind, { tokenBytes: number }>;

export type Pool = {
  readonly blockTokens: number;
  /** Bytes that one request of the whole length takes, padding counted in. */
  readonly requestBytes: number;
  /** Pages there are for state: no more sequences than that are taken. */
  readonly stateBlocks: number | undefined;
  readonly maxConcurrency: number;
};

/**
 * vLLM's pool of pages (FORMULAS 5, kv_cache_utils.py). All layers share one page size; layers of a kind are dealt
 * into groups of the same number of layers, and the groups' padding is real memory.
 */
export function vllmPool(of: {
  readonly cache: Cache;
  readonly availableBytes: number;
  readonly context: number;
  readonly batchedTokens: number;
  readonly draftTokens: number;
  readonly prefixCaching: boolean;
  readonly blockSize: number | undefined;
  readonly dcp: number;
}): Pool {
  const { cache, context, dcp } = of;
  const mamba = cache.kinds.some((kind) => kind.name === 'state' && kind.of === 'mamba');
  // Prefix caching runs Mamba layers in mode `all`: a state for every block, whose size follows the kernel's chunk.
  const everyBlock = mamba && of.prefixCaching;
  const step = of.blockSize ?? (everyBlock ? 128 : 16);
  const attention = cache.kinds.filter((kind): kind is Attention => kind.name !== 'state');
  const states = cache.kinds.filter((kind) => kind.name === 'state');
  const fixed = cache.stepBytesPerToken * Math.min(of.batchedTokens, context);
  if (states.length === 0 && attention.every(({ window }) => window === undefined)) {
    const blockBytes = step * attention.reduce((sum, kind) => sum + kind.layers * kind.tokenBytes, 0);
    const blocks = Math.ceil(context / (step * dcp));
    return plain(of.availableBytes, blockBytes, blocks, step, fixed);
  }
  const widest = Math.max(...attention.map(({ tokenBytes }) => tokenBytes), 1);
  const slot = Math.max(0, ...states.map(({ slotBytes }) => slotBytes));
  const block = slot === 0 ? step : step * Math.ceil(slot / (step * widest));
  const page = block * widest;
  const counts = cache.kinds.map(({ layers }) => layers);
  const smallest = Math.min(...counts);
  const largest = Math.max(...counts);
  const group = largest < 1.5 * smallest ? largest : smallest;
  // Mode `align`, which prefix caching switches on, keeps one more slot (FORMULAS 5.4).
  const slots = (of.prefixCaching ? 2 : 1) + of.draftTokens;
  const needed = cache.kinds.reduce((sum, kind) => {
    const groups = Math.ceil(kind.layers / group);
    if (kind.name === 'state')
      return sum + groups * (everyBlock ? Math.ceil(context / block) + of.draftTokens : slots);
    const tokens = Math.max(1, page / kind.tokenBytes);
    const all = Math.ceil(context / (tokens * dcp));
    if (kind.window === undefined) return sum + groups * all;
    const kept = Math.min(kind.window - 1 + of.batchedTokens, context);
    return sum + groups * Math.min(Math.ceil(kept / tokens) + 1, all + 1);
  }, 0);
  const blocks = Math.max(0, Math.floor(of.availableBytes / (page * group)));
  const full = attention.find(({ name }) => name === 'full');
  return {
    blockTokens: full === undefined ? block : Math.max(1, Math.round(page / full.tokenBytes)),
    requestBytes: needed * page * group + fixed,
    stateBlocks: states.length === 0 ? undefined : blocks,
    maxConcurrency: needed === 0 ? 0 : blocks / needed,
  };
}

function plain(available: number, blockBytes: number, needed: number, step: number, fixed: number): Pool {
  const requestBytes = needed * blockBytes + fixed;
  const blocks = Math.max(0, Math.floor(available / Math.max(1, blockBytes)));
  return {
    blockTokens: step,
    requestBytes,
    stateBlocks: undefined,
    maxConcurrency:
      fixed > 0 ? Math.max(0, available) / Math.max(1, requestBytes) : blocks / Math.max(1, needed),
  };
}
