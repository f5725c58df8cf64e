import { expect, test } from 'vitest';
import { isObject } from '../../src/domain/json.ts';
import { describeModel } from '../../src/knowledge/models/describe.ts';
import { parametersOf } from '../../src/knowledge/models/parameters.ts';
import { architectureOf } from '../../src/knowledge/models/read-architecture.ts';
import type { Cache, CacheKind } from '../../src/planning/fit/cache-kinds.ts';
import { cacheTypeOf } from '../../src/planning/fit/cache-type.ts';
import { assume } from '../../src/planning/fit/defaults.ts';
import { groupCounts, pagesOf } from '../../src/planning/fit/vllm-groups.ts';
import { vllmPool } from '../../src/planning/fit/vllm-pool.ts';
import { fitting, GIB, inputFor, model, modelFile, rank, weights } from './ask.ts';

const full = (layers: number, tokenBytes: number): CacheKind => ({
  name: 'full',
  layers,
  tokenBytes,
  window: undefined,
});
const sliding = (layers: number, tokenBytes: number, window: number): CacheKind => ({
  name: 'sliding',
  layers,
  tokenBytes,
  window,
});
const draft = (layers: number, tokenBytes: number): CacheKind => ({
  name: 'draft',
  layers,
  tokenBytes,
  window: undefined,
});
const state = (layers: number, slotBytes: number): CacheKind => ({
  name: 'state',
  of: 'linear',
  layers,
  slotBytes,
});
const cache = (whole: readonly CacheKind[], more: Partial<Cache> = {}): Cache => ({
  kinds: whole,
  whole,
  latent: false,
  bytesPerToken: 0,
  stateBytes: 0,
  stepBytesPerToken: 0,
  ...more,
});
const pool = (kinds: Cache, more: Partial<Parameters<typeof vllmPool>[0]> = {}) =>
  vllmPool({
    cache: kinds,
    availableBytes: 10 * GIB,
    context: 32_768,
    batchedTokens: 2048,
    draftTokens: 0,
    prefixCaching: false,
    blockSize: undefined,
    dcp: 1,
    ...more,
  });

// Block sizes as public logs of vLLM tell them, with the bytes that they follow from (platforms/interface.py).
test.each([
  ['a gated delta net of 32 heads, BF16', 2048, 2_146_304, false, undefined, 1056],
  ['Mamba over one or two ranks with --block-size 32, FP8', 512, 2_134_016, false, 32, 4192],
  ['the same over four ranks', 256, 533_504, false, 32, 2112],
  ['delta attention beside latent attention, --block-size 256', 512, 1_610_752, true, 256, 3328],
  ['the same without the flag: whole blocks of 128', 512, 1_610_752, true, undefined, 3200],
])('%s: the block that holds one layer’s state', (_, tokenBytes, slot, latent, blockSize, block) => {
  const kinds = cache([full(4, tokenBytes), state(12, slot)], { latent });
  expect(pagesOf(kinds, blockSize, false).block).toBe(block);
});

test('a state kept for every block makes whole chunks of 128', () => {
  expect(pagesOf(cache([full(8, 512), state(40, 4_255_744)]), undefined, true).block % 128).toBe(0);
});

test('a page that is a part of the largest takes several blocks, another is padded', () => {
  const pages = (tokenBytes: number) =>
    pagesOf(cache([full(5, 4096), sliding(25, tokenBytes, 1024)]), undefined, false);
  const gemma = pages(8192);
  expect([gemma.page, gemma.block]).toEqual([16 * 8192, 16]);
  expect(gemma.tokensOf({ name: 'full', layers: 5, tokenBytes: 4096, window: undefined })).toBe(32);
  const uneven = pages(6144);
  expect(uneven.page).toBe(16 * 6144);
  expect(uneven.tokensOf({ name: 'full', layers: 5, tokenBytes: 4096, window: undefined })).toBe(16);
});

test('layers are dealt into groups of the smallest kind, or of the largest where that is near', () => {
  const groups = (...kinds: readonly CacheKind[]) => Object.fromEntries(groupCounts(kinds));
  expect(groups(full(10, 2048), sliding(20, 2048, 128))).toEqual({ full: 1, sliding: 2 });
  // One layer of a drafter more: 13 and 12 become one group of 13 each, not thirteen of one.
  expect(groups(full(13, 2048), sliding(12, 2048, 128))).toEqual({ full: 1, sliding: 1 });
  expect(groups(full(16, 512), state(48, 1))).toEqual({ full: 1, linear: 3 });
  expect(groups(full(10, 2048), draft(8, 2048), state(30, 1))).toEqual({ full: 2, draft: 1, linear: 4 });
});

test('padding layers are memory: 10 layers and 8 of a drafter take as much as 16 and 8', () => {
  const plain = pool(cache([full(16, 2048), draft(8, 2048), state(32, 1000)]));
  const padded = pool(cache([full(10, 2048), draft(8, 2048), state(32, 1000)]));
  expect(padded.requestBytes).toBe(plain.requestBytes);
});

test('a drafter in EAGLE’s way is kept among the layers it is like, DFlash’s is a kind of its own', () => {
  const asked = (method: string) => ({
    context: 131_072,
    settings: { speculative: { method, tokens: 3 }, availableKvBytes: 10 * GIB },
  });
  const plain = rank('gpt-oss-120b', { context: 131_072, settings: { availableKvBytes: 10 * GIB } });
  const eagle = rank('gpt-oss-120b', asked('eagle3'));
  // 18 and 18 layers become 19 and 18, padded to 19 each.
  expect((plain.maxConcurrency ?? 0) / (eagle.maxConcurrency ?? 1)).toBeCloseTo(19 / 18, 2);
  const dflash = rank('gpt-oss-120b', asked('dflash'));
  expect(dflash.maxConcurrency).toBeLessThan(eagle.maxConcurrency ?? 0);
  const medusa = rank('gpt-oss-120b', asked('medusa'));
  expect(medusa.maxConcurrency).toBe(plain.maxConcurrency);
});

test('over stages the groups are those of the whole model, and each stage holds its own layers of them', () => {
  const whole = [full(12, 1024), state(36, 1_000_000)];
  const one = pool(cache(whole));
  const half = pool(cache(whole, { kinds: [full(6, 1024), state(18, 1_000_000)] }));
  expect(half.blockTokens).toBe(one.blockTokens);
  expect(half.maxConcurrency / one.maxConcurrency).toBeCloseTo(2, 1);
  // A stage without any full layer still keeps pages for its states alone, of every group.
  const late = pool(cache(whole, { kinds: [state(9, 1_000_000)] }));
  expect(late.maxConcurrency / one.maxConcurrency).toBeCloseTo(4, 1);
});

test('the stage with the fewest requests decides, and all ranks say its number', () => {
  const { ranks } = fitting('DeepSeek-V2-Lite', {
    layout: { tensor: 2, pipeline: 2 },
    context: 1024,
    total: 22,
    settings: { weightsBytes: 7.5 * GIB },
  });
  expect(new Set(ranks.map(({ maxConcurrency }) => maxConcurrency)).size).toBe(1);
});

test('sliding layers keep their window and one step’s tokens, and one page more', () => {
  const kinds = cache([full(5, 4096), sliding(25, 8192, 1024)]);
  const needed = (context: number, batchedTokens: number) =>
    Math.round(pool(kinds, { context, batchedTokens }).requestBytes / (5 * 16 * 8192));
  expect(needed(8192, 4096)).toBe(256 + 5 * (Math.ceil((1023 + 4096) / 16) + 1));
  expect(needed(131_072, 4096) - needed(8192, 4096)).toBe(4096 - 256);
});

test('a request keeps one slot of state, one more with prefix caching, one for each token proposed', () => {
  const kinds = cache([full(10, 2048), state(30, 2_146_304)]);
  const blocks = (more: Parameters<typeof pool>[1]) =>
    Math.round(pool(kinds, more).requestBytes / (10 * 1056 * 2048));
  const own = Math.ceil(32_768 / 1056);
  expect(blocks({})).toBe(own + 3);
  expect(blocks({ prefixCaching: true })).toBe(own + 6);
  expect(blocks({ draftTokens: 3 })).toBe(own + 12);
});

test('the tokens of a step are a fixed part of a request of DeepSeek-V4, about 0.8 MiB each', () => {
  const request = (batchedTokens: number) => {
    const { why } = fitting('DeepSeek-V4-Flash', {
      layout: { tensor: 2 },
      context: 1_048_576,
      settings: { batchedTokens, availableKvBytes: GIB },
      total: 95,
    });
    return Number(/which takes ([\d.]+) GiB/.exec(why)?.[1]);
  };
  expect((request(16_384) - request(8192)) / (8192 / 1024)).toBeCloseTo(0.79, 1);
});

test('a value of the cache takes what its type says, and an unknown type is said to be', () => {
  const type = (name: string | undefined, of = 'Qwen3-8B') => cacheTypeOf(name, 'vllm', model(of));
  expect(type(undefined).valueBytes).toBe(2);
  expect(type('auto').valueBytes).toBe(2);
  for (const name of ['fp8', 'fp8_e4m3', 'fp8_e5m2', 'mxfp8']) expect(type(name).valueBytes).toBe(1);
  for (const name of ['nvfp4', 'fp4_e2m1']) expect(type(name).valueBytes).toBe(0.5625);
  expect(type('fp8_ds_mla', 'GLM-5.2-NVFP4').latentBytes).toBe(656);
  expect(type('banana')).toMatchObject({ error: 1, valueBytes: 2 });
  // A checkpoint's wish for FP8: SGLang follows it, vLLM in some builds, which is said.
  const wish = model('Qwen3.6-35B-A3B-NVFP4');
  expect(cacheTypeOf('auto', 'sglang', wish).valueBytes).toBe(1);
  expect(cacheTypeOf('auto', 'vllm', wish)).toMatchObject({
    valueBytes: 2,
    rule: expect.stringContaining('asks for FP8'),
  });
  expect(type('auto').rule).not.toMatch(/asks for/);
});

test('what SGLang leaves free by itself, as its own arithmetic has it', () => {
  const fraction = (name: string, total: number, tensor = 1, settings = {}) =>
    assume(inputFor(name, { engine: 'sglang', total, layout: { tensor }, settings })).fraction;
  // GB10 of 124,611 MiB over two nodes: 14,032 MiB are left; a model that sees gets 0.925 of that.
  expect(fraction('Qwen3-8B', 121.69, 2)).toBeCloseTo(0.887, 3);
  expect(fraction('Qwen3.6-35B-A3B', 121.69, 2)).toBeCloseTo(0.887 * 0.925, 2);
  expect(fraction('Qwen3.6-35B-A3B', 121.69, 2, { languageOnly: true })).toBeCloseTo(0.887, 3);
  // Latent attention: 1.5 GiB for graphs of prefills, whatever their number.
  expect(fraction('DeepSeek-V2-Lite', 121.69, 2)).toBeLessThan(0.887);
  // A card of 24 GiB: chunks of 2048, graphs up to 24 requests.
  const small = assume(inputFor('Qwen3-8B', { engine: 'sglang', total: 23.99 }));
  expect(small.batchedTokens).toBe(2048);
  expect(small.fraction).toBeCloseTo(1 - (512 + 3072 + 128 + 48 + 8 * 42) / (23.99 * 1024), 3);
  expect(assume(inputFor('Qwen3-8B', { engine: 'sglang', total: 180 })).batchedTokens).toBe(16_384);
  expect(assume(inputFor('Qwen3-8B', { engine: 'sglang' })).fraction).toBe(0.88);
});

test('vLLM’s own defaults go by the card’s size, and by the smallest class on unified memory', () => {
  const of = (total: number, unified = false) => {
    const { sequences, batchedTokens, fraction } = assume(inputFor('Qwen3-8B', { total, unified }));
    return [sequences, batchedTokens, fraction];
  };
  expect(of(31.4)).toEqual([256, 2048, 0.92]);
  expect(of(79.1)).toEqual([1024, 8192, 0.92]);
  expect(of(180)).toEqual([1024, 16_384, 0.92]);
  expect(of(121.69, true)).toEqual([256, 2048, 0.92]);
});

test('vLLM cuts experts over the ranks of all replicas, dealt out or not; SGLang over the tensor ranks', () => {
  const at = (layout: object, engine: 'vllm' | 'sglang' = 'vllm') =>
    weights('Qwen3-30B-A3B', { layout, engine });
  expect(at({ data: 8 })).toBeCloseTo(at({ data: 8, expert: 8 }), 2);
  expect(at({ data: 8 })).toBeLessThan(at({}) / 4);
  expect(at({ tensor: 8, data: 8 }, 'sglang')).toBeCloseTo(at({ tensor: 8 }, 'sglang'), 5);
  // More experts than divide evenly: a rank holds whole ones. 128 over 6 are 22 at most, not 21.3.
  expect(at({ tensor: 1, data: 6, expert: 6 })).toBeGreaterThan(at({ tensor: 1, data: 6 }));
});

test('decode context parallel wants ranks that keep the same heads', () => {
  const why = (name: string, tensor: number, dcp: number) =>
    fitting(name, { layout: { nodes: 1, tensor }, total: 180, settings: { dcp }, context: 4096 }).why;
  expect(why('Kimi-K2-Instruct', 8, 8)).not.toMatch(/context parallel/);
  expect(why('Qwen3-235B-A22B', 8, 2)).not.toMatch(/context parallel/);
  expect(why('Qwen3-235B-A22B', 8, 4)).toMatch(/keeps each of 4 key-value heads on 2 ranks/);
  expect(why('Qwen3-8B', 1, 7)).toMatch(/7 does not divide tensor 1/);
});

test('Kimi’s delta attention and latent experts add up to what their publisher says', () => {
  const config = {
    model_type: 'kimi_linear',
    num_hidden_layers: 27,
    hidden_size: 2304,
    num_attention_heads: 32,
    num_key_value_heads: 32,
    intermediate_size: 9216,
    vocab_size: 163_840,
    kv_lora_rank: 512,
    q_lora_rank: null,
    qk_nope_head_dim: 128,
    qk_rope_head_dim: 64,
    v_head_dim: 128,
    num_experts: 256,
    num_experts_per_token: 8,
    num_shared_experts: 1,
    moe_intermediate_size: 1024,
    first_k_dense_replace: 1,
    linear_attn_config: {
      full_attn_layers: [4, 8, 12, 16, 20, 24, 27],
      head_dim: 128,
      num_heads: 32,
      short_conv_kernel_size: 4,
    },
  };
  const billions = (of: object) => {
    const architecture = architectureOf({ ...of });
    if (architecture === undefined) throw new Error('no architecture');
    return parametersOf(architecture).reduce((sum, { count }) => sum + count, 0) / 1e9;
  };
  expect(billions(config)).toBeCloseTo(49.1, 1);
  // Experts in half the width take half as much.
  const half = billions({ ...config, routed_expert_hidden_size: 1152 });
  expect(billions(config) - half).toBeCloseTo((26 * 256 * 3 * 1152 * 1024) / 1e9, 0);
  const k3 = model('Kimi-K3').architecture;
  expect(k3?.experts?.latent).toBe(3584);
});

test('a config that cannot be one of a model is none', () => {
  const config = {
    model_type: 'qwen3',
    num_hidden_layers: 4,
    hidden_size: 256,
    num_attention_heads: 8,
    vocab_size: 1000,
  };
  expect(architectureOf(config)).toBeDefined();
  expect(architectureOf({ ...config, num_hidden_layers: 4.5 })).toBeUndefined();
  expect(architectureOf({ ...config, num_attention_heads: '8' })).toBeUndefined();
  expect(architectureOf({ ...config, num_key_value_heads: 1.5 })).toBeUndefined();
  expect(architectureOf({ ...config, num_kv_shared_layers: 99 })?.sharedKvLayers).toBe(0);
  expect(architectureOf({ ...config, num_nextn_predict_layers: 500 })?.mtpLayers).toBe(0);
});

test('headers of a part of the layers, and files far too small, are said and not counted', () => {
  const config = {
    model_type: 'qwen3',
    num_hidden_layers: 4,
    hidden_size: 256,
    num_attention_heads: 8,
    vocab_size: 1000,
  };
  const plain = describeModel({ name: 'x', config });
  const sum = (of: typeof plain) => of.groups.reduce((all, { bytes }) => all + bytes, 0);
  const tensors = [{ name: 'model.layers.0.mlp.up_proj.weight', bytes: 1000 }];
  const part = describeModel({ name: 'x', config, tensors, total: { bytes: 1000, from: 'files' } });
  expect(sum(part)).toBe(sum(plain));
  expect(part.rule).toMatch(/hold 1 of 4 layers, so their headers are not counted/);
  const index = describeModel({ name: 'x', config, tensors, total: { bytes: 7e6, from: 'index' } });
  expect(sum(index)).toBeCloseTo(7e6, 0);
  const tiny = describeModel({ name: 'x', config, total: { bytes: 30, from: 'files' } });
  expect(sum(tiny)).toBe(sum(plain));
  expect(tiny.rule).toMatch(/too little to be all of it/);
});

test('tensors of a type that is not known here are counted, and its cache is not guessed', () => {
  const config = {
    model_type: 'brand_new',
    num_hidden_layers: 1,
    hidden_size: 256,
    num_attention_heads: 8,
    vocab_size: 1000,
  };
  const tensors = [{ name: 'model.layers.0.mystery.weight', bytes: 3 * GIB }];
  const found = fitting(describeModel({ name: 'x', config, tensors }), { total: 79.1 });
  expect(found).toMatchObject({
    verdict: 'unknown',
    bound: { atMostBytes: 3 * GIB },
    why: expect.stringContaining('"brand_new" is not known here'),
  });
  expect(found.ranks[0]).toMatchObject({ weightsBytes: 3 * GIB, kvBytesPerToken: null });
});

test('layers of a kind that is not known here leave the model unknown, and a type not known widens the bar', () => {
  const plain = modelFile('Qwen3-8B')['config'];
  if (!isObject(plain)) throw new Error('no config');
  const of = (more: object) => {
    const known = describeModel({
      name: 'm',
      config: { ...plain, ...more },
      total: { bytes: 16.4e9, from: 'files' },
    });
    return fitting(known, { total: 79.1, context: 32_768 });
  };
  const mixed = Array.from({ length: 36 }, (_, layer) => (layer % 2 === 0 ? 'conv' : 'full_attention'));
  expect(of({ layer_types: mixed })).toMatchObject({ verdict: 'unknown', bound: { atMostBytes: 16.4e9 } });
  expect(of({ model_type: 'novel', attn_type_list: [0, 1] }).verdict).toBe('unknown');
  const novel = of({ model_type: 'novel' });
  expect(novel.verdict).toBe('fits');
  expect(novel.rules.find(({ rule }) => rule.includes('"novel" is not known'))?.errorBytes).toBeCloseTo(
    0.5 * 32_768 * 147_456,
    -6,
  );
});
