import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parseObject } from '../../src/domain/json.ts';
import { readModel } from '../../src/files/model-folder.ts';
import { fit } from '../../src/operations/fit.ts';
import { modelAt } from '../../src/operations/fit-model.ts';
import { run } from '../faces/run-cli.ts';
import { writeShard, writeSmallModel } from './shards.ts';

const root = mkdtempSync(join(tmpdir(), 'firstlight-folders-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const ask = (path: string, ...more: readonly string[]) =>
  run(['fit', '--json', '--model', path, '--engine', 'vllm', '--memory', '24GiB', ...more], [fit]);
const folder = (name: string, files: Readonly<Record<string, unknown>>): string => {
  const path = join(root, name);
  mkdirSync(path);
  for (const [file, content] of Object.entries(files))
    writeFileSync(join(path, file), typeof content === 'string' ? content : JSON.stringify(content));
  return path;
};
const config = {
  model_type: 'qwen3',
  num_hidden_layers: 2,
  hidden_size: 64,
  num_attention_heads: 4,
  vocab_size: 1000,
  max_position_embeddings: 4096,
};
const CONFIG = { 'config.json': config };

test('a shard that its name counts and that is not there leaves the headers unread', () => {
  const path = folder('one-of-two', CONFIG);
  writeShard(path, 'model-00001-of-00002.safetensors', { 'model.layers.0.mlp.up_proj.weight': 1000 });
  expect(readModel(path, undefined)).toMatchObject({ headers: undefined, fileBytes: undefined });
  expect(modelAt(path, undefined).rule).toMatch(/arithmetic of config.json/);
});

test('a shard that the index names and that is not there leaves the index’s sum', () => {
  const path = folder('named', {
    ...CONFIG,
    'model.safetensors.index.json': {
      metadata: { total_size: 500_000 },
      weight_map: { a: 'a.safetensors', b: 'b.safetensors' },
    },
  });
  writeShard(path, 'a.safetensors', { 'model.layers.0.mlp.up_proj.weight': 1000 });
  expect(readModel(path, undefined)).toMatchObject({ headers: undefined, indexBytes: 500_000 });
  expect(modelAt(path, undefined).rule).toMatch(/by the safetensors index/);
});

test('a second copy in one file is not counted twice, nor what the index does not name', () => {
  const path = join(root, 'twice');
  writeSmallModel(path);
  const once = modelAt(path, undefined).fileBytes;
  writeShard(path, 'consolidated.safetensors', { 'layers.0.attention.wq.weight': 9_000_000 });
  expect(modelAt(path, undefined).fileBytes).toBe(once);
  const named = folder('unnamed', {
    ...CONFIG,
    'model.safetensors.index.json': {
      metadata: { total_size: 1 },
      weight_map: { a: 'model.safetensors' },
    },
  });
  writeShard(named, 'model.safetensors', {
    'model.layers.0.mlp.up_proj.weight': 1000,
    'model.layers.1.mlp.up_proj.weight': 1000,
  });
  writeShard(named, 'extra.safetensors', { 'model.layers.1.mlp.gate_proj.weight': 9_000_000 });
  expect(modelAt(named, undefined).fileBytes).toBe(2000);
});

test('a folder of weights without config.json has a bound and no number', async () => {
  const path = folder('weights', {});
  writeShard(path, 'model.safetensors', { a: 2 ** 30 });
  const ran = await ask(path);
  expect(ran.code).toBe(1);
  expect(parseObject(ran.stdout)).toMatchObject({ verdict: 'unknown', bound: { atMostBytes: 2 ** 30 } });
});

test('a GGUF model in parts is one, several models are an error that names them', async () => {
  const parts = folder('parts', { 'm-00001-of-00002.gguf': 'x', 'm-00002-of-00002.gguf': 'yy' });
  expect(readModel(parts, undefined).gguf).toHaveLength(2);
  expect(readModel(join(parts, 'm-00001-of-00002.gguf'), undefined)).toMatchObject({
    name: 'm',
    fileBytes: 3,
  });
  const several = folder('several', { 'm-Q4.gguf': 'x', 'm-Q8.gguf': 'y', 'mmproj-m.gguf': 'z' });
  const ran = await ask(several);
  expect(ran.code).toBe(2);
  expect(ran.stdout).toMatch(/holds 2 GGUF models: m-Q4, m-Q8/);
  expect((await ask(join(several, 'm-Q4.gguf'))).code).toBe(1);
});

test.each([
  ['nothing', {}],
  ['no JSON', { 'config.json': '{"model_type": ' }],
  ['a list', { 'config.json': '[]' }],
  ['no index', { ...CONFIG, 'model.safetensors.index.json': { nothing: 1 } }],
  ['an index cut short', { ...CONFIG, 'model.safetensors.index.json': '{' }],
  ['a quantisation config cut short', { ...CONFIG, 'hf_quant_config.json': '{' }],
])('a folder that holds %s is told in a sentence and ends with 2', async (name, files) => {
  const ran = await ask(folder(name, files));
  expect(ran.code).toBe(2);
  expect(parseObject(ran.stdout)).toMatchObject({ error: { code: 'bad-input' } });
});

test.each([
  '/dev/null',
  '/proc/self/mem',
  '/',
  join(root, 'missing'),
  join(root, 'parts', 'm-00001-of-00002.gguf', 'x'),
])('%s is no model, and that is told', async (path) => {
  const ran = await ask(path);
  expect(ran.code).toBe(2);
  expect(parseObject(ran.stdout)).toMatchObject({ error: { code: 'bad-input' } });
});

test.each([
  [['--memory', '121.69'], /less than 1 MiB; write it with its unit/],
  [['--memory', '0'], /less than 1 MiB/],
  [['--available', '110'], /less than 1 MiB/],
  [['--available', '200GiB'], /more than --memory/],
  [['--set', 'dp=100000'], /whole number from 1 to 4096/],
  [['--set', 'dcp=0'], /whole number from 1 to 4096/],
  [['--set', 'kvCacheDtype'], /is no setting/],
  [['--set', 'speculative='], /names no method/],
  [['--context', '128k'], /128k/],
  [['--sequences', '0'], /sequences/],
])('%j is told in a sentence and ends with 2', async (flags, words) => {
  const path = folder(`flags ${flags.join(' ')}`, CONFIG);
  const ran = await ask(path, ...flags);
  expect(ran.code).toBe(2);
  expect(ran.stdout).toMatch(words);
});

test.each([
  ['--set', 'speculative=never heard of it:7'],
  ['--set', 'speculative=:3'],
  ['--set', 'speculative=mtp:null'],
  ['--set', 'kvCacheDtype=banana'],
  ['--set', 'kvCacheBytes=0'],
  ['--set', 'weightsBytes=0'],
  ['--set', 'batchedTokens=1000000000'],
  ['--set', 'blockSize=1000000000'],
  ['--set', 'swapBytes=900GiB'],
  ['--set', 'cpuOffloadBytes=900GiB'],
  ['--set', 'dcp=7'],
  ['--set', 'dp=4096'],
  ['--context', '99999999999'],
  ['--sequences', '100000000'],
  ['--tensor', '3'],
  ['--pipeline', '37'],
  ['--expert', '8'],
  ['--nodes', '5'],
  ['--available', '0'],
])('%s %s is answered without a number that is none', async (...flags) => {
  const path = folder(`odd ${flags.join(' ').replaceAll('/', '-')}`, CONFIG);
  for (const engine of ['vllm', 'sglang']) {
    const ran = await ask(path, ...flags, '--engine', engine);
    expect([0, 1]).toContain(ran.code);
    expect(parseObject(ran.stdout)?.['verdict']).toMatch(/^(?:fits|may boot|does not fit|unknown)$/);
    expect(ran.stdout).not.toMatch(/NaN|Infinity|undefined/);
  }
});
