import { expect, test } from 'vitest';
import { isObject } from '../../src/domain/json.ts';
import { describeModel } from '../../src/knowledge/models/describe.ts';
import { sourcesOf } from '../../src/knowledge/models/model-file.ts';
import { parametersOf } from '../../src/knowledge/models/parameters.ts';
import { bytesPer } from '../../src/knowledge/models/scheme.ts';
import { fitting, GIB, model, modelFile, rank, weights } from './ask.ts';

const tensor = (size: number) => ({ layout: { tensor: size } });
const spark = { unified: true, total: 121.69 };

// GiB per rank as engines printed them (test/samples/fit/cases.json, and its formulas §2).
test.each([
  ['Llama-3.3-70B', tensor(8), 16.46],
  ['Qwen3-30B-A3B', tensor(4), 14.25],
  ['DeepSeek-V2-Lite', {}, 29.3],
  ['Qwen3.6-35B-A3B', { ...spark, settings: { languageOnly: true } }, 64.69],
  ['Qwen3.6-27B-FP8', { ...spark, settings: { languageOnly: true } }, 27.64],
  ['Qwen3.8-27B-FP8', tensor(2), 14.28],
  ['gemma-4-26B-A4B', spark, 48.5],
  ['Qwen3-235B-A22B-GPTQ-Int4', { ...spark, layout: { nodes: 2, tensor: 2, expert: 2 } }, 57.64],
  [
    'GLM-5.2-Int4-Int8Mix',
    { layout: { tensor: 4 }, settings: { speculative: { method: 'mtp', tokens: 6 } } },
    96.94,
  ],
  ['Qwen3-8B', { engine: 'sglang' as const }, 15.28],
  // Padded for the four-bit kernel; the files have 60.8.
  ['gpt-oss-120b', {}, 65.97],
])('%s with %j loads what the engine printed, within 3 %%', (name, asked, seen) => {
  expect(Math.abs(weights(name, asked) / seen - 1)).toBeLessThan(0.03);
});

// GiB of all files as an engine or the publisher counted them: the arithmetic alone has to come near.
test.each([
  ['DeepSeek-V4-Flash', 148.66],
  ['Qwen3.6-35B-A3B', 66.97],
  ['Qwen3.6-35B-A3B-FP8', 34.89],
  ['Qwen3.6-27B-FP8', 28.75],
  ['gemma-4-26B-A4B', 48.07],
  ['Nemotron-3-Nano-30B-A3B-NVFP4', 18.01],
  ['GLM-5.2-NVFP4', 433.06],
])('the arithmetic of %s makes its %f GiB of files', (name, gib) => {
  const { architecture, scheme } = model(name);
  if (architecture === undefined) throw new Error('no architecture');
  const plain = describeModel({ name, config: {} });
  expect(plain.groups).toEqual([]);
  const off = model(name).rule.match(/which makes ([\d.]+) GiB/)?.[1];
  expect(Math.abs(Number(off) / gib - 1), `${scheme.title}`).toBeLessThan(0.015);
});

test('the block for further tokens is loaded with speculation alone, the vision tower unless it is left out', () => {
  const plain = weights('Qwen3.6-35B-A3B');
  const mtp = weights('Qwen3.6-35B-A3B', { settings: { speculative: { method: 'mtp', tokens: 3 } } });
  const blind = weights('Qwen3.6-35B-A3B', { settings: { languageOnly: true } });
  expect(mtp - plain).toBeCloseTo(1.57, 1);
  expect(plain - blind).toBeCloseTo(0.83, 1);
});

test('a drafter adds its file, whole, to every rank', () => {
  const asked = { layout: { tensor: 2 } };
  const settings = { speculative: { method: 'dflash', tokens: 15 }, draftBytes: 2 ** 30 };
  expect(weights('Qwen3.6-35B-A3B', { ...asked, settings }) - weights('Qwen3.6-35B-A3B', asked)).toBeCloseTo(
    1,
    5,
  );
});

test('what is replicated is not divided: routers, norms, latent projections, and heads above their number', () => {
  const whole = weights('GLM-5.2-NVFP4');
  expect(weights('GLM-5.2-NVFP4', tensor(4)) * 4).toBeGreaterThan(whole * 1.005);
  // 4 key-value heads over 8 ranks: each keeps one.
  const four = weights('Qwen3-30B-A3B', tensor(4));
  const eight = weights('Qwen3-30B-A3B', tensor(8));
  expect(eight).toBeGreaterThan(four / 2);
});

test('stages of a pipeline have their own layers: the first the embedding, the last the head', () => {
  const { ranks } = fitting('DeepSeek-V2-Lite', { layout: { tensor: 2, pipeline: 2 }, context: 1024 });
  expect(ranks.map(({ kvBytesPerToken }) => kvBytesPerToken)).toEqual([14, 14, 13, 13].map((n) => n * 1152));
  expect(ranks).toHaveLength(4);
});

test('experts are dealt out by expert parallel size, and over all replicas with vLLM', () => {
  const dp = weights('Qwen3-Coder-480B-A35B', { layout: { tensor: 1, data: 8, expert: 8 } });
  expect(dp).toBeLessThan(weights('Qwen3-Coder-480B-A35B') / 6);
});

test('a slice under the kernel’s minimum is padded, although experts are dealt out whole', () => {
  // 3072 over 16 ranks is 192, computed as 256.
  const cut = weights('Kimi-K3', { layout: { nodes: 16, tensor: 16, expert: 16 } });
  const whole = weights('Kimi-K3', { layout: { nodes: 8, tensor: 8, expert: 8 } }) / 2;
  expect(cut / whole).toBeGreaterThan(1.3);
});

test('bytes per parameter count scales in', () => {
  expect(bytesPer({ name: 'nvfp4' })).toBe(0.5625);
  expect(bytesPer({ name: 'mxfp4' })).toBe(0.53125);
  expect(bytesPer({ name: 'int', bits: 4, group: 128 })).toBeCloseTo(0.5195, 4);
  expect(bytesPer({ name: 'int', bits: 4, group: 32 })).toBe(0.5625);
});

test('parameters of the text alone are what the publishers say', () => {
  const billions = (name: string) => {
    const { architecture } = model(name);
    if (architecture === undefined) throw new Error(name);
    return (
      parametersOf(architecture)
        .filter(({ place }) => place !== 'mtp' && place !== 'vision')
        .reduce((sum, { count }) => sum + count, 0) / 1e9
    );
  };
  expect(billions('Qwen3.5-122B-A10B')).toBeCloseTo(122.11, 1);
  expect(billions('Qwen3-235B-A22B')).toBeCloseTo(235.09, 1);
  expect(billions('Qwen3-30B-A3B')).toBeCloseTo(30.53, 1);
  expect(billions('gpt-oss-120b')).toBeCloseTo(116.79, 0);
  expect(billions('Llama-3.1-8B')).toBeCloseTo(8.03, 1);
});

test('a quantisation that names its modules one by one is read as such', () => {
  const mixed = model('Qwen3.6-35B-A3B-NVFP4').scheme;
  expect(mixed.formats.experts?.[0]).toMatchObject({ format: { name: 'nvfp4' }, share: 1 });
  expect(mixed.formats['linear-attention']?.[0]?.format.name).toBe('fp8');
  expect(mixed.mtp).toBe('own-type');
  const routed = model('Qwen3.5-122B-A10B-NVFP4').scheme;
  expect(routed.formats.attention?.[0]?.share ?? 0).toBe(0);
  expect(routed.formats.experts?.[0]?.share).toBe(1);
});

test('a model that is not known has a bound and no number', () => {
  const found = fitting('gemma-4-12B', { ...spark, context: 8192 });
  expect(found.verdict).toBe('unknown');
  expect(found.ranks[0]).toMatchObject({ weightsBytes: null, kvBytesPerToken: null, maxConcurrency: null });
  expect(found.bound?.atLeastBytes).toBeLessThan(22.28 * 2 ** 30);
  expect(found.bound?.atMostBytes).toBeGreaterThanOrEqual(22.28 * 2 ** 30);
  expect(rank('gemma-4-12B').peakBytes).toBeNull();
});

test('a type that is not known is believed where its arithmetic accounts for the files, and else bounded', () => {
  const config = { ...sourcesOf(modelFile('Qwen3-8B'), 'x').config, model_type: 'brand_new' };
  const sized = (gib: number) =>
    describeModel({ name: 'x', config, total: { bytes: gib * 2 ** 30, from: 'index' } });
  expect(fitting(sized(15.3), { total: 79.1 }).verdict).toBe('fits');
  expect(fitting(sized(25), { total: 79.1 })).toMatchObject({
    verdict: 'unknown',
    bound: { atMostBytes: 25 * 2 ** 30 },
  });
  expect(fitting(describeModel({ name: 'x', config }), { total: 79.1 }).verdict).toBe('unknown');
});

test('a method of quantisation that is not known here is not taken for none', () => {
  const plain = modelFile('Qwen3-8B')['config'];
  if (!isObject(plain)) throw new Error('no config');
  const of = (quantization_config: object, total?: number) =>
    describeModel({
      name: 'm',
      config: { ...plain, quantization_config },
      total: total === undefined ? undefined : { bytes: total, from: 'files' },
    });
  const odd = of({ quant_method: 'aqlm', in_group_size: 8 });
  expect(odd.rule).toMatch(/quantised by aqlm, which is not known here/);
  expect(odd.error).toBe(0.75);
  expect(of({ quant_method: 'aqlm' }, 5 * GIB).error).toBe(0.1);
  expect(
    of({ quant_method: 'compressed-tensors', config_groups: { group_0: { weights: null } } }).error,
  ).toBe(0.75);
  // Methods whose name or own words say what they keep.
  const size = (quantization_config: object): number => weights(of(quantization_config));
  expect(size({ quant_method: 'quark', global_quant_config: { weight: { dtype: 'fp4' } } })).toBeCloseTo(
    size({ quant_method: 'mxfp8' }) - (6.95e9 * 0.5) / GIB,
    0,
  );
  expect(size({ quant_method: 'w8a8_int8' })).toBeLessThan(0.62 * size({}));
});

test('a description without a config is bounded by its files', () => {
  const file = {
    name: 'm',
    weight_format: 'bf16',
    safetensors_total: { bytes_approx: 20 * GIB, how: 'stated' },
  };
  for (const config of [{}, { config: null }, { config: {} }]) {
    const found = fitting(describeModel(sourcesOf({ ...file, ...config }, 'm')), { total: 79.1 });
    expect(found).toMatchObject({ verdict: 'unknown', bound: { atMostBytes: 20 * GIB } });
    expect(found.ranks[0]?.weightsBytes).toBe(null);
  }
});
