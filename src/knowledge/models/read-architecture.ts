import type { Architecture, Experts, Heads, Latent, Layer, Linear, Mamba, Vision } from './architecture.ts';
import { type Fields, fieldsOf, type Json } from './fields.ts';
import { layersOf } from './layers.ts';

/** Types whose conventions are written here; others are read by the common fields, and their sum is held against the files. */
const FAMILIAR =
  /^(?:llama|mistral|mixtral|qwen2|qwen2_moe|qwen2_5_vl|qwen3|qwen3_moe|qwen3_next|qwen3_5|qwen3_5_moe|qwen3_vl|qwen3_vl_moe|deepseek_v2|deepseek_v3|deepseek_v32|deepseek_v4|deepseek_ref|kimi_k2|kimi_k25|kimi_linear|glm4|glm4_moe|glm4_moe_lite|glm_moe_dsa|minimax_m2|gpt_oss|gemma2|gemma3|gemma4|nemotron_h|laguna|muse_glimmer|phi3|olmo2|granite)(?:_text)?$/;

/** Blocks for further tokens: published models have one to three. */
const MOST_MTP = 8;

/**
 * The architecture in a config.json; multimodal models keep the language model's values under `text_config` or
 * `llm_config`. Undefined where the values that every size needs are not there.
 */
export function architectureOf(config: Json): Architecture | undefined {
  const outer = fieldsOf(config);
  const text = outer.object('text_config') ?? outer.object('llm_config') ?? config;
  const from = fieldsOf(text);
  const count = from.number('num_hidden_layers', 'n_layer');
  const hidden = from.number('hidden_size', 'n_embd');
  const heads = from.number('num_attention_heads', 'n_head');
  const vocab = from.number('vocab_size') ?? outer.number('vocab_size');
  if (!count || !hidden || !heads || !vocab || count > 2000) return undefined;
  // Half a head is none: such a config is not one of a model.
  const sizes = [count, hidden, heads, vocab, from.number('num_key_value_heads'), from.number('head_dim')];
  if (sizes.some((size) => size !== undefined && !Number.isInteger(size))) return undefined;
  const type = (from.text('model_type') ?? outer.text('model_type') ?? '').toLowerCase();
  const latent = latentOf(from, count);
  // Kimi K3 is a Kimi Linear whose experts work in half the width, and whose gates are whole.
  const k3 = [from, outer].some((one) =>
    one.list('architectures')?.some((name) => /^KimiK3/.test(String(name))),
  );
  const linear = linearOf(from, type.startsWith('kimi') && !k3);
  const mamba = mambaOf(from);
  const full = {
    heads,
    kvHeads: from.number('num_key_value_heads') ?? heads,
    headDim: headDim(from, hidden, heads),
  };
  const partial = from.number('partial_rotary_factor') ?? ropeNumber(from, 'partial_rotary_factor');
  const layers = layersOf(from, count);
  if (layers === undefined) return undefined;
  // Sizes alone would not tell: attention is a small part of a mixture, and all of what a request keeps.
  if (!FAMILIAR.test(type) && mixesOtherwise(text, layers)) return undefined;
  const global = {
    ...full,
    kvHeads: from.number('num_global_key_value_heads') || full.kvHeads,
    headDim: from.number('global_head_dim') || full.headDim,
  };
  return {
    type,
    familiar: FAMILIAR.test(type),
    layers,
    hidden,
    full: global,
    sliding: full,
    window: from.number('sliding_window') ?? 0,
    gatedAttention: from.flag('attn_output_gate') ?? type.startsWith('qwen3_next'),
    latent,
    compressed: compressedOf(from),
    linear,
    mamba,
    denseWidth: from.number('intermediate_size', 'ffn_dim', 'n_inner') ?? denseGuess(from),
    matrices: type.startsWith('nemotron_h') ? 2 : 3,
    experts: expertsOf(from, type, k3 ? hidden / 2 : undefined),
    vocab,
    tied: from.flag('tie_word_embeddings') ?? outer.flag('tie_word_embeddings') ?? /^gemma/.test(type),
    maxTokens: from.number('max_position_embeddings', 'max_sequence_length', 'n_positions'),
    mtpLayers: within(
      from.number('mtp_num_hidden_layers', 'num_nextn_predict_layers', 'num_mtp_modules'),
      MOST_MTP,
    ),
    vision: visionOf(outer.object('vision_config'), hidden),
    rotary: rotaryOf({ type, layers, full: global, sliding: full, partial, latent }),
    sharedKvLayers: within(from.number('num_kv_shared_layers'), count - 1),
    valueBytes:
      (from.text('dtype', 'torch_dtype') ?? outer.text('dtype', 'torch_dtype')) === 'float32' ? 4 : 2,
  };
}

/** Names of figures that tell of layers which are no usual attention. */
const OTHER_MIXERS =
  /mamba|ssm|rwkv|lightning|attn_type|attn_layer|layer_group|layers?_block|block_types?$|hybrid|recurrent|retention|delta|linear_att|conv_|full_att|cross_att|lru_|encoder_layers/i;

/** Whether a config of a type not known here speaks of such layers, and none of them was read. */
function mixesOtherwise(text: Json, layers: readonly Layer[]): boolean {
  return (
    Object.entries(text).some(([key, value]) => OTHER_MIXERS.test(key) && Boolean(value)) &&
    !layers.some(({ mixer }) => mixer === 'linear' || mixer === 'mamba')
  );
}

/** A figure up to the most that can be; more of it is no figure, and counts as none. */
function within(value: number | undefined, most: number): number {
  return value !== undefined && Number.isInteger(value) && value <= most ? value : 0;
}

function headDim(from: Fields, hidden: number, heads: number): number {
  return from.number('head_dim') || Math.floor(hidden / heads);
}

/** The first dense layer of a mixture whose config does not say its width: as wide as the experts it stands for. */
function denseGuess(from: Fields): number {
  const width = from.number('moe_intermediate_size') ?? 0;
  const active = (from.number('num_experts_per_tok') ?? 6) + (from.number('n_shared_experts') ?? 0);
  return width * active;
}

function latentOf(from: Fields, layers: number): Latent | undefined {
  const rank = from.number('kv_lora_rank');
  if (!rank) return undefined;
  const indexHeads = from.number('index_n_heads');
  const types = from.list('indexer_types');
  return {
    rank,
    rope: from.number('qk_rope_head_dim') ?? 64,
    queryRank: from.number('q_lora_rank') || undefined,
    nope: from.number('qk_nope_head_dim') ?? 128,
    value: from.number('v_head_dim') ?? 128,
    indexer: indexHeads
      ? {
          heads: indexHeads,
          dim: from.number('index_head_dim') ?? 128,
          owners: types?.filter((type) => type === 'full').length ?? layers,
        }
      : undefined,
  };
}

function compressedOf(from: Fields): Architecture['compressed'] {
  const ratios = from
    .list('compress_ratios')
    ?.map((ratio) => (typeof ratio === 'number' && ratio > 0 ? ratio : 0));
  if (ratios === undefined || ratios.length === 0) return undefined;
  return {
    ratios,
    latent: {
      queryRank: from.number('q_lora_rank') ?? 1024,
      outputRank: from.number('o_lora_rank') ?? 1024,
      outputGroups: from.number('o_groups') ?? 8,
      indexHeads: from.number('index_n_heads') ?? 64,
      indexDim: from.number('index_head_dim') ?? 128,
    },
  };
}

function linearOf(from: Fields, lowRankGate: boolean): Linear | undefined {
  const valueHeads = from.number('linear_num_value_heads');
  const own = from.object('linear_attn_config');
  const stateBytes = stateValue(from.text('mamba_ssm_dtype'));
  if (valueHeads) {
    return {
      keyHeads: from.number('linear_num_key_heads') ?? valueHeads,
      valueHeads,
      keyDim: from.number('linear_key_head_dim') ?? 128,
      valueDim: from.number('linear_value_head_dim') ?? 128,
      kernel: from.number('linear_conv_kernel_dim') ?? 4,
      stateBytes,
      lowRankGate,
    };
  }
  if (own === undefined) return undefined;
  const kda = fieldsOf(own);
  const heads = kda.number('num_heads') ?? 0;
  const dim = kda.number('head_dim') ?? 128;
  return heads === 0
    ? undefined
    : {
        keyHeads: heads,
        valueHeads: heads,
        keyDim: dim,
        valueDim: dim,
        kernel: kda.number('short_conv_kernel_size') ?? 4,
        stateBytes,
        lowRankGate,
      };
}

function mambaOf(from: Fields): Mamba | undefined {
  const heads = from.number('mamba_num_heads', 'mamba_n_heads');
  if (!heads) return undefined;
  return {
    heads,
    headDim: from.number('mamba_head_dim', 'mamba_d_head') ?? 64,
    groups: from.number('n_groups', 'mamba_n_groups') ?? 8,
    state: from.number('ssm_state_size', 'mamba_d_state') ?? 128,
    kernel: from.number('conv_kernel', 'mamba_d_conv') ?? 4,
    stateBytes: stateValue(from.text('mamba_ssm_cache_dtype', 'mamba_ssm_dtype')),
  };
}

/** float32 unless the config says otherwise. */
function stateValue(type: string | undefined): number {
  return type !== undefined && /16/.test(type) ? 2 : 4;
}

function expertsOf(from: Fields, type: string, latent: number | undefined): Experts | undefined {
  const count = from.number('num_experts', 'n_routed_experts', 'num_local_experts');
  if (!count || count < 2) return undefined;
  const width = from.number('moe_intermediate_size') ?? from.number('intermediate_size') ?? 0;
  const shared = from.number(
    'moe_shared_expert_intermediate_size',
    'shared_expert_intermediate_size',
    'shared_intermediate_size',
  );
  const sharedCount = from.number('n_shared_experts', 'num_shared_experts') ?? (shared ? 1 : 0);
  return {
    count,
    active: from.number('num_experts_per_tok', 'num_experts_per_token', 'top_k_experts', 'moe_topk') ?? 8,
    width,
    // Gemma 4's mixture stands beside an ordinary feed-forward part in every layer.
    sharedWidth: type.startsWith('gemma4')
      ? (from.number('intermediate_size') ?? 0)
      : sharedCount * (shared ?? width),
    latent: from.number('moe_latent_size', 'routed_expert_hidden_size') || latent,
  };
}

function visionOf(config: Json | undefined, hidden: number): Vision | undefined {
  if (config === undefined) return undefined;
  const from = fieldsOf(config);
  const depth = from.number('depth', 'num_hidden_layers');
  const own = from.number('hidden_size', 'embed_dim');
  if (!depth || !own) return undefined;
  return {
    depth,
    namedLayers: from.number('num_hidden_layers'),
    hidden: own,
    width: from.number('intermediate_size') ?? own * 4,
    heads: from.number('num_heads', 'num_attention_heads') ?? 16,
    out: from.number('out_hidden_size') ?? hidden,
  };
}

function ropeNumber(from: Fields, name: string): number | undefined {
  const rope = from.object('rope_parameters') ?? from.object('rope_scaling');
  return rope === undefined ? undefined : fieldsOf(rope).number(name);
}

/** Rotated values per position, one entry for each distinct setting: vLLM keeps a table for each (FORMULAS 2). */
function rotaryOf(of: {
  readonly type: string;
  readonly layers: readonly Layer[];
  readonly full: Heads;
  readonly sliding: Heads;
  readonly partial: number | undefined;
  readonly latent: Latent | undefined;
}): readonly number[] {
  if (of.type.startsWith('nemotron_h')) return [];
  if (of.latent !== undefined) return [of.latent.rope];
  const share = of.partial ?? (/^qwen3_(?:next|5)/.test(of.type) ? 0.25 : /^glm4/.test(of.type) ? 0.5 : 1);
  const has = (mixer: Layer['mixer']): boolean => of.layers.some((layer) => layer.mixer === mixer);
  const both = has('sliding') && has('full') && /^gemma/.test(of.type);
  if (both) return [of.sliding.headDim, of.full.headDim];
  return [Math.round((has('full') ? of.full : of.sliding).headDim * share)];
}
