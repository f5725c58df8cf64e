import type { Cache } from './cache-kinds.ts';

/** Share of what is left that goes to the state pool, `--mamba-full-memory-ratio`. */
const STATE_RATIO = 0.9;
/** Tokens of sliding layers per token of full ones, `--swa-full-tokens-ratio`. */
const SLIDING_RATIO = 0.8;

export type SglangPool = {
  readonly tokens: number;
  /** Slots of state; undefined for models without. */
  readonly slots: number | undefined;
  /** Requests at once that the state pool allows. */
  readonly requests: number | undefined;
};

/**
 * SGLang's pools out of what is left after the weights (FORMULAS 7, kv_cache_configurator.py): state first, then as
 * many tokens as the rest holds.
 */
export function sglangPool(of: {
  readonly cache: Cache;
  readonly restBytes: number;
  readonly draftTokens: number;
  readonly prefixCaching: boolean;
}): SglangPool {
  const { cache, restBytes } = of;
  const perToken = cache.kinds.reduce((sum, kind) => {
    if (kind.name === 'state') return sum;
    return sum + kind.layers * kind.tokenBytes * (kind.window === undefined ? 1 : SLIDING_RATIO);
  }, 0);
  // Without any full layer the windows alone count, and are not scaled.
  const full = cache.kinds.some((kind) => kind.name !== 'state' && kind.window === undefined);
  const token = Math.max(1, full ? perToken : perToken / SLIDING_RATIO);
  if (cache.stateBytes === 0)
    return { tokens: Math.max(0, Math.floor(restBytes / token)), slots: undefined, requests: undefined };
  // A request keeps three slots with the radix cache, and the states of proposed tokens between them.
  const perRequest = of.prefixCaching ? 3 : 1;
  const slot = cache.stateBytes * (1 + of.draftTokens / perRequest);
  const share = (restBytes * STATE_RATIO) / (1 + STATE_RATIO);
  const slots = Math.max(0, Math.floor((share - slot) / slot));
  const left = restBytes - (slots + 1) * slot;
  return {
    tokens: Math.max(0, Math.floor(left / token)),
    slots,
    requests: Math.floor(slots / perRequest),
  };
}
