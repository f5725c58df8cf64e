import { describe, expect, test } from 'vitest';
import { answer, tokens } from '../../src/lab/engine/answer.ts';
import { parseArguments, parseFlagTable } from '../../src/lab/engine/argparse.ts';
import { configWords, readInvocation, readVllm } from '../../src/lab/engine/command-line.ts';
import { GIB, sequenceBytes, sglangFraction, tokenBytes } from '../../src/lab/engine/memory-model.ts';
import { modelOf, realPath } from '../../src/lab/engine/model-folder.ts';
import { hybridBlock } from '../../src/lab/engine/vllm-memory.ts';

const QWEN = modelOf(
  '/m',
  {
    model_type: 'qwen3_5_moe',
    text_config: {
      num_hidden_layers: 48,
      num_attention_heads: 32,
      num_key_value_heads: 2,
      head_dim: 256,
      full_attention_interval: 4,
      linear_num_key_heads: 16,
      linear_num_value_heads: 64,
      linear_key_head_dim: 128,
      linear_value_head_dim: 128,
      linear_conv_kernel_dim: 4,
      mamba_ssm_dtype: 'float32',
    },
  },
  { bytes: 0, shards: [] },
);
const TP2 = { tensor: 2, pipeline: 1 };

test('a config file of SGLang comes before what the command line says', () => {
  const read = (): string => "api-key: 'it''s'\nport: 1\n# a remark\n";
  expect(configWords(['--port', '2', '--config', '/k.yaml', '--tp', '2'], read)).toEqual([
    "--api-key=it's",
    '--port=1',
    '--port',
    '2',
    '--tp',
    '2',
  ]);
  expect(configWords(['--port', '2'], read)).toEqual(['--port', '2']);
});

describe('memory, against the figures of the fact sheet', () => {
  test('KV and state bytes of Qwen3.5-122B on two ranks', () => {
    expect(tokenBytes(QWEN, TP2, 2)).toBe(12_288);
    const { convolution, ssm } = sequenceBytes(QWEN, TP2);
    expect((convolution + ssm) / 2 ** 20).toBeCloseTo(73.3, 1);
    expect(hybridBlock(QWEN, TP2, 2)).toBe(2096);
  });

  test('the default fraction of a GB10 is 0.887, and 0.82 with a vision tower', () => {
    const total = 124_611 * 2 ** 20;
    expect(sglangFraction(total, TP2, false)).toBe(0.887);
    expect(sglangFraction(total, TP2, true)).toBeCloseTo(0.82, 2);
    expect(total / GIB).toBeCloseTo(121.69, 1);
  });
});

describe('answers', () => {
  test.each([
    ['What is 12 times 17? Answer with the number.', '204'],
    ['What is 12 times 17?', '204'],
    ['3 + 4', '7'],
    ['What is 100 minus 58?', '42'],
    ['99999999999 * 99999999999', '9999999999800000000001'],
    ['7 divided by 2', '3.5'],
    ['Please count to 5', '1 2 3 4 5'],
    ['Hello there', 'Hello there'],
  ])('%s', (prompt, part) => {
    expect(answer(prompt).content).toContain(part);
  });

  test('tokens put together are the text', () => {
    const text = 'The user wants 12 times 17.\nWorking it out gives 204. ';
    expect(tokens(text).join('')).toBe(text);
  });
});

describe('arguments', () => {
  const flags = parseFlagTable(
    'tp-size tensor-parallel-size:int\ntrust-remote-code\nname:text+\nratio:float?',
  );
  const read = (...argv: readonly string[]) => parseArguments(flags, argv, { positionals: 0 });

  test('prefixes, equals signs, lists and negative numbers are read', () => {
    const parsed = read('--tp', '2', '--name', 'a', 'b', '--ratio=-1.5', '--trust');
    expect(parsed.ok && [...parsed.values]).toEqual([
      ['tp-size', ['2']],
      ['name', ['a', 'b']],
      ['ratio', ['-1.5']],
      ['trust-remote-code', []],
    ]);
  });

  test('what follows is named as argparse names it', () => {
    expect(read('--tp-size')).toMatchObject({
      message: 'argument --tp-size/--tensor-parallel-size: expected one argument',
    });
    expect(read('--trust-remote-code=1')).toMatchObject({
      message: "argument --trust-remote-code: ignored explicit argument '1'",
    });
  });

  test('vLLM takes underscores, dotted names and the no- form', () => {
    const argv = ['/m', '--gpu_memory_utilization', '0.8', '--no-enable-prefix-caching', '-O3', '-tp', '2'];
    expect(readVllm('vllm', argv).ok).toBe(true);
    expect(readVllm('vllm', ['/m', '--compilation-config.mode=3']).ok).toBe(true);
    expect(readVllm('vllm', ['/m', '--speculative-config', '{"a": 1}']).ok).toBe(true);
  });

  test('every way in is told apart', () => {
    expect(readInvocation(['python3', '-m', 'sglang.launch_server', '--tp', '2'])).toMatchObject({
      kind: 'serve',
      engine: 'sglang',
      program: 'launch_server.py',
      argv: ['--tp', '2'],
    });
    expect(readInvocation(['/opt/bin/vllm', 'serve', '/m'])).toMatchObject({ engine: 'vllm', argv: ['/m'] });
    expect(readInvocation(['vllm', '--version']).kind).toBe('version');
    expect(readInvocation(['python', '-c', 'import sglang; print(sglang.__version__)']).kind).toBe('version');
    expect(readInvocation(['bash']).kind).toBe('unknown');
  });
});

test('a path is the container’s mount, or lies below the host’s root', () => {
  expect(realPath('/m/x', { FIRSTLIGHT_LAB_MOUNTS: '/m=/real\n/m/x=/other' })).toBe('/other');
  expect(realPath('/n', { FIRSTLIGHT_LAB_MOUNTS: '/m=/real' })).toBeUndefined();
  expect(realPath('/home/a/m', { FIRSTLIGHT_ROOT: '/lab/a' })).toBe('/lab/a/home/a/m');
  expect(realPath('/home/a/m', {})).toBe('/home/a/m');
});
