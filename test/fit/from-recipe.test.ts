import { expect, test } from 'vitest';
import { type Holder, known, unknown } from '../../src/domain/facts.ts';
import { memoryFlags } from '../../src/knowledge/engines/memory-flags.ts';
import { parseGpuLook } from '../../src/knowledge/probes/gpus.ts';
import { fitOf } from '../../src/planning/fit/fit.ts';
import { fitInputOf } from '../../src/planning/fit/from-recipe.ts';
import {
  GIB,
  memoryOf,
  rankRecord,
  spark,
  sparkNodes,
  sparkRecipe,
  storyHolders,
  wholeModel,
} from '../pretend/facts.ts';

const model = known(wholeModel());
const [ownHolder] = storyHolders;
if (ownHolder === undefined) throw new Error('the story has no holder');
const at = (total: number, available: number) => ({
  model,
  memory: known(memoryOf({ total, free: available, available, cached: 1 })),
});

test('a recipe on two Sparks is asked with what both have, by the poorer one', () => {
  const input = fitInputOf({
    nodes: sparkNodes,
    facts: [spark('a', at(121.69, 115)), spark('b', at(119.7, 100))],
    recipe: sparkRecipe({ memory: { fraction: 0.8 } }),
    engine: 'vllm',
  });
  expect(input).toMatchObject({
    engine: 'vllm',
    layout: { nodes: 2, tensor: 2 },
    memory: { unified: true, totalBytes: 119.7 * GIB, availableBytes: 100 * GIB },
    context: 131_072,
    sequences: 16,
    settings: { fraction: 0.8 },
  });
  const found = fitOf(input);
  expect(found.ranks.map(({ node }) => node)).toEqual(['spark-a', 'spark-b']);
  expect(found.startCheck.passes).toBe(true);
  expect(found.verdict).toBe('fits');
});

test('the engine’s own arguments count, and the recipe’s keys before them', () => {
  const args = {
    vllm: [
      '--gpu-memory-utilization=0.7',
      '--max-model-len',
      '1000',
      '--speculative-config',
      '{"method":"mtp","num_speculative_tokens":3}',
    ],
  };
  const nodes = sparkNodes;
  const facts = [spark('a', { model }), spark('b', { model })];
  const own = fitInputOf({ nodes, facts, recipe: sparkRecipe({ args }), engine: 'vllm' });
  expect(own.context).toBe(131_072);
  expect(own.settings).toMatchObject({ fraction: 0.7, speculative: { method: 'mtp', tokens: 3 } });
});

test('headers that a look brought go before the index', () => {
  const present = wholeModel();
  if (!present.present) throw new Error('it is there');
  const norms = Array.from({ length: 94 }, (_, layer) => ({
    name: `model.layers.${layer}.input_layernorm.weight`,
    bytes: 8192,
  }));
  const tensors = known([{ name: 'model.embed_tokens.weight', bytes: 7 * GIB }, ...norms]);
  const facts = [spark('a', { model: known({ ...present, tensors }) }), spark('b', { model })];
  const input = fitInputOf({ nodes: sparkNodes, facts, recipe: sparkRecipe(), engine: 'sglang' });
  expect(input.model.fileBytes).toBe(7 * GIB + norms.length * 8192);
  const without = known({ ...present, tensors: unknown('a shard is cut') });
  const again = fitInputOf({
    nodes: sparkNodes,
    facts: [spark('a', { model: without })],
    recipe: sparkRecipe(),
    engine: 'sglang',
  });
  expect(again.model.fileBytes).toBe(119.2 * GIB);
});

test('memory that no node tells is unknown, and so is the verdict', () => {
  const facts = [
    spark('a', { model, memory: unknown('no /proc') }),
    spark('b', { model, memory: unknown('no /proc') }),
  ];
  const input = fitInputOf({ nodes: sparkNodes, facts, recipe: sparkRecipe(), engine: 'vllm' });
  expect(input.memory).toMatchObject({
    unified: true,
    totalBytes: undefined,
    availableBytes: undefined,
    why: 'spark-a: no /proc',
  });
  expect(fitOf(input).verdict).toBe('unknown');
});

test('flags of both engines, in either form, the last one as argparse reads it', () => {
  const vllm = memoryFlags(
    [
      '--max-num-seqs',
      '8',
      '--max-num-seqs=16',
      '--kv-cache-memory-bytes',
      '4G',
      '--enforce-eager',
      '--swap-space',
      '4',
      '--no-enable-prefix-caching',
      '-dcp',
      '2',
    ],
    'vllm',
  );
  expect(vllm).toMatchObject({
    sequences: 16,
    kvCacheBytes: 4 * GIB,
    eager: true,
    swapBytes: 4 * GIB,
    prefixCaching: false,
    dcp: 2,
  });
  const sglang = memoryFlags(
    [
      '--mem-fraction-static=0.8',
      '--chunked-prefill-size',
      '4096',
      '--speculative-algorithm',
      'NEXTN',
      '--speculative-num-draft-tokens',
      '4',
      '--disable-cuda-graph',
      '--page-size',
      '64',
      '--disable-radix-cache',
    ],
    'sglang',
  );
  expect(sglang).toMatchObject({
    fraction: 0.8,
    batchedTokens: 4096,
    speculative: { method: 'nextn', tokens: 4 },
    eager: true,
    blockSize: 64,
    prefixCaching: false,
  });
});

test('GPUs that the driver does not tell of are no part of the host’s memory, and a node not reached is not known', () => {
  const why = 'nvidia-smi gave no answer in 5 s';
  const driver = { version: known('580.159.03'), flavour: known('open' as const), listed: known(8) };
  const trouble = { kind: 'hangs' as const, why, remedy: '', seen: [] };
  const ask = (b: Parameters<typeof spark>[1]) =>
    fitOf(
      fitInputOf({
        nodes: sparkNodes,
        facts: [spark('a', at(121.69, 115)), spark('b', { ...at(2000, 1900), ...b })],
        recipe: sparkRecipe({ memory: { fraction: 0.8 } }),
        engine: 'vllm',
      }),
    );
  expect(ask({ gpus: unknown(why), driver: { ...driver, trouble } })).toMatchObject({
    verdict: 'unknown',
    why: `the GPUs of spark-b are not known: ${why}`,
    startCheck: { passes: null },
  });
  // A look that has nothing to say of the GPUs at all does not say that there are none.
  expect(ask({ gpus: unknown('nothing was read about GPUs') }).verdict).toBe('unknown');
  // Without any driver what the host has is all there is.
  const none = parseGpuLook({
    code: 0,
    stdout: 'code 127\ngpu timeout: failed to run command ‘nvidia-smi’: No such file or directory\nend\n',
    stderr: '',
    timedOut: false,
  });
  expect(none.gpus).toEqual(unknown('nvidia-smi is not installed'));
  expect(ask(none).verdict).not.toBe('unknown');
  // A card whose free memory is not told is not an empty card.
  const card = { index: 0, name: 'NVIDIA H100', uuid: 'GPU-h', unified: false, driver: '580.1' };
  const cards = known([
    { ...card, totalBytes: known(140 * GIB), freeBytes: unknown('nvidia-smi says ERR!') },
  ]);
  expect(ask({ gpus: cards })).toMatchObject({
    verdict: 'unknown',
    why: 'nvidia-smi tells no free memory of the GPUs of spark-b',
  });
  const alone = fitInputOf({
    nodes: sparkNodes,
    facts: [spark('a', at(121.69, 115))],
    recipe: sparkRecipe(),
    engine: 'sglang',
  });
  expect(fitOf(alone)).toMatchObject({ verdict: 'unknown', why: 'spark-b was not reached' });
});

test('a recipe that runs already is asked as before its launch: what its own ranks hold is its own', () => {
  const facts = (['a', 'b'] as const).map((which, rank) => {
    const holder: Holder = {
      ...ownHolder,
      identity: `rank:qwen3.5-122b-r${rank}`,
      owner: { kind: 'rank', name: `qwen3.5-122b-r${rank}` },
      bytes: 80 * GIB,
    };
    return spark(which, { ...at(121.69, 30), ranks: known([rankRecord(rank)]), holders: known([holder]) });
  });
  const asked = { nodes: sparkNodes, facts, engine: 'vllm' as const };
  const own = fitInputOf({ ...asked, recipe: sparkRecipe() });
  expect(own.memory).toMatchObject({ availableBytes: 110 * GIB, ownBytes: 80 * GIB });
  expect(fitOf(own).rules).toContainEqual(
    expect.objectContaining({ about: 'free memory', rule: expect.stringContaining('own ranks') }),
  );
  const other = fitInputOf({ ...asked, recipe: sparkRecipe({ recipe: 'another' }) });
  expect(other.memory).toMatchObject({ availableBytes: 30 * GIB, ownBytes: undefined });
});
