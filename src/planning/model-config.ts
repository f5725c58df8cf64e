import type { ModelFacts } from '../domain/facts.ts';
import { valueIf } from '../domain/facts.ts';

/** What planning reads out of a model's config.json; undefined where it is not said. */
export type ModelShape = {
  readonly modelType: string | undefined;
  readonly layers: number;
  /** Layers with a KV cache that grows with the text; the rest keep a state of fixed size. */
  readonly fullLayers: number;
  /** Layers whose cache ends at `window` tokens. */
  readonly slidingLayers: number;
  readonly window: number;
  readonly linearLayers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Latent attention: rank and rope dimension of the one compressed cache. */
  readonly latent: { readonly rank: number; readonly rope: number } | undefined;
  /** Bytes of one linear layer's state, at tensor size 1: convolution and recurrent part. */
  readonly linearState: { readonly keyHeads: number; readonly valueHeads: number; readonly bytes: number };
  readonly experts: number;
  readonly expertWidth: number | undefined;
  readonly denseWidth: number | undefined;
  readonly maxTokens: number | undefined;
  readonly quantization:
    | { readonly method: string; readonly block: readonly [number, number] | undefined }
    | undefined;
};

type Json = Readonly<Record<string, unknown>>;

/** Size of the model in bytes: the index's total, else its weight files. */
export function weightBytes(
  model: ModelFacts,
): { readonly bytes: number; readonly from: 'index' | 'files' } | undefined {
  if (!model.present) return undefined;
  const index = valueIf(model.indexBytes);
  if (index !== undefined && index > 0) return { bytes: index, from: 'index' };
  const files = model.files.filter((file) => /\.(?:safetensors|bin|gguf)$/.test(file.name));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return bytes > 0 ? { bytes, from: 'files' } : undefined;
}

/**
 * Reads a config.json. Multimodal models keep the language model's values under `text_config` (Qwen3.5, Gemma) or
 * `llm_config`; quantisation stays outside. Undefined when the values that every size needs are not there.
 */
export function shapeOf(config: Json): ModelShape | undefined {
  const text = objectAt(config, 'text_config') ?? objectAt(config, 'llm_config') ?? config;
  const number = (...names: readonly string[]): number | undefined => {
    for (const name of names) {
      const value = text[name];
      if (typeof value === 'number' && Number.isFinite(value)) return value;
    }
    return undefined;
  };
  const layers = number('num_hidden_layers', 'n_layer');
  const hidden = number('hidden_size', 'n_embd');
  const heads = number('num_attention_heads', 'n_head');
  if (layers === undefined || hidden === undefined || heads === undefined || heads === 0) return undefined;
  const kinds = layerKinds(text, layers, number('full_attention_interval'));
  const latentRank = number('kv_lora_rank');
  const valueHeads = number('linear_num_value_heads') ?? 0;
  const keyHeads = number('linear_num_key_heads') ?? 0;
  return {
    modelType: stringAt(config, 'model_type'),
    layers,
    ...kinds,
    window: number('sliding_window') ?? 0,
    hidden,
    heads,
    kvHeads: number('num_key_value_heads') ?? heads,
    headDim: number('head_dim') ?? Math.floor(hidden / heads),
    latent:
      latentRank === undefined ? undefined : { rank: latentRank, rope: number('qk_rope_head_dim') ?? 64 },
    linearState: {
      keyHeads,
      valueHeads,
      bytes: linearStateBytes({
        keyHeads,
        valueHeads,
        keyDim: number('linear_key_head_dim') ?? 0,
        valueDim: number('linear_value_head_dim') ?? 0,
        kernel: number('linear_conv_kernel_dim') ?? 0,
        ssmBytes: stringAt(text, 'mamba_ssm_dtype')?.includes('16') ? 2 : 4,
      }),
    },
    experts: number('num_experts', 'n_routed_experts', 'num_local_experts') ?? 0,
    expertWidth: number('moe_intermediate_size'),
    denseWidth: number('intermediate_size'),
    maxTokens: number('max_position_embeddings'),
    quantization: quantizationOf(
      objectAt(config, 'quantization_config') ?? objectAt(text, 'quantization_config'),
    ),
  };
}

/** FORMULAS 4: convolution window in 2-byte values, recurrent state in the model's own type. */
function linearStateBytes(of: {
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly kernel: number;
  readonly ssmBytes: number;
}): number {
  const channels = 2 * of.keyHeads * of.keyDim + of.valueHeads * of.valueDim;
  return channels * Math.max(0, of.kernel - 1) * 2 + of.valueHeads * of.keyDim * of.valueDim * of.ssmBytes;
}

function layerKinds(
  text: Json,
  layers: number,
  interval: number | undefined,
): { readonly fullLayers: number; readonly slidingLayers: number; readonly linearLayers: number } {
  const types = text['layer_types'];
  if (Array.isArray(types) && types.length === layers) {
    const count = (pattern: RegExp): number => types.filter((type) => pattern.test(String(type))).length;
    const slidingLayers = count(/sliding|local/);
    const linearLayers = count(/linear|mamba|ssm|recurrent/);
    return { fullLayers: layers - slidingLayers - linearLayers, slidingLayers, linearLayers };
  }
  if (interval !== undefined && interval > 0 && typeof text['linear_num_value_heads'] === 'number') {
    const fullLayers = Math.floor(layers / interval);
    return { fullLayers, slidingLayers: 0, linearLayers: layers - fullLayers };
  }
  return { fullLayers: layers, slidingLayers: 0, linearLayers: 0 };
}

function quantizationOf(config: Json | undefined): ModelShape['quantization'] {
  if (config === undefined) return undefined;
  const block = config['weight_block_size'];
  const [rows, columns] = Array.isArray(block) ? block : [];
  return {
    method: stringAt(config, 'quant_method') ?? 'unknown',
    block: typeof rows === 'number' && typeof columns === 'number' ? [rows, columns] : undefined,
  };
}

function objectAt(from: Json, key: string): Json | undefined {
  const value = from[key];
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : undefined;
}

function stringAt(from: Json, key: string): string | undefined {
  const value = from[key];
  return typeof value === 'string' ? value : undefined;
}
