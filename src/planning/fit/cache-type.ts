import type { Software } from '../../domain/recipe.ts';
import type { ModelDescription } from '../../knowledge/models/describe.ts';

/** How the KV cache keeps a value. `latentBytes` is of one token in one layer of latent attention, where it is packed. */
export type CacheType = {
  readonly valueBytes: number;
  readonly latentBytes: number | undefined;
  readonly rule: string;
  /** Of what is kept for a token, the share by which it may be more or less. */
  readonly error: number;
};

/** FORMULAS 3: 512 values of FP8 with four scales, and 64 of rotary in BF16. */
const DS_MLA_BYTES = 656;

/**
 * The cache's type by its flag. `auto` is the model's own type in vLLM; SGLang follows a checkpoint that asks for
 * FP8. A name that is not known here is taken for two bytes, and said to be.
 */
export function cacheTypeOf(name: string | undefined, engine: Software, model: ModelDescription): CacheType {
  const text = (name ?? 'auto').toLowerCase();
  const indexed = model.architecture?.latent?.indexer !== undefined;
  const own = model.architecture?.valueBytes ?? 2;
  const type = (valueBytes: number, rule: string, latentBytes?: number): CacheType => ({
    valueBytes,
    latentBytes,
    rule,
    error: 0,
  });
  if (text === 'auto' && engine === 'sglang' && model.scheme.fp8Cache)
    return type(1, 'the checkpoint asks for an FP8 cache, which SGLang follows');
  // resolve_kv_cache_dtype_string: of ModelOpt's checkpoints alone, and not in all builds that are about.
  const wish =
    engine === 'vllm' && model.scheme.fp8Cache && model.scheme.from?.startsWith('modelopt') === true
      ? '; builds that follow the checkpoint, which asks for FP8, take half of it'
      : '';
  if (text === 'auto') return type(own, `${own} bytes per value, as the model's own type${wish}`);
  if (/fp4.*mla/.test(text)) return type(0.5625, `${text}: 0.5625 bytes per value`, 0.5625 * 576);
  if (/fp8.*mla/.test(text) || (indexed && /fp8|e4m3/.test(text)))
    return type(1, `${text}: ${DS_MLA_BYTES} bytes per token and layer of latent attention`, DS_MLA_BYTES);
  if (/fp8|e4m3|e5m2|int8|mxfp8/.test(text)) return type(1, `${text}: 1 byte per value`);
  if (/fp4|int4/.test(text)) return type(0.5625, `${text}: 0.5625 bytes per value, scales counted in`);
  if (/^(?:bf16|bfloat16|fp16|float16|half)$/.test(text)) return type(2, `${text}: 2 bytes per value`);
  if (/^(?:float|fp32|float32)$/.test(text)) return type(4, `${text}: 4 bytes per value`);
  return {
    valueBytes: 2,
    latentBytes: undefined,
    error: 1,
    rule: `"${name}" is no cache type known here; taken for 2 bytes per value, which may be half or twice that`,
  };
}
