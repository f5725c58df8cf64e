import { expect, test } from 'vitest';
import { editRecipe, type Recipe, recipeSchema, servedName } from '../../src/domain/recipe.ts';

const written = {
  recipe: 'qwen3.5-122b',
  model: 'Qwen/Qwen3.5-122B-A10B-FP8',
  path: '/models/qwen',
  engines: ['sglang', 'vllm'],
  layout: { nodes: 2, tensor: 2 },
  run: { in: 'docker', image: { sglang: 'lmsysorg/sglang:v1', vllm: 'vllm/vllm-openai:v1' } },
};

function recipe(more: Readonly<Record<string, unknown>> = {}): Recipe {
  return recipeSchema.parse({ ...written, ...more });
}

test('everything that may be left out has its default', () => {
  expect(recipe()).toMatchObject({
    layout: { nodes: 2, tensor: 2, pipeline: 1, expert: 1, data: 1 },
    memory: { fraction: 'auto', reserve: 6 * 2 ** 30 },
    network: 'auto',
    serve: { port: 30000, listen: 'loopback', reasoning: 'auto', tools: 'auto' },
    rendezvousPort: 20000,
    args: {},
    env: {},
    check: { expect: '204' },
  });
});

test('a recipe read again is the same recipe', () => {
  const once = recipe({ memory: { reserve: '1.5GiB' }, env: { A: 1, B: true } });
  expect(recipeSchema.parse(once)).toEqual(once);
});

const sizes: readonly (readonly [unknown, number | undefined])[] = [
  ['6GiB', 6442450944],
  ['512 MiB', 536870912],
  ['1.5GiB', 1610612736],
  ['1TiB', 2 ** 40],
  ['6GB', 6e9],
  ['100KB', 1e5],
  ['4194304', 4194304],
  ['4096', undefined],
  ['90', undefined],
  [6, undefined],
  [' 1 KiB ', 1024],
  ['10B', 10],
  [0, 0],
  [6442450944, 6442450944],
  ['0.3B', 0],
  ['6gib', undefined],
  ['6 G', undefined],
  ['-1GiB', undefined],
  ['GiB', undefined],
  ['1e3', undefined],
  [-1, undefined],
  [1.5, undefined],
  [null, undefined],
];

test.each(sizes)('the size %j is %j bytes', (text, bytes) => {
  const read = recipeSchema.safeParse({ ...written, memory: { reserve: text } });
  expect(read.success ? read.data.memory.reserve : undefined).toBe(bytes);
});

test('a model is served under the name that the recipe gives it, else under the recipe’s own', () => {
  expect(servedName(recipe())).toBe('qwen3.5-122b');
  expect(servedName(recipe({ serve: { name: 'qwen' } }))).toBe('qwen');
});

test('edits change what they name and nothing else', () => {
  const before = recipe({ network: 'engine' });
  const after = editRecipe(before, [
    { path: 'network', from: 'engine', to: 'auto' },
    { path: 'memory.fraction', from: 'auto', to: 0.8 },
    { path: 'args.sglang', from: undefined, to: ['--disable-cuda-graph'] },
    { path: 'env.NCCL_DEBUG', from: undefined, to: 'INFO' },
  ]);
  expect(after).toEqual({
    ...before,
    network: 'auto',
    memory: { ...before.memory, fraction: 0.8 },
    args: { sglang: ['--disable-cuda-graph'] },
    env: { NCCL_DEBUG: 'INFO' },
  });
  expect(before.network).toBe('engine');
  expect(before.args).toEqual({});
});

test('an edit to nothing takes a key away, so that its default counts again', () => {
  const narrow = recipe({ context: 4096, serve: { listen: 'all' } });
  const edits = [
    { path: 'context', from: 4096, to: undefined },
    { path: 'serve.listen', from: 'all', to: undefined },
  ];
  const after = editRecipe(narrow, edits);
  expect('context' in after).toBe(false);
  expect(after.serve.listen).toBe('loopback');
});

test('edits reach into lists by index', () => {
  const after = editRecipe(recipe(), [
    { path: 'engines.0', from: 'sglang', to: 'vllm' },
    { path: 'engines.1', from: 'vllm', to: 'sglang' },
  ]);
  expect(after.engines).toEqual(['vllm', 'sglang']);
});

test('an edit that makes no recipe is our bug, and throws', () => {
  expect(() => editRecipe(recipe(), [{ path: 'netwrok', from: undefined, to: 'auto' }])).toThrow();
  expect(() => editRecipe(recipe(), [{ path: 'network', from: 'auto', to: 'none' }])).toThrow();
  expect(() => editRecipe(recipe(), [{ path: 'model.name', from: '', to: 'x' }])).toThrow('no such path');
});
