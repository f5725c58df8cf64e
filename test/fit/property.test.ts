import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FitChange } from '../../src/domain/fit.ts';
import { describeModel } from '../../src/knowledge/models/describe.ts';
import { sourcesOf } from '../../src/knowledge/models/model-file.ts';
import { tensorsIn } from '../../src/knowledge/models/safetensors.ts';
import { evaluate } from '../../src/planning/fit/evaluate.ts';
import { fitOf } from '../../src/planning/fit/fit.ts';
import type { FitInput } from '../../src/planning/fit/input.ts';
import { GIB, inputFor, model, modelFile } from './ask.ts';

const names = readdirSync(new URL('../samples/fit/models/', import.meta.url)).map((file) =>
  file.replace(/\.json$/, ''),
);
const models = new Map(names.map((name) => [name, model(name)]));

const some = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const bytes = (most: number): fc.Arbitrary<number> =>
  fc.integer({ min: 0, max: most }).map((gib) => gib * GIB);

const settings = fc.record({
  fraction: some(fc.double({ min: 0.05, max: 1, noNaN: true })),
  kvCacheDtype: some(fc.constantFrom('auto', 'fp8', 'fp8_ds_mla', 'nvfp4', 'bfloat16', 'odd')),
  kvCacheBytes: some(bytes(60)),
  batchedTokens: some(fc.integer({ min: 1, max: 70_000 })),
  speculative: some(
    fc.record({
      method: fc.constantFrom('mtp', 'dflash', 'eagle3', 'ngram', 'odd'),
      tokens: fc.integer({ min: 1, max: 20 }),
    }),
  ),
  draftBytes: some(bytes(4)),
  eager: some(fc.boolean()),
  blockSize: some(fc.constantFrom(1, 16, 64, 128)),
  prefixCaching: some(fc.boolean()),
  languageOnly: some(fc.boolean()),
  cpuOffloadBytes: some(bytes(50)),
  swapBytes: some(bytes(20)),
  dcp: some(fc.constantFrom(1, 2, 8)),
  weightsBytes: some(bytes(120)),
  availableKvBytes: some(bytes(80)),
});

const asked: fc.Arbitrary<Omit<FitInput, 'model'>> = fc.record({
  engine: fc.constantFrom('vllm', 'sglang'),
  layout: fc.record({
    nodes: fc.constantFrom(1, 2, 3, 8),
    tensor: fc.constantFrom(1, 2, 3, 4, 8, 16),
    pipeline: fc.constantFrom(1, 2, 5),
    expert: fc.constantFrom(1, 2, 8),
    data: fc.constantFrom(1, 2),
  }),
  memory: fc.record({
    unified: fc.boolean(),
    totalBytes: some(bytes(300)),
    availableBytes: some(bytes(300)),
  }),
  context: some(fc.integer({ min: 1, max: 2_000_000 })),
  sequences: some(fc.integer({ min: 1, max: 4096 })),
  settings,
});

/** Every number of an answer is finite; what is not known is null. */
function expectWhole(value: unknown): void {
  if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true);
  else if (typeof value === 'object' && value !== null)
    for (const inner of Object.values(value)) expectWhole(inner);
  else expect(value).not.toBe(undefined);
}

test('it never throws and never prints a number that is none', () => {
  fc.assert(
    fc.property(fc.constantFrom(...names), asked, (name, rest) => {
      expectWhole(fitOf({ ...rest, model: models.get(name) ?? model(name) }));
    }),
    { numRuns: 80 },
  );
});

test('more context or more sequences never fit better', () => {
  const order = { fits: 0, 'may boot': 1, 'does not fit': 2, unknown: -1 } as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      asked,
      fc.integer({ min: 1, max: 1_000_000 }),
      (name, rest, more) => {
        const input = { ...rest, model: models.get(name) ?? model(name) };
        const base = { ...input, context: rest.context ?? 4096, sequences: rest.sequences ?? 4 };
        const now = evaluate(base);
        if (now.verdict === 'unknown') return;
        const longer = evaluate({ ...base, context: base.context + more });
        const wider = evaluate({ ...base, sequences: base.sequences + (more % 1000) });
        expect(order[longer.verdict]).toBeGreaterThanOrEqual(order[now.verdict]);
        expect(order[wider.verdict]).toBeGreaterThanOrEqual(order[now.verdict]);
        const before = now.stages[0]?.maxConcurrency;
        const after = longer.stages[0]?.maxConcurrency;
        if (before !== undefined && after !== undefined)
          expect(after).toBeLessThanOrEqual(before * (1 + 1e-9));
      },
    ),
    { numRuns: 120 },
  );
});

/** The input with a change made as its words say; undefined for one that asks for another release. */
function changed(input: FitInput, { change, to }: FitChange): FitInput | undefined {
  if (typeof to === 'number') {
    if (change === 'context') return { ...input, context: to };
    if (change === 'sequences') return { ...input, sequences: to };
    return { ...input, settings: { ...input.settings, fraction: to } };
  }
  const pair = /^fraction ([\d.]+), (?:(context|sequences) (\d+)|(.*))$/.exec(to);
  if (change === 'together' && pair !== null) {
    const [, fraction, kind, number, layout = ''] = pair;
    const other = { ...input, settings: { ...input.settings, fraction: Number(fraction) } };
    if (kind === 'context') return { ...other, context: Number(number) };
    return kind === 'sequences'
      ? { ...other, sequences: Number(number) }
      : changed(other, { change: 'layout', to: layout, verdict: 'fits', why: '' });
  }
  if (change === 'kvCacheDtype') return { ...input, settings: { ...input.settings, kvCacheDtype: to } };
  const said = /^(\d+) nodes?, tensor (\d+), pipeline (\d+)(?:, expert (\d+))?$/.exec(to);
  if (change !== 'layout' || said === null) return undefined;
  const [nodes = 1, tensor = 1, pipeline = 1, expert = input.layout.expert] = said
    .slice(1)
    .flatMap((text) => (text === undefined ? [] : [Number(text)]));
  return { ...input, layout: { ...input.layout, nodes, tensor, pipeline, expert } };
}

test('each change, made as it is told, has the verdict that it is told with', () => {
  const order = { fits: 0, 'may boot': 1, 'does not fit': 2, unknown: 3 } as const;
  let made = 0;
  fc.assert(
    fc.property(fc.constantFrom(...names), asked, (name, rest) => {
      const input = { ...rest, model: models.get(name) ?? model(name) };
      const found = fitOf(input);
      for (const change of found.changes) {
        expect(order[change.verdict]).toBeLessThan(order[found.verdict]);
        const other = changed(input, change);
        if (other === undefined) expect(`${change.change} ${change.to}`).toMatch(/quantization/);
        else expect(fitOf(other).verdict, `${change.change} ${change.to}`).toBe(change.verdict);
        made++;
      }
    }),
    { numRuns: 150 },
  );
  expect(made).toBeGreaterThan(10);
});

test('more memory never fits worse', () => {
  const order = { fits: 0, 'may boot': 1, 'does not fit': 2, unknown: 2 } as const;
  const fixed = fc.record({
    batchedTokens: fc.constant(2048),
    fraction: fc.double({ min: 0.3, max: 0.9, noNaN: true }),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      asked,
      fixed,
      fc.integer({ min: 101, max: 300 }),
      (name, rest, settings, percent) => {
        const { memory } = rest;
        const input = {
          ...rest,
          model: models.get(name) ?? model(name),
          sequences: rest.sequences ?? 64,
          settings: { ...rest.settings, ...settings },
        };
        // What is there more is free.
        const further = ((memory.totalBytes ?? 0) * (percent - 100)) / 100;
        const more = (bytes: number | undefined) => (bytes === undefined ? undefined : bytes + further);
        const larger = {
          ...memory,
          totalBytes: more(memory.totalBytes),
          availableBytes: more(memory.availableBytes),
        };
        expect(order[evaluate({ ...input, memory: larger }).verdict]).toBeLessThanOrEqual(
          order[evaluate(input).verdict],
        );
      },
    ),
    { numRuns: 120 },
  );
});

const odd = fc.oneof(
  fc.constantFrom(
    0,
    -1,
    1,
    7,
    1e9,
    1e30,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    true,
    'full',
    '',
    [],
    {},
  ),
  fc.integer({ min: 0, max: 4096 }),
  fc.jsonValue(),
);
const KEYS = [
  'num_hidden_layers',
  'hidden_size',
  'num_attention_heads',
  'num_key_value_heads',
  'head_dim',
  'vocab_size',
  'intermediate_size',
  'moe_intermediate_size',
  'num_experts',
  'layer_types',
  'sliding_window',
  'kv_lora_rank',
  'compress_ratios',
  'linear_num_value_heads',
  'linear_attn_config',
  'mamba_num_heads',
  'hybrid_override_pattern',
  'mtp_num_hidden_layers',
  'num_kv_shared_layers',
  'full_attention_interval',
  'rope_parameters',
  'text_config',
  'vision_config',
  'quantization_config',
  'max_position_embeddings',
  'model_type',
  'config',
  'hf_quant_config',
  'weight_format',
  'safetensors_total',
  'index_n_heads',
  'indexer_types',
] as const;

test('whatever a config holds, it is read or not known', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...KEYS), odd), asked, (file, rest) => {
      expectWhole(fitOf({ ...rest, model: describeModel(sourcesOf(file, 'odd')) }));
    }),
    { numRuns: 120 },
  );
});

test('a real config with one member spoilt is read or not known', () => {
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.constantFrom(...KEYS), odd, (name, key, value) => {
      const config = { ...plainConfig(name), [key]: value };
      expectWhole(
        fitOf({
          ...inputFor(describeModel({ name, config }), { total: 121, unified: true }),
          layout: { nodes: 2, tensor: 2, pipeline: 1, expert: 1, data: 1 },
        }),
      );
    }),
    { numRuns: 80 },
  );
});

function plainConfig(name: string): Readonly<Record<string, unknown>> {
  return sourcesOf(modelFile(name), name).config;
}

test('a header that is cut or spoilt is none', () => {
  const header = JSON.stringify({ a: { dtype: 'BF16', shape: [1], data_offsets: [0, 2] } });
  expect(tensorsIn(header)).toEqual([{ name: 'a', bytes: 2 }]);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: header.length - 1 }), (at) => {
      expect(tensorsIn(header.slice(0, at))).toBeUndefined();
    }),
  );
  expect(tensorsIn('{"a":{"data_offsets":[5,2]}}')).toBeUndefined();
  expect(tensorsIn('{"a":{}}')).toBeUndefined();
});
