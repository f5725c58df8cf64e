import type { Cache } from './cache-kinds.ts';
import type { Assumed } from './defaults.ts';
import type { Draft } from './draft.ts';
import type { FitInput } from './input.ts';
import { vllmPool } from './vllm-pool.ts';

/** Slots of state that SGLang keeps for a request with the radix cache. */
const SGLANG_SLOTS = 3;

/** Bytes that one request of the whole context takes on a rank, as the engine deals its cache out. */
export function requestBytes(input: FitInput, cache: Cache, assumed: Assumed, draft: Draft): number {
  const context = assumed.context ?? 0;
  if (context === 0) return 0;
  if (input.engine === 'vllm')
    return vllmPool({
      cache,
      availableBytes: 0,
      context,
      batchedTokens: assumed.batchedTokens,
      draftTokens: draft.tokens,
      prefixCaching: assumed.prefixCaching,
      blockSize: input.settings.blockSize,
      dcp: input.settings.dcp ?? 1,
    }).requestBytes;
  const kept = cache.kinds.reduce((sum, kind) => {
    if (kind.name === 'state') return sum;
    return sum + kind.layers * kind.tokenBytes * Math.min(context, kind.window ?? context);
  }, 0);
  return kept + cache.stateBytes * (assumed.prefixCaching ? SGLANG_SLOTS : 1);
}
