import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJson } from './engine/json.ts';
import { hex, randomOf } from './random.ts';
import type { StoryHost } from './story.ts';

/**
 * Architecture of Qwen/Qwen3.5-122B-A10B-FP8 (its config.json, as published; layer types follow from
 * `full_attention_interval`). Sizes of the weight files below follow from it.
 */
const TEXT = {
  model_type: 'qwen3_5_moe_text',
  num_hidden_layers: 48,
  hidden_size: 3072,
  num_attention_heads: 32,
  num_key_value_heads: 2,
  head_dim: 256,
  moe_intermediate_size: 1024,
  shared_expert_intermediate_size: 1024,
  num_experts: 256,
  num_experts_per_tok: 8,
  mlp_only_layers: [],
  vocab_size: 248320,
  max_position_embeddings: 262144,
  full_attention_interval: 4,
  layer_types: Array.from({ length: 48 }, (_, layer) =>
    layer % 4 === 3 ? 'full_attention' : 'linear_attention',
  ),
  linear_num_key_heads: 16,
  linear_num_value_heads: 64,
  linear_key_head_dim: 128,
  linear_value_head_dim: 128,
  linear_conv_kernel_dim: 4,
  mamba_ssm_dtype: 'float32',
  attn_output_gate: true,
  mtp_num_hidden_layers: 1,
  attention_bias: false,
  dtype: 'bfloat16',
};

const CONFIG = {
  architectures: ['Qwen3_5MoeForConditionalGeneration'],
  model_type: 'qwen3_5_moe',
  tie_word_embeddings: false,
  quantization_config: {
    quant_method: 'fp8',
    activation_scheme: 'dynamic',
    fmt: 'e4m3',
    weight_block_size: [128, 128],
  },
  text_config: TEXT,
  vision_config: {
    depth: 27,
    hidden_size: 1152,
    intermediate_size: 4304,
    num_heads: 16,
    out_hidden_size: 3072,
    patch_size: 16,
    temporal_patch_size: 2,
    spatial_merge_size: 2,
    in_channels: 3,
    num_position_embeddings: 2304,
  },
};

const SHARDS = 39;

type Tensor = { readonly name: string; readonly bytes: number };

const bf16 = (...shape: readonly number[]): number => shape.reduce((a, b) => a * b, 2);
/** FP8 with one float32 scale per block of 128 × 128. */
const fp8 = (...shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1) * (1 + 4 / 16384);

function layerTensors(prefix: string, full: boolean): Tensor[] {
  const { hidden_size: hidden, num_experts: experts, moe_intermediate_size: inter } = TEXT;
  const heads = TEXT.num_attention_heads * TEXT.head_dim;
  const kv = TEXT.num_key_value_heads * TEXT.head_dim;
  const keys = TEXT.linear_num_key_heads * TEXT.linear_key_head_dim;
  const values = TEXT.linear_num_value_heads * TEXT.linear_value_head_dim;
  const attention: Tensor[] = full
    ? [
        { name: 'self_attn.q_proj.weight', bytes: fp8(hidden, 2 * heads) },
        { name: 'self_attn.k_proj.weight', bytes: fp8(hidden, kv) },
        { name: 'self_attn.v_proj.weight', bytes: fp8(hidden, kv) },
        { name: 'self_attn.o_proj.weight', bytes: fp8(heads, hidden) },
      ]
    : [
        { name: 'linear_attn.in_proj_qkv.weight', bytes: fp8(hidden, 2 * keys + values) },
        { name: 'linear_attn.in_proj_z.weight', bytes: fp8(hidden, values) },
        { name: 'linear_attn.in_proj_ba.weight', bytes: bf16(hidden, 2 * TEXT.linear_num_value_heads) },
        { name: 'linear_attn.conv1d.weight', bytes: bf16(2 * keys + values, TEXT.linear_conv_kernel_dim) },
        { name: 'linear_attn.out_proj.weight', bytes: fp8(values, hidden) },
      ];
  return [
    ...attention,
    { name: 'mlp.gate.weight', bytes: bf16(experts, hidden) },
    { name: 'mlp.experts.gate_up_proj', bytes: fp8(experts, hidden, 2 * inter) },
    { name: 'mlp.experts.down_proj', bytes: fp8(experts, inter, hidden) },
    { name: 'mlp.shared_expert.gate_up_proj.weight', bytes: fp8(hidden, 2 * inter) },
    { name: 'mlp.shared_expert.down_proj.weight', bytes: fp8(inter, hidden) },
    { name: 'input_layernorm.weight', bytes: bf16(hidden) },
    { name: 'post_attention_layernorm.weight', bytes: bf16(hidden) },
  ].map(({ name, bytes }) => ({ name: `${prefix}.${name}`, bytes: Math.ceil(bytes) }));
}

function tensors(): readonly Tensor[] {
  const embedding = bf16(TEXT.vocab_size, TEXT.hidden_size);
  return [
    { name: 'model.language_model.embed_tokens.weight', bytes: embedding },
    ...TEXT.layer_types.flatMap((type, layer) =>
      layerTensors(`model.language_model.layers.${layer}`, type === 'full_attention'),
    ),
    { name: 'model.language_model.norm.weight', bytes: bf16(TEXT.hidden_size) },
    { name: 'lm_head.weight', bytes: embedding },
    ...layerTensors('mtp.layers.0', true),
    { name: 'model.visual.blocks.weight', bytes: 900_000_000 },
  ];
}

type Shard = { readonly file: string; readonly bytes: number; readonly names: readonly string[] };

function shards(): readonly Shard[] {
  const all = tensors();
  const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
  const lists: { bytes: number; names: string[] }[] = Array.from({ length: SHARDS }, () => ({
    bytes: 0,
    names: [],
  }));
  let before = 0;
  for (const { name, bytes } of all) {
    const list = lists[Math.min(SHARDS - 1, Math.floor((before / total) * SHARDS))];
    list?.names.push(name);
    if (list !== undefined) list.bytes += bytes;
    before += bytes;
  }
  return lists
    .filter(({ names }) => names.length > 0)
    .map(({ bytes, names }, at, kept) => {
      const number = (n: number): string => String(n).padStart(5, '0');
      return { file: `model-${number(at + 1)}-of-${number(kept.length)}.safetensors`, bytes, names };
    });
}

/** Bytes of all weight files together. */
export const MODEL_BYTES = tensors().reduce((sum, { bytes }) => sum + bytes, 0);

type Differs = Readonly<Record<string, unknown>>;

/** What differs is laid over, part by part. */
function laidOver(base: Differs, differs: Differs): Differs {
  const parts = Object.entries(differs).map(([key, value]): [string, unknown] => {
    const old = base[key];
    return [key, isJson(old) && isJson(value) ? laidOver(old, value) : value];
  });
  return { ...base, ...Object.fromEntries(parts) };
}

const MARKS = ['<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>', '<think>', '</think>'];

/** A tokenizer's own file, as far as anybody here reads it: words beyond its vocabulary. */
function tokenizer(thinks: boolean): Differs {
  const words = thinks ? MARKS : MARKS.filter((mark) => !mark.includes('think'));
  return {
    model_max_length: 262144,
    tokenizer_class: 'Qwen2Tokenizer',
    added_tokens_decoder: Object.fromEntries(words.map((content, at) => [String(248045 + at), { content }])),
  };
}

/** A snapshot of a repository in a cache of the hub, as far as a tokenizer needs it. */
export function writeSnapshot(cache: string, repository: string): void {
  const folder = join(cache, 'hub', `models--${repository.replaceAll('/', '--')}`);
  const revision = hex(randomOf(`revision:${repository}`), 40);
  const snapshot = join(folder, 'snapshots', revision);
  for (const part of [snapshot, join(folder, 'refs')]) mkdirSync(part, { recursive: true });
  writeFileSync(join(folder, 'refs/main'), revision);
  writeFileSync(join(snapshot, 'tokenizer_config.json'), `${JSON.stringify(tokenizer(true), null, 2)}\n`);
}

/** Writes the model's folder: real config and index, and sparse weight files of their true sizes. */
export function writeModel(
  folder: string,
  { model = {}, unthinking }: Pick<StoryHost, 'model' | 'unthinking'>,
): void {
  mkdirSync(folder, { recursive: true });
  const list = shards();
  const index = {
    metadata: { total_size: MODEL_BYTES },
    weight_map: Object.fromEntries(list.flatMap(({ file, names }) => names.map((name) => [name, file]))),
  };
  const json = (file: string, value: unknown): void =>
    writeFileSync(join(folder, file), `${JSON.stringify(value, null, 2)}\n`);
  json('config.json', laidOver(CONFIG, model));
  json('generation_config.json', { do_sample: true, temperature: 0.6, top_p: 0.95, top_k: 20 });
  json('model.safetensors.index.json', index);
  json('tokenizer_config.json', tokenizer(unthinking !== true));
  for (const { file, bytes } of list) {
    const open = openSync(join(folder, file), 'w');
    ftruncateSync(open, bytes);
    closeSync(open);
  }
}
