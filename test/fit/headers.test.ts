import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isObject } from '../../src/domain/json.ts';
import { readModel } from '../../src/files/model-folder.ts';
import { describeModel } from '../../src/knowledge/models/describe.ts';
import { modelHeadersProbe, parseModelHeaders } from '../../src/knowledge/probes/model-headers.ts';
import { modelAt } from '../../src/operations/fit-model.ts';
import { fitting, modelFile, weights } from './ask.ts';
import { writeShard, writeSmallModel } from './shards.ts';

const root = mkdtempSync(join(tmpdir(), 'firstlight-headers-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = join(root, "a model's folder");
writeSmallModel(folder);
const TOTAL = 128_000 * 2 + 2 * (8192 * 2 + 4096 * 2 + 16_384 * 2 + 128) + 8192 + 6144;

type Shell = readonly [string, ...string[]];

function probe(shell: Shell, path: string) {
  const [program, ...args] = shell;
  const ran = spawnSync(program, [...args, '-s'], {
    input: `R=\nLC_ALL=C\nexport LC_ALL\nFL_MODEL='${path.replace(/'/g, "'\\''")}'\n(\n${modelHeadersProbe.script}\n) </dev/null\n`,
    encoding: 'utf8',
  });
  expect(ran.stderr).toBe('');
  return parseModelHeaders({
    code: ran.status ?? 1,
    stdout: ran.stdout,
    stderr: ran.stderr,
    timedOut: false,
  });
}

const shells: readonly { readonly shell: Shell }[] = [
  { shell: ['dash'] },
  { shell: ['bash'] },
  { shell: ['busybox', 'sh'] },
];

describe.each(shells.filter(({ shell }) => spawnSync(shell[0], ['--help']).error === undefined))(
  'the probe of the headers, with $shell',
  ({ shell }) => {
    test('adds up every tensor, a layer’s experts under one name', () => {
      const found = probe(shell, folder);
      if (!found.known) throw new Error(found.why);
      expect(found.value.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(TOTAL);
      expect(found.value).toContainEqual({
        name: 'model.layers.1.mlp.experts.up_proj.weight',
        bytes: 32_768,
      });
    });

    test('does not pass a copy that is cut for a small model', () => {
      const cut = join(root, `cut-${shell[0]}`);
      writeShard(cut, 'a.safetensors', { 'model.embed_tokens.weight': 100 });
      writeShard(cut, 'b.safetensors', { 'lm_head.weight': 100 });
      truncateSync(join(cut, 'b.safetensors'), 12);
      expect(probe(shell, cut)).toMatchObject({
        known: false,
        why: expect.stringContaining('b.safetensors'),
      });
    });

    test('leaves out a second copy in one file, and takes it where there is no other', () => {
      const twice = join(root, `twice-${shell[0]}`);
      writeShard(twice, 'consolidated.safetensors', { 'layers.0.attention.wq.weight': 500 });
      expect(probe(shell, twice)).toMatchObject({ known: true, value: [{ bytes: 500 }] });
      writeShard(twice, 'model.safetensors', { 'lm_head.weight': 100 });
      expect(probe(shell, twice)).toMatchObject({
        known: true,
        value: [{ name: 'lm_head.weight', bytes: 100 }],
      });
    });

    test('says so where there are no such files', () => {
      expect(probe(shell, join(root, 'nowhere')).known).toBe(false);
    });
  },
);

test('a folder here is read the same way, and its headers go before the index', () => {
  writeFileSync(
    join(folder, 'model.safetensors.index.json'),
    JSON.stringify({ metadata: { total_size: 999 }, weight_map: {} }),
  );
  const model = modelAt(folder, undefined);
  expect(model.fileBytes).toBe(TOTAL);
  expect(model.rule).toMatch(/headers/);
  const at = (place: string | number) =>
    model.groups.filter((group) => group.place === place).reduce((sum, { bytes }) => sum + bytes, 0);
  expect(at('mtp')).toBe(8192);
  expect(at('vision')).toBe(6144);
  expect(at('first')).toBe(128_000);
  expect(at(1)).toBe(8192 * 2 + 4096 * 2 + 16_384 * 2 + 128);
});

test('a shard that cannot be read leaves the index, and says so', () => {
  const cut = join(root, 'part');
  writeSmallModel(cut);
  truncateSync(join(cut, 'model-00002-of-00002.safetensors'), 20);
  writeFileSync(
    join(cut, 'model.safetensors.index.json'),
    JSON.stringify({ metadata: { total_size: TOTAL }, weight_map: {} }),
  );
  expect(readModel(cut, undefined)).toMatchObject({ headers: undefined, indexBytes: TOTAL });
  expect(modelAt(cut, undefined).rule).toMatch(/safetensors index/);
});

/** vLLM's table of angles, which each stage keeps. */
const ROTARY = 4096 * 16 * 2;

test('a tower with more blocks than the model has layers is a tower, and a tied head is not loaded twice', () => {
  const tied = join(root, 'tied');
  const { config } = writeSmallModel(tied);
  const flags = { engine: 'vllm' as const, settings: {}, layout: { pipeline: 2, nodes: 2 } };
  const before = fitting(modelAt(tied, undefined), flags).ranks.map(({ weightsBytes }) => weightsBytes ?? 0);
  writeFileSync(join(tied, 'config.json'), JSON.stringify({ ...config, tie_word_embeddings: true }));
  const after = fitting(modelAt(tied, undefined), flags).ranks.map(({ weightsBytes }) => weightsBytes ?? 0);
  // The copy that the files hold is left out; the last stage has the table itself.
  expect(after).toEqual(before);
  expect(fitting(modelAt(tied, undefined), { engine: 'vllm' }).ranks[0]?.weightsBytes).toBe(
    (before[0] ?? 0) + (before[1] ?? 0) - 128_000 - ROTARY,
  );
  writeShard(tied, 'model-00002-of-00002.safetensors', {
    'visual.blocks.7.attn.qkv.weight': 6144,
    'audio_tower.layers.9.self_attn.k_proj.weight': 512,
  });
  const places = modelAt(tied, undefined).groups.filter(({ kind }) => kind === 'vision');
  expect(places).toEqual([{ kind: 'vision', place: 'vision', bytes: 6656 }]);
});

test('of a tied model the size of the files may count its table twice', () => {
  const config = modelFile('Qwen3-0.6B')['config'];
  if (!isObject(config)) throw new Error('no config');
  // The one file of Qwen3-0.6B: 751,632,384 parameters, of which 155,582,464 are the head's copy.
  const described = describeModel({ name: 'tied', config, total: { bytes: 1_503_264_768, from: 'files' } });
  expect(weights(described)).toBeCloseTo(1.12, 2);
});

test('a block for further tokens that repeats the table and the head takes those of the model', () => {
  const again = join(root, 'again');
  writeSmallModel(again);
  const mtp = { engine: 'vllm' as const, settings: { speculative: { method: 'mtp', tokens: 1 } } };
  const before = fitting(modelAt(again, undefined), mtp).ranks[0]?.weightsBytes;
  writeShard(again, 'model-00003-of-00003.safetensors', {
    'model.layers.2.embed_tokens.weight': 128_000,
    'model.layers.2.shared_head.head.weight': 128_000,
  });
  expect(modelAt(again, undefined).fileBytes).toBe(TOTAL + 256_000);
  expect(fitting(modelAt(again, undefined), mtp).ranks[0]?.weightsBytes).toBe(before);
});

test('of tensors without a config all layers are counted, and their cache is not guessed', () => {
  const bare = join(root, 'bare');
  writeSmallModel(bare);
  rmSync(join(bare, 'config.json'));
  const found = fitting(modelAt(bare, undefined), { engine: 'vllm', total: 24 });
  expect(found.verdict).toBe('unknown');
  // All but the block for further tokens.
  expect(found.ranks[0]).toMatchObject({ weightsBytes: TOTAL - 8192, kvBytesPerToken: null });
  const halves = fitting(modelAt(bare, undefined), { engine: 'vllm', layout: { pipeline: 2 } }).ranks;
  expect(halves.reduce((sum, { weightsBytes }) => sum + (weightsBytes ?? 0), 0)).toBe(TOTAL - 8192);
});
