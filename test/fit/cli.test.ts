import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parseObject } from '../../src/domain/json.ts';
import { fit } from '../../src/operations/fit.ts';
import { readSettings, SETTING_KEYS } from '../../src/planning/fit/settings.ts';
import { run } from '../faces/run-cli.ts';
import { writeSmallModel } from './shards.ts';

const root = mkdtempSync(join(tmpdir(), 'firstlight-fit-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const sample = (name: string) => new URL(`../samples/fit/models/${name}.json`, import.meta.url).pathname;
const ask = (...flags: readonly string[]) => run(['fit', ...flags], [fit]);
const GIB = 2 ** 30;

test('prints the JSON of the fit alone, whatever the exit code', async () => {
  const on = ['--model', sample('Qwen3-8B'), '--engine', 'vllm', '--json'];
  const fits = await ask(...on, '--memory', '79.1GiB', '--context', '32768');
  expect(fits.code).toBe(0);
  const answer = parseObject(fits.stdout);
  expect(answer).toMatchObject({
    verdict: 'fits',
    ranks: [{ node: 'node-1', rank: 0, kvBytesPerToken: 147_456, blockTokens: 16 }],
    startCheck: { passes: null, hasBytes: null },
    changes: [],
  });
  const small = await ask(...on, '--memory', '12GiB');
  expect(small.code).toBe(1);
  expect(parseObject(small.stdout)).toMatchObject({ verdict: 'does not fit' });
  const unsaid = await ask(...on);
  expect(parseObject(unsaid.stdout)).toMatchObject({ verdict: 'unknown' });
});

test('ranks stand on their nodes in order', async () => {
  const { stdout } = await ask(
    ...['--model', sample('DeepSeek-V3'), '--engine', 'vllm', '--json', '--nodes', '2', '--tensor', '8'],
    ...['--pipeline', '2', '--memory', '139.8GiB'],
  );
  const ranks = parseObject(stdout)?.['ranks'];
  expect(Array.isArray(ranks) ? ranks.map((rank) => `${rank.rank} ${rank.node}`) : []).toEqual(
    Array.from({ length: 16 }, (_, rank) => `${rank} node-${rank < 8 ? 1 : 2}`),
  );
});

test('a folder, its config.json and an index are taken as well', async () => {
  const folder = join(root, 'small');
  writeSmallModel(folder);
  const flags = ['--engine', 'sglang', '--memory', '10GiB', '--json'];
  const byFolder = await ask('--model', folder, ...flags);
  expect(parseObject(byFolder.stdout)).toMatchObject({ verdict: 'fits' });
  expect(byFolder.stdout).toMatch(/headers of the files/);
  const index = join(root, 'i.json');
  writeFileSync(index, JSON.stringify({ metadata: { total_size: 3 * GIB }, weight_map: {} }));
  const byConfig = await ask('--model', join(folder, 'config.json'), '--index', index, ...flags);
  expect(byConfig.stdout).toMatch(/3\.0 GiB by the safetensors index/);
});

test('for people: a row per rank that differs, what has to hold, what would do, and the rules', async () => {
  const { stdout, code } = await ask(
    ...['--model', sample('Llama-3.3-70B'), '--engine', 'vllm', '--tensor', '2', '--memory', '79.1GiB'],
  );
  expect(code).toBe(1);
  expect(stdout).toMatch(/Does not fit: Llama-3\.3-70B/);
  expect(stdout).toMatch(/0-1 +node-1 +65\.\d/);
  expect(stdout).toMatch(/Alone, each of these would do/);
  expect(stdout).toMatch(/context: [\d,]+ \((?:fits|may boot)\): [\d,]+ tokens is the largest context/);
  expect(stdout).toMatch(/give or take/);
});

test.each([
  [['--engine', 'vllm'], /neither a recipe nor a model/],
  [['--model', '/nowhere.json', '--engine', 'vllm'], /there is no model description/],
  [['--model', sample('Qwen3-8B')], /--model needs --engine/],
  [['r.yaml', '--model', sample('Qwen3-8B'), '--engine', 'vllm'], /both named/],
  [['--model', sample('Qwen3-8B'), '--engine', 'vllm', '--set', 'colour=red'], /is no setting/],
  [['--model', sample('Qwen3-8B'), '--engine', 'vllm', '--set', 'fraction=2'], /no share of the memory/],
  [['--model', sample('Qwen3-8B'), '--engine', 'vllm', '--set', 'draftBytes=4XB'], /no size/],
  [['--model', sample('Qwen3-8B'), '--engine', 'vllm', '--memory', 'much'], /memory/],
  [['--model', sample('Qwen3-8B'), '--engine', 'vllm', '--tensor', '0'], /tensor/],
  [['--model', sample('Qwen3-8B'), '--engine', 'ray'], /engine/],
])('bad input %j is told in a sentence and ends with 2', async (flags, words) => {
  const ran = await ask(...flags);
  expect(ran.code).toBe(2);
  expect(ran.stderr).toMatch(words);
});

test('every setting has a form, and the last of a key holds', () => {
  const { settings, data } = readSettings([
    'fraction=0.5',
    'fraction=0.85',
    'kvCacheDtype=fp8',
    'kvCacheBytes=4GiB',
    'batchedTokens=4096',
    'speculative=mtp:3',
    'draftBytes=944892805',
    'eager',
    'blockSize=64',
    'prefixCaching=false',
    'languageOnly=true',
    'cpuOffloadBytes=2GiB',
    'swapBytes=4e9',
    'dp=8',
    'dcp=4',
    'weightsBytes=1',
    'availableKvBytes=2',
  ]);
  expect(settings).toEqual({
    fraction: 0.85,
    kvCacheDtype: 'fp8',
    kvCacheBytes: 4 * GIB,
    batchedTokens: 4096,
    speculative: { method: 'mtp', tokens: 3 },
    draftBytes: 944_892_805,
    eager: true,
    blockSize: 64,
    prefixCaching: false,
    languageOnly: true,
    cpuOffloadBytes: 2 * GIB,
    swapBytes: 4_000_000_000,
    dcp: 4,
    weightsBytes: 1,
    availableKvBytes: 2,
  });
  expect(data).toBe(8);
  expect(SETTING_KEYS).toHaveLength(16);
  expect(readSettings(['speculative=mtp assistant']).settings.speculative).toEqual({
    method: 'mtp assistant',
    tokens: 1,
  });
});
