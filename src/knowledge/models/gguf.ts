import type { Json } from './fields.ts';
import type { Tensor } from './safetensors.ts';

/** What a GGUF file says of itself before its tensors: metadata, and every tensor with its bytes. */
export type Gguf = { readonly metadata: Json; readonly tensors: readonly Tensor[] };

const MAGIC = 0x46554747;
/** Bytes of the fixed-size value types, by their number in the format (gguf.md of ggml). */
const SIZES: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
const STRING = 8;
const ARRAY = 9;

/**
 * Reads the head of a GGUF file of version 2 or 3. Long arrays (the vocabulary) are counted and skipped: their length
 * stands for them. Undefined where it is none, or where the head that was given ends too soon.
 */
export function readGguf(head: Uint8Array, fileBytes: number): Gguf | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  let at = 0;
  const take = (count: number): number => {
    const from = at;
    if (count < 0 || count > head.byteLength - from) throw new RangeError('the head ends here');
    at += count;
    return from;
  };
  const u32 = (): number => view.getUint32(take(4), true);
  const u64 = (): number => Number(view.getBigUint64(take(8), true));
  const text = (): string => {
    const length = u64();
    const from = take(length);
    return new TextDecoder().decode(head.subarray(from, from + length));
  };
  const value = (type: number): unknown => {
    if (type === STRING) return text();
    if (type === ARRAY) return array();
    const size = SIZES[type];
    if (size === undefined) throw new RangeError('no such type');
    const from = take(size);
    return scalar(view, type, from);
  };
  const array = (): unknown => {
    const type = u32();
    const length = u64();
    const size = SIZES[type];
    if (length > 4096) {
      if (size !== undefined) take(size * length);
      else for (let index = 0; index < length; index++) value(type);
      return { length };
    }
    return Array.from({ length }, () => value(type));
  };
  try {
    if (u32() !== MAGIC || ![2, 3].includes(u32())) return undefined;
    const count = u64();
    const pairs = u64();
    if (count > 1_000_000 || pairs > 100_000) return undefined;
    const metadata: Record<string, unknown> = {};
    for (let index = 0; index < pairs; index++) {
      const key = text();
      metadata[key] = value(u32());
    }
    const infos = Array.from({ length: count }, () => {
      const name = text();
      const dimensions = u32();
      take(8 * dimensions + 4);
      return { name, offset: u64() };
    });
    const alignment = typeof metadata['general.alignment'] === 'number' ? metadata['general.alignment'] : 32;
    const start = Math.ceil(at / Math.max(1, alignment)) * alignment;
    return { metadata, tensors: sized(infos, fileBytes - start) };
  } catch (error) {
    // Expected: the head that was read ends before the header does, or it is no GGUF file.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function scalar(view: DataView, type: number, at: number): unknown {
  switch (type) {
    case 0:
      return view.getUint8(at);
    case 1:
      return view.getInt8(at);
    case 2:
      return view.getUint16(at, true);
    case 3:
      return view.getInt16(at, true);
    case 4:
      return view.getUint32(at, true);
    case 5:
      return view.getInt32(at, true);
    case 6:
      return view.getFloat32(at, true);
    case 7:
      return view.getUint8(at) !== 0;
    case 10:
      return Number(view.getBigUint64(at, true));
    case 11:
      return Number(view.getBigInt64(at, true));
    default:
      return view.getFloat64(at, true);
  }
}

/** A tensor ends where the next begins, the last one where the file does: so no format's block size has to be known. */
function sized(
  infos: readonly { readonly name: string; readonly offset: number }[],
  dataBytes: number,
): readonly Tensor[] {
  const sorted = infos.toSorted((a, b) => a.offset - b.offset);
  return sorted.map(({ name, offset }, index) => ({
    name,
    bytes: Math.max(0, (sorted[index + 1]?.offset ?? dataBytes) - offset),
  }));
}

/** Its metadata by the names that a config.json would use, as far as it says. */
export function configOfGguf({ metadata, tensors }: Gguf): Json {
  const type = String(metadata['general.architecture'] ?? '');
  const own = (key: string): unknown => {
    const found = metadata[`${type}.${key}`];
    // Some figures are given layer by layer: the largest is that of the layers that keep a cache.
    return Array.isArray(found) ? Math.max(0, ...found.filter((one) => typeof one === 'number')) : found;
  };
  const tokens = metadata['tokenizer.ggml.tokens'];
  const vocabulary =
    typeof tokens === 'object' && tokens !== null && 'length' in tokens ? tokens.length : own('vocab_size');
  const config = {
    model_type: TYPES[type] ?? type,
    num_hidden_layers: own('block_count'),
    hidden_size: own('embedding_length'),
    intermediate_size: own('feed_forward_length'),
    num_attention_heads: own('attention.head_count'),
    num_key_value_heads: own('attention.head_count_kv'),
    head_dim: own('attention.key_length'),
    max_position_embeddings: own('context_length'),
    sliding_window: own('attention.sliding_window'),
    kv_lora_rank: own('attention.kv_lora_rank'),
    q_lora_rank: own('attention.q_lora_rank'),
    qk_rope_head_dim: own('attention.kv_lora_rank') === undefined ? undefined : own('rope.dimension_count'),
    num_experts: own('expert_count'),
    num_experts_per_tok: own('expert_used_count'),
    moe_intermediate_size: own('expert_feed_forward_length'),
    first_k_dense_replace: own('leading_dense_block_count'),
    vocab_size: vocabulary,
    tie_word_embeddings: !tensors.some(({ name }) => name === 'output.weight'),
  };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}

/** llama.cpp's names of architectures that Hugging Face calls otherwise. */
const TYPES: Readonly<Record<string, string>> = {
  qwen3moe: 'qwen3_moe',
  qwen2moe: 'qwen2_moe',
  deepseek2: 'deepseek_v3',
  'gpt-oss': 'gpt_oss',
  glm4moe: 'glm4_moe',
  'minimax-m2': 'minimax_m2',
};
