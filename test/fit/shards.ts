import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A safetensors file that ends after its header: sizes are all that a fit reads. */
export function writeShard(folder: string, name: string, tensors: Readonly<Record<string, number>>): void {
  mkdirSync(folder, { recursive: true });
  let at = 0;
  const entries = Object.entries(tensors).map(([tensor, bytes]) => {
    const entry = { dtype: 'BF16', shape: [bytes / 2], data_offsets: [at, at + bytes] };
    at += bytes;
    return [tensor, entry] as const;
  });
  const header = Buffer.from(
    JSON.stringify({ __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(join(folder, name), Buffer.concat([length, header]));
}

/** A small dense model of two layers in two shards, with a block for further tokens and a vision tower. */
export function writeSmallModel(folder: string): { readonly config: Readonly<Record<string, unknown>> } {
  const config = {
    model_type: 'qwen3',
    num_hidden_layers: 2,
    hidden_size: 64,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 16,
    intermediate_size: 128,
    vocab_size: 1000,
    max_position_embeddings: 4096,
    torch_dtype: 'bfloat16',
  };
  const layer = (index: number): Record<string, number> => ({
    [`model.layers.${index}.self_attn.q_proj.weight`]: 8192,
    [`model.layers.${index}.self_attn.k_proj.weight`]: 4096,
    [`model.layers.${index}.self_attn.v_proj.weight`]: 4096,
    [`model.layers.${index}.self_attn.o_proj.weight`]: 8192,
    [`model.layers.${index}.mlp.experts.0.up_proj.weight`]: 16384,
    [`model.layers.${index}.mlp.experts.1.up_proj.weight`]: 16384,
    [`model.layers.${index}.input_layernorm.weight`]: 128,
  });
  writeShard(folder, 'model-00001-of-00002.safetensors', {
    'model.embed_tokens.weight': 128_000,
    ...layer(0),
    ...layer(1),
  });
  writeShard(folder, 'model-00002-of-00002.safetensors', {
    'lm_head.weight': 128_000,
    'mtp.layers.0.self_attn.q_proj.weight': 8192,
    'model.visual.blocks.0.attn.qkv.weight': 6144,
  });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return { config };
}
