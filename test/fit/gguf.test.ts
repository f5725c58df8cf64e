import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { configOfGguf, readGguf } from '../../src/knowledge/models/gguf.ts';
import { modelAt } from '../../src/operations/fit-model.ts';
import { rank } from './ask.ts';

const root = mkdtempSync(join(tmpdir(), 'firstlight-gguf-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function u32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}
function u64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}
const text = (value: string): Buffer => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

/** A GGUF file of version 3 with unsigned, text and array metadata, and tensors of the given sizes. */
function gguf(
  numbers: Readonly<Record<string, number>>,
  vocabulary: number,
  tensors: readonly (readonly [string, number])[],
): { readonly head: Buffer; readonly bytes: number } {
  const words = Array.from({ length: vocabulary }, (_, index) => text(`w${index}`));
  const pairs = [
    Buffer.concat([text('general.architecture'), u32(8), text('qwen3moe')]),
    ...Object.entries(numbers).map(([key, value]) =>
      Buffer.concat([text(`qwen3moe.${key}`), u32(4), u32(value)]),
    ),
    Buffer.concat([text('tokenizer.ggml.tokens'), u32(9), u32(8), u64(vocabulary), ...words]),
  ];
  let offset = 0;
  const infos = tensors.map(([name, bytes]) => {
    const info = Buffer.concat([text(name), u32(1), u64(32), u32(12), u64(offset)]);
    offset += bytes;
    return info;
  });
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(tensors.length),
    u64(pairs.length),
    ...pairs,
    ...infos,
  ]);
  return { head, bytes: Math.ceil(head.length / 32) * 32 + offset };
}

const numbers = {
  block_count: 2,
  embedding_length: 64,
  'attention.head_count': 4,
  'attention.head_count_kv': 2,
  'attention.key_length': 16,
  context_length: 4096,
  expert_count: 8,
  expert_used_count: 2,
  expert_feed_forward_length: 32,
};
const tensors = [
  ['token_embd.weight', 320_000],
  ['blk.0.attn_q.weight', 2304],
  ['blk.0.attn_k.weight', 1152],
  ['blk.0.ffn_gate_inp.weight', 1024],
  ['blk.0.ffn_up_exps.weight', 9216],
  ['blk.1.ffn_up_exps.weight', 9216],
  ['output.weight', 320_000],
] as const;

test('a GGUF file tells its architecture and the size of every tensor, whatever their formats', () => {
  const file = gguf(numbers, 5000, tensors);
  const found = readGguf(file.head, file.bytes);
  if (found === undefined) throw new Error('it was not read');
  expect(found.tensors).toEqual(tensors.map(([name, bytes]) => ({ name, bytes })));
  expect(configOfGguf(found)).toMatchObject({
    model_type: 'qwen3_moe',
    num_hidden_layers: 2,
    num_experts: 8,
    vocab_size: 5000,
    tie_word_embeddings: false,
  });
});

test('it is fitted by its own header', () => {
  const file = gguf(numbers, 5000, tensors);
  const path = join(root, 'small-Q4_K_M.gguf');
  writeFileSync(path, file.head);
  const model = modelAt(path, undefined);
  expect(model.architecture?.experts?.count).toBe(8);
  expect(
    model.groups.filter(({ kind }) => kind === 'experts').reduce((sum, { bytes }) => sum + bytes, 0),
  ).toBe(18_432);
  expect(rank(model, { total: 10 }).kvBytesPerToken).toBe(2 * 2 * 2 * 16 * 2);
});

test('a file that is cut or no GGUF file is not read', () => {
  const file = gguf(numbers, 50, tensors);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: file.head.length - 1 }), (at) => {
      expect(readGguf(file.head.subarray(0, at), file.bytes)).toBeUndefined();
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(() => readGguf(Buffer.concat([Buffer.from('GGUF'), u32(3), bytes]), 1e9)).not.toThrow();
    }),
  );
});
