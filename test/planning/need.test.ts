import { expect, test } from 'vitest';
import { known } from '../../src/domain/facts.ts';
import { describeModel } from '../../src/knowledge/models/describe.ts';
import { allocate } from '../../src/planning/allocate.ts';
import { memoryFraction } from '../../src/planning/memory-fraction.ts';
import { needOf, roomOf } from '../../src/planning/need.ts';
import { configOf, GIB, memoryOf, spark, sparkNodes, sparkRecipe } from '../pretend/facts.ts';

function need(name: string, gib: number, differs: Readonly<Record<string, unknown>> = {}, unified = true) {
  const found = needOf({
    recipe: sparkRecipe(differs),
    engine: 'vllm',
    model: describeModel({ name, config: configOf(name), total: { bytes: gib * GIB, from: 'index' } }),
    unified,
    at: 0,
  });
  if ('why' in found) throw new Error(found.why);
  return found;
}

test('Qwen3.5-122B FP8 over two Sparks: weights, KV cache per token and state per sequence', () => {
  const found = need('Qwen3.5-122B-A10B-FP8', 119.2);
  // 119 GiB on disk: 57.6 of text alone to 59.8 with vision and MTP per rank.
  expect(found.weightsBytes / GIB).toBeGreaterThan(57.5);
  expect(found.weightsBytes / GIB).toBeLessThan(59.9);
  expect(found.tokenBytes).toBe(12_288);
  // 73.3 MiB a slot at tensor 2, two slots in vLLM.
  expect(found.stateBytes / 2 ** 20 / 2).toBeCloseTo(73.3, 1);
});

// Bytes per token and rank as engines.md 5.5 and FORMULAS 3 give them.
test.each([
  ['Qwen3-235B-A22B', 4, 48_128],
  ['Qwen3-30B-A3B-FP8', 1, 98_304],
  ['Qwen3.5-122B-A10B-FP8', 1, 24_576],
  ['Qwen3.5-122B-A10B-FP8', 4, 12_288],
  // Latent attention is on every rank whole: 61 layers of 576 values.
  ['DeepSeek-V3', 8, 61 * 576 * 2],
])('%s at tensor %i keeps %i bytes per token and rank', (name, tensor, bytes) => {
  expect(need(name, 200, { layout: { nodes: 1, tensor } }).tokenBytes / tensor).toBe(bytes);
});

test('sliding layers hold their window alone', () => {
  const found = need('gpt-oss-120b', 60.8, { layout: { nodes: 1, tensor: 1 }, sequences: 1 });
  expect(found.tokenBytes).toBe(36_864);
  // A request keeps the window and what one step adds, in whole blocks of 16, and one block more.
  const blocks = Math.ceil((128 - 1 + 2048) / 16) + 1;
  expect(found.sequenceBytes).toBe(36_864 * 131_072 + 36_864 * 16 * blocks);
});

test('an 8-bit KV cache halves it, and switched off graphs cost nothing', () => {
  const found = need('Qwen3-235B-A22B', 200, {
    layout: { nodes: 1, tensor: 4 },
    args: { vllm: ['--kv-cache-dtype=fp8_e4m3', '--enforce-eager'] },
  });
  expect(found.tokenBytes / 4).toBe(48_128 / 2);
  expect(found.graphsBytes).toBe(0);
});

test('without a config or files nothing is made up', () => {
  const base = { recipe: sparkRecipe(), engine: 'vllm', unified: true, at: 0 } as const;
  const files = { bytes: 200 * GIB, from: 'files' } as const;
  expect(needOf({ ...base, model: undefined })).toHaveProperty('why');
  expect(needOf({ ...base, model: describeModel({ name: 'x', config: {}, total: files }) })).toHaveProperty(
    'why',
  );
  const config = configOf('DeepSeek-V3');
  expect(needOf({ ...base, model: describeModel({ name: 'x', config }) })).toHaveProperty('why');
});

test('on unified memory MemAvailable counts, on cards of their own what is free there', () => {
  const recipe = sparkRecipe({ layout: { nodes: 2, tensor: 4 } });
  const unified = roomOf(
    spark('a', { memory: known(memoryOf({ total: 121, free: 3, available: 100, cached: 90 })) }),
    recipe,
    'vllm',
  );
  expect(unified).toMatchObject({ unified: true, canGetBytes: 94 * GIB });
  const card = (index: number, free: number) => ({
    index,
    name: 'NVIDIA H200',
    uuid: `GPU-${index}`,
    unified: false,
    totalBytes: known(139 * GIB),
    freeBytes: known(free * GIB),
    driver: '580',
  });
  const cards = roomOf(spark('a', { gpus: known([card(1, 130), card(0, 120), card(2, 1)]) }), recipe, 'vllm');
  expect(cards).toMatchObject({ unified: false, canGetBytes: 250 * GIB });
});

function fraction(engine: 'sglang' | 'vllm', aAvailable: number, bAvailable: number, sequences = 16) {
  const recipe = sparkRecipe({ sequences });
  const at = (total: number, available: number) =>
    known(memoryOf({ total, free: available, available, cached: 1 }));
  const { shares } = allocate({
    nodes: sparkNodes,
    facts: [spark('a', { memory: at(121.69, aAvailable) }), spark('b', { memory: at(119.7, bAvailable) })],
    recipe,
    engine,
    settled: new Set(),
    leaving: new Set(),
    alsoGoing: () => [],
  });
  const value = memoryFraction(recipe, engine, shares);
  if (value === undefined) throw new Error('no fraction');
  return { value, shares };
}

test('SGLang’s fraction is of what is free before the load, by the poorer node', () => {
  const { value, shares } = fraction('sglang', 116, 110);
  const [share] = shares;
  const wanted = (share?.memory.weightsBytes ?? 0) + (share?.memory.kvBytes ?? 0);
  // It holds weights and caches, and leaves the engine's share, the graphs and the reserve.
  expect(value * 110 * GIB).toBeGreaterThan(wanted);
  expect((1 - value) * 110).toBeGreaterThan(6 + 5);
});

test('vLLM’s fraction is of the total, and its start check finds that much free', () => {
  const { value } = fraction('vllm', 116, 90, 4);
  expect(value * 119.7).toBeLessThan(90 - 3);
  expect(value * 121.69).toBeLessThan(116);
  expect(value).toBe(Math.round(value * 100) / 100);
});

test('a fraction in the recipe stands', () => {
  expect(memoryFraction(sparkRecipe({ memory: { fraction: 0.7 } }), 'sglang', [])).toBe(0.7);
});

test('a context past the model’s own limit is told as that, and no larger one is advised', () => {
  const recipe = sparkRecipe({ context: 10_000_000, layout: { nodes: 2, tensor: 2 } });
  const { largestContext } = allocate({
    nodes: sparkNodes,
    facts: [spark('a'), spark('b')],
    recipe,
    engine: 'vllm',
    settled: new Set(),
    leaving: new Set(),
    alsoGoing: () => [],
  });
  expect(largestContext).toBe(262_144);
});

test('a share that the recipe fixes is what vLLM takes, however little the model needs', () => {
  const of = (engine: 'vllm' | 'sglang') => {
    const { shares } = allocate({
      nodes: sparkNodes,
      facts: [spark('a'), spark('b')],
      recipe: sparkRecipe({ context: 4096, sequences: 1, memory: { fraction: 0.8 } }),
      engine,
      settled: new Set(),
      leaving: new Set(),
      alsoGoing: () => [],
    });
    return (shares[0]?.memory.sumBytes ?? 0) / GIB;
  };
  // vLLM starts where 0.8 of 121.7 GiB are free, the reserve of 6 among them; SGLang's share is of what is free.
  expect(of('vllm')).toBeCloseTo(0.8 * 121.69 - 6, 0);
  expect(of('sglang')).toBeLessThan(of('vllm') - 10);
});
