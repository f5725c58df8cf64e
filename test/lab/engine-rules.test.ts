import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeCaches } from '../../src/lab/engine/caches.ts';
import { checkSlices } from '../../src/lab/engine/divides.ts';
import { openHostWorld } from '../../src/lab/engine/host-world.ts';
import { hubProblem } from '../../src/lab/engine/hub.ts';
import { lateKernels } from '../../src/lab/engine/late-kernels.ts';
import { modelOf } from '../../src/lab/engine/model-folder.ts';
import { modelThinks, readsThoughts, reasoningProblem } from '../../src/lab/engine/model-parsers.ts';
import { pace } from '../../src/lab/engine/pace.ts';
import { draft } from '../../src/lab/engine/speculation.ts';
import { asCall, toolCall, written } from '../../src/lab/engine/tool-calls.ts';
import { writeModel, writeSnapshot } from '../../src/lab/model-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-rules-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function model(differs: Readonly<Record<string, unknown>>) {
  const config = {
    num_attention_heads: 32,
    num_key_value_heads: 2,
    head_dim: 256,
    quantization_config: { quant_method: 'fp8', weight_block_size: [128, 128] },
    vision_config: { num_heads: 16 },
  };
  return modelOf(folder, { ...config, ...differs }, { bytes: 0, shards: [] });
}

describe('a model and a layout', () => {
  it('go together where heads and blocks divide', () => {
    for (const engine of ['sglang', 'vllm'] as const) checkSlices(model({}), { tensor: 2, engine });
  });

  it('do not where vLLM would deal out heads of the vision tower unevenly, which SGLang pads', () => {
    const odd = model({ vision_config: { num_heads: 25 } });
    expect(() => checkSlices(odd, { tensor: 2, engine: 'vllm' })).toThrow('25 is not divisible by 2');
    checkSlices(odd, { tensor: 2, engine: 'sglang' });
    checkSlices(odd, { tensor: 1, engine: 'vllm' });
  });

  it('do not where a rank’s keys are no whole block, but where each rank has a whole head', () => {
    const narrow = model({ head_dim: 64 });
    expect(() => checkSlices(narrow, { tensor: 2, engine: 'sglang' })).toThrow(
      'Weight output_partition_size = 64 is not divisible by weight quantization block_n = 128.',
    );
    checkSlices(narrow, { tensor: 1, engine: 'sglang' });
    checkSlices(model({ head_dim: 64, quantization_config: {} }), { tensor: 2, engine: 'sglang' });
  });
});

describe('a cache of kernels', () => {
  it('is made anywhere but below what is mounted read-only', () => {
    const env = { FIRSTLIGHT_LAB_READ_ONLY: '/models\n/root/.cache/huggingface' };
    makeCaches(env, 'vllm');
    makeCaches({ ...env, VLLM_CACHE_ROOT: '/models-of-mine' }, 'vllm');
    const below = { ...env, VLLM_CACHE_ROOT: '/models/.cache' };
    expect(() => makeCaches(below, 'vllm')).toThrow("[Errno 30] Read-only file system: '/models/.cache'");
    makeCaches(below, 'sglang');
  });
});

describe('a tokenizer that is named by its repository', () => {
  const world = openHostWorld(1);
  const HF_HOME = join(folder, 'hub-home');

  it('is asked for at the hub, unless offline mode finds it in the cache', async () => {
    expect(await hubProblem(world, {}, undefined)).toBeUndefined();
    expect(await hubProblem(world, {}, '/models/x')).toBeUndefined();
    expect(await hubProblem(world, { HF_HOME }, 'org/x')).toContain('Failed to resolve');
    const offline = { HF_HOME, HF_HUB_OFFLINE: '1' };
    expect(await hubProblem(world, offline, 'org/x')).toContain('outgoing traffic has been disabled');
    writeSnapshot(HF_HOME, 'org/x');
    expect(await hubProblem(world, offline, 'org/x')).toBeUndefined();
    expect(await hubProblem(world, { HF_HOME }, 'org/x')).toContain('Failed to resolve');
  });

  it('is refused by a hub that counts requests', async () => {
    const busy = { askHub: () => Promise.resolve(429) };
    expect(await hubProblem(busy, {}, 'org/x')).toContain('429 Client Error: Too Many Requests');
  });
});

describe('a reasoning parser', () => {
  it('is refused where the tokenizer has not its marks', () => {
    const [thinking, plain] = ['thinking', 'plain'].map((name) => join(folder, name));
    writeModel(thinking ?? '', {});
    writeModel(plain ?? '', { unthinking: true });
    expect(reasoningProblem('qwen3', thinking ?? '')).toBeUndefined();
    expect(reasoningProblem('qwen3', plain ?? '')).toContain('could not locate');
    expect(reasoningProblem('seed_oss', thinking ?? '')).toContain('SeedOSSReasoningParser');
    expect(reasoningProblem(undefined, plain ?? '')).toBeUndefined();
    expect([thinking, plain].map((path) => modelThinks(path ?? ''))).toEqual([true, false]);
  });

  it('takes all for thoughts where it is one of those', () => {
    expect(readsThoughts('deepseek-r1', 'sglang')).toBe('all');
    expect(readsThoughts('qwen3', 'sglang')).toBe('marked');
    expect(readsThoughts(undefined, 'vllm')).toBe('not');
  });
});

describe('kernels for requests', () => {
  it('are built once, where a host has none', async () => {
    const said: string[] = [];
    const hands = { env: { FIRSTLIGHT_LAB_LACKS: 'request-kernels' }, pace: pace(100_000) };
    const first = lateKernels(hands, (text) => said.push(text));
    await Promise.all([first(), first()]);
    await first();
    expect(said.map((text) => text.split(' ')[1])).toEqual(['begins', 'completes']);
    await lateKernels({ ...hands, env: {} }, (text) => said.push(text))();
    expect(said).toHaveLength(2);
  });
});

describe('drafts', () => {
  it('break only where they are asked for and the build is broken', () => {
    const broken = { FIRSTLIGHT_LAB_LACKS: 'speculative-decoding' };
    draft(broken, false);
    draft({}, true);
    expect(() => draft(broken, true)).toThrow('must match the existing size');
  });
});

describe('a call of a tool', () => {
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { required: ['city'] } } }];

  it('is made of the first tool that is offered, and written as the model writes it', () => {
    const call = toolCall({ tools, tool_choice: 'auto' }, 'What is the weather in Oslo?');
    expect(call).toEqual({ name: 'get_weather', parameter: 'city', value: 'Oslo' });
    if (call === undefined) throw new Error('no call');
    expect(written(call)).toContain('<function=get_weather>\n<parameter=city>\nOslo\n');
    expect(asCall(call)).toMatchObject({ function: { arguments: '{"city":"Oslo"}' } });
  });

  it('is none without a tool, or where none may be used', () => {
    expect(toolCall({}, 'in Oslo')).toBeUndefined();
    expect(toolCall({ tools, tool_choice: 'none' }, 'in Oslo')).toBeUndefined();
  });
});
