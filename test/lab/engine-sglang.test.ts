import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SGL_TQDM_CAP, sglLine, TQDM_LOAD } from '../samples/engines/landmarks.mjs';
import { AUTO, type Engine, GIB, Rig, words, writeModel } from './engine-rig.ts';
import { until } from './world-ssh.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await Rig.open();
});
afterEach(() => rig.close());

/** Landmarks in the order of their first line. */
function stages(engine: Engine): readonly string[] {
  return [...new Set(engine.lines().flatMap((line) => sglLine(line).id ?? []))];
}

/** Lines of a captured log that the stand-in must print too, with ports, times and paths made alike. */
function shape(line: string): string {
  return line
    .replace(/\[([WE])\d{4} [\d:.]+ /, '[$1 ')
    .replace(/\]:\d+/g, ']:PORT')
    .replace(/port: \d+/, 'port: PORT');
}

describe('two ranks with their own addresses', () => {
  test('go through every landmark in order, each with its prefix', async () => {
    const { head, worker } = rig.pair('sglang');
    await head.until(/ready to roll/);
    await worker.until(/Dummy health check server started/);
    const common = ['start', 'dist.begin', 'dist.custom_ar_off', 'dist.end', 'load.begin', 'load.end'];
    const pools = ['mamba.alloc', 'kv.alloc', 'pool.end', 'graph.begin', 'graph.end'];
    const last = ['sched.ready', 'http.up', 'stat.prefill', 'ready'];
    expect(stages(head)).toEqual([...common, ...pools, ...last]);
    expect(stages(worker)).toEqual([...common, ...pools, 'worker.ready']);
    const ranks = (engine: Engine): readonly string[] =>
      engine.lines().flatMap((line) => (sglLine(line).id === 'load.end' ? [sglLine(line).rank ?? ''] : []));
    expect(ranks(head)).toEqual(['TP0']);
    expect(ranks(worker)).toEqual(['TP1']);
    expect(head.lines().filter((line) => TQDM_LOAD.test(line))).toHaveLength(5);
    expect(head.lines().some((line) => SGL_TQDM_CAP.test(line))).toBe(true);
    expect(worker.lines().some((line) => TQDM_LOAD.test(line))).toBe(false);
    expect(head.text).not.toMatch(/stand-in|firstlight|\blab\b/i);
  });

  test('answer sums rightly, stream, and count tokens themselves', async () => {
    const { head } = rig.pair('sglang', ['--served-model-name', 'tiny', '--reasoning-parser', 'qwen3']);
    await head.until(/ready to roll/);
    const ask = { model: 'tiny', messages: [{ role: 'user', content: 'What is 12 times 17?' }] };
    const whole = JSON.parse((await rig.post('/v1/chat/completions', ask)).body);
    expect(whole.choices[0].message.content).toContain('204');
    expect(whole.choices[0].message.reasoning_content).toContain('12');
    const stream = { ...ask, stream: true, stream_options: { include_usage: true } };
    const events = (await rig.post('/v1/chat/completions', stream)).body
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)));
    const content = events.map((event) => event.choices[0]?.delta?.content ?? '').join('');
    expect(content).toBe(whole.choices[0].message.content);
    expect(events.at(-1).usage.completion_tokens).toBe(whole.usage.completion_tokens);
    expect(JSON.parse((await rig.get('/v1/models')).body).data[0].id).toBe('tiny');
    expect((await rig.get('/health')).status).toBe(200);
    expect((await rig.get('/metrics')).status).toBe(404);
  });

  test('ask for the key on /v1 and not on /health', async () => {
    const { head } = rig.pair('sglang', ['--api-key', 'secret', '--enable-metrics']);
    await head.until(/ready to roll/);
    expect((await rig.get('/v1/models')).status).toBe(401);
    expect((await rig.get('/v1/models', 'Authorization: Bearer secret\r\n')).status).toBe(200);
    expect((await rig.get('/health')).status).toBe(200);
    expect((await rig.get('/metrics')).body).toContain('sglang:generation_tokens_total');
    expect(head.text).not.toContain('secret');
  });

  test('stop by SIGTERM: the head drains and ends by its own SIGKILL, the worker follows', async () => {
    const { head, worker } = rig.pair('sglang');
    await head.until(/ready to roll/);
    head.signal('SIGTERM');
    expect(await head.ended).toEqual({ code: null, signal: 'SIGKILL' });
    expect(head.text).toContain('Draining requests and shutting down...');
    expect((await worker.ended).code).toBe(1);
    expect(worker.text).toContain('Scheduler or DataParallelController');
    // The lab hears of the end by its own connection.
    await until(
      () => rig.a.freeBytes,
      (bytes) => bytes === 112 * GIB,
    );
  });

  test('leave a request hanging when the worker is gone', async () => {
    const { head, worker } = rig.pair('sglang', ['--watchdog-timeout', '30']);
    await head.until(/ready to roll/);
    worker.signal('SIGKILL');
    await worker.ended;
    expect((await rig.get('/health')).status).toBe(503);
    await head.until(/Health check failed\. Server couldn't get a response/);
    expect((await head.ended).signal).toBe('SIGKILL');
    expect(head.text).toContain('SIGQUIT received.');
  });
});

describe('when the engine picks the addresses', () => {
  test('a name on 127.0.1.1 breaks the mesh on rank 0 in the captured words, and rank 1 says nothing', async () => {
    const { head, worker } = rig.pair('sglang', [], {});
    expect((await head.ended).signal).toBe('SIGKILL');
    const captured = readFileSync('test/samples/captured/gloo-loopback-head.log', 'utf8');
    const wanted = captured
      .split('\n')
      .filter((line) => /debug_logger|ProcessGroupGloo.cpp:67|^RuntimeError/.test(line));
    const printed = head.lines().map(shape);
    expect(wanted.length).toBe(6);
    const normal = (line: string): string => shape(line).replace(/local=\[127.0.0.1\]:\w+/, 'local');
    for (const line of wanted) expect(printed.map(normal)).toContain(normal(line));
    expect(worker.running).toBe(true);
    expect(worker.lines().at(-1)).toContain('hostname of the client socket');
  });

  test('right host names let Gloo through, but the message queue needs an address that can be reached', async () => {
    await rig.close();
    rig = await Rig.open('fabric');
    rig.lab.unreachable.add('10.1.230.12');
    const { head, worker } = rig.pair('sglang', [], {});
    await worker.until(/spans across nodes/);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(head.text).not.toContain('Init torch distributed ends');
    expect(worker.running && head.running).toBe(true);
  });

  test('an interface that is not there is an error at once', async () => {
    const { head } = rig.pair('sglang', [], { ...AUTO, GLOO_SOCKET_IFNAME: '^lo' });
    await head.ended;
    expect(head.text).toContain('Unable to find address for: ^lo');
  });

  test('an image that pins the host name takes no notice of the interface', async () => {
    const { head } = rig.pair('sglang', [], { ...AUTO, FIRSTLIGHT_LAB_PIN_HOSTNAME: '1' });
    await head.ended;
    expect(head.text).toContain('remote=[127.0.1.1]');
  });
});

describe('what stands in the way', () => {
  test('memory held by others fails set_device in the captured words, and the head waits', async () => {
    rig.b.freeBytes = 0.6 * GIB;
    const { head, worker } = rig.pair('sglang');
    expect((await worker.ended).signal).toBe('SIGKILL');
    const captured = readFileSync('test/samples/captured/cuda-oom-set-device-worker.log', 'utf8').split('\n');
    for (const line of captured.slice(captured.findIndex((text) => text.includes('AcceleratorError'))))
      expect(worker.text).toContain(line);
    expect(stages(worker)).toEqual(['start', 'dist.begin', 'err.sched', 'err.child']);
    expect(head.running).toBe(true);
  });

  test('a taken rendezvous port fails on the head', async () => {
    const first = rig.start(rig.a, words('sglang', rig.model, 0));
    await first.until(/Init torch distributed begin/);
    await until(
      () => rig.lab.bound,
      (bound) => bound.some(({ port }) => port === 20000),
    );
    const second = rig.start(rig.a, words('sglang', rig.model, 0));
    await second.ended;
    const captured = readFileSync('test/samples/captured/rendezvous-port-in-use-head.log', 'utf8').trim();
    expect(shape(second.text)).toContain(shape(captured.split('\n').at(-1) ?? ''));
  });

  test('ranks that see very different memory say so', async () => {
    rig.b.freeBytes = 80 * GIB;
    const { head } = rig.pair('sglang');
    await head.ended;
    expect(stages(head)).toContain('err.mem');
    expect(head.text).toContain('The memory capacity is unbalanced');
  });

  test('too small a fraction leaves nothing for the pools', async () => {
    const { head } = rig.pair('sglang', ['--mem-fraction-static', '0.3']);
    await head.ended;
    expect(stages(head)).toContain('err.mem');
  });

  test('an unknown flag, a missing value and a missing path are refused as argparse does', async () => {
    const say = async (more: readonly string[]): Promise<readonly [number | null, string]> => {
      const engine = rig.start(rig.a, ['sglang', 'serve', ...more]);
      return [(await engine.ended).code, engine.lines().at(-1) ?? ''];
    };
    expect(await say(['--model-path', '/m', '--no-such', '1'])).toEqual([
      2,
      'sglang: error: unrecognized arguments: --no-such 1',
    ]);
    expect(await say(['--model', '/m', '--enable_metrics'])).toEqual([
      2,
      'sglang: error: unrecognized arguments: --enable_metrics',
    ]);
    expect((await say(['--model', '/m', '--pp', '2']))[1]).toContain('ambiguous option: --pp could match');
    expect((await say(['--tp', '2']))[1]).toContain(
      'the following arguments are required: --model-path/--model',
    );
    expect((await say(['--model', '/m', '--tp', 'x']))[1]).toContain("invalid int value: 'x'");
    const [code, text] = await say(['--model-path', '/nowhere']);
    expect(code).toBe(1);
    expect(text).toContain("OSError: Can't load the configuration of '/nowhere'");
  });

  test('heads that do not divide, a lost shard and a pointer file fail while loading', async () => {
    writeModel(rig.model, { num_attention_heads: 31 });
    const odd = rig.pair('sglang');
    await odd.head.ended;
    expect(odd.head.text).toContain('AssertionError');
    writeModel(rig.model, {});
    writeFileSync(
      join(rig.model, 'model-00002-of-00004.safetensors'),
      'version https://git-lfs.github.com/spec/v1\n',
    );
    await Promise.all([odd.worker.ended]);
    const pointer = rig.pair('sglang');
    await pointer.head.ended;
    expect(pointer.head.text).toContain('header too large');
  });

  test('a container without a GPU sees none', async () => {
    const worker = rig.start(rig.b, words('sglang', rig.model, 1), { FIRSTLIGHT_LAB_GPUS: 'none' });
    await worker.ended;
    expect(worker.text).toContain('RuntimeError: No CUDA GPUs are available');
  });

  test('a model that is not mounted is not there', async () => {
    const mounts = { FIRSTLIGHT_LAB_MOUNTS: `/models/big=${rig.model}` };
    const away = rig.start(rig.a, ['sglang', 'serve', '--model-path', rig.model], mounts);
    expect((await away.ended).code).toBe(1);
    const there = rig.start(rig.a, ['sglang', 'serve', '--model-path', '/models/big'], mounts);
    await there.until(/Load weight begin/);
  });
});

test('the version says what it is', async () => {
  const engine = rig.start(rig.a, ['sglang', '--version']);
  await engine.ended;
  expect(engine.text).toBe('firstlight lab stand-in\n');
});
