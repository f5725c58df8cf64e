import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TQDM_LOAD, VLLM_TQDM_CAP, vllmLine } from '../samples/engines/landmarks.mjs';
import { type Engine, GIB, Rig, writeModel } from './engine-rig.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await Rig.open();
});
afterEach(() => rig.close());

const FITS = ['--gpu-memory-utilization', '0.85'];

function stages(engine: Engine): readonly string[] {
  return [...new Set(engine.lines().flatMap((line) => vllmLine(line).id ?? []))];
}

describe('a head and a headless worker', () => {
  test('go through every landmark in order, each process with its prefix', async () => {
    const { head, worker } = rig.pair('vllm', FITS);
    await head.until(/Application startup complete/);
    const load = ['load.ckpt', 'load.weights', 'load.end', 'hybrid.block'];
    const profile = ['compile.dynamo', 'compile.end', 'profile.end', 'graph.estimate', 'kv.avail'];
    const dist = ['dist.begin', 'dist.end'];
    const begin = ['start', 'args', 'engine.init', 'leader', ...dist, 'load.begin', ...load, ...profile];
    expect(stages(head)).toEqual([...begin, 'kv.tokens', 'graph.end', 'engine.end', 'http.start', 'ready']);
    expect(stages(worker)).toEqual(['headless.start', ...dist, ...load, ...profile, 'graph.end']);
    const who = (engine: Engine, id: string): string =>
      engine
        .lines()
        .map(vllmLine)
        .find((line) => line.id === id)?.who ?? '';
    expect(who(head, 'dist.begin')).toMatch(/^\(Worker pid=/);
    expect(who(head, 'load.end')).toMatch(/^\(Worker_TP0 pid=/);
    expect(who(worker, 'load.end')).toMatch(/^\(Worker_TP1 pid=/);
    expect(who(worker, 'headless.start')).toBe('');
    expect(who(head, 'ready')).toMatch(/^\(APIServer pid=/);
    const bare = head.lines().map((line) => vllmLine(line).msg);
    expect(bare.some((line) => TQDM_LOAD.test(line))).toBe(true);
    expect(bare.some((line) => VLLM_TQDM_CAP.test(line))).toBe(true);
    expect(head.text + worker.text).not.toMatch(/stand-in|firstlight|\blab\b/i);
  });

  test('answer under the served name only, with the reasoning apart', async () => {
    const { head } = rig.pair('vllm', [
      ...FITS,
      '--served-model-name',
      'tiny',
      '--reasoning-parser',
      'qwen3',
    ]);
    await head.until(/Application startup complete/);
    const ask = { model: 'tiny', messages: [{ role: 'user', content: 'What is 12 times 17?' }] };
    const { message } = JSON.parse((await rig.post('/v1/chat/completions', ask)).body).choices[0];
    expect(message.content).toContain('204');
    expect(message.reasoning_content).toContain('12');
    expect((await rig.post('/v1/chat/completions', { ...ask, model: 'other' })).status).toBe(404);
    expect((await rig.get('/health')).status).toBe(200);
  });

  test('stop each by its own SIGTERM', async () => {
    const { head, worker } = rig.pair('vllm', FITS);
    await head.until(/Application startup complete/);
    head.signal('SIGTERM');
    expect((await head.ended).code).toBe(0);
    expect(stages(head)).toContain('stop');
    expect(worker.running).toBe(true);
    worker.signal('SIGTERM');
    expect((await worker.ended).code).toBe(0);
  });

  test('time out in service when the worker is gone', async () => {
    const { head, worker } = rig.pair('vllm', FITS, {
      GLOO_SOCKET_IFNAME: 'enp1s0f0np0',
      VLLM_HOST_IP: '{ip}',
      VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS: '6',
    });
    await head.until(/Application startup complete/);
    worker.signal('SIGKILL');
    await worker.ended;
    expect((await rig.get('/health')).status).toBe(200);
    void rig.post('/v1/completions', { model: rig.model, prompt: 'one two' }).catch(() => undefined);
    expect((await head.ended).code).toBe(0);
    expect(stages(head)).toContain('err.rpc');
  });
});

describe('what stands in the way', () => {
  test('memory held by others fails the start check on that rank, and the head sees its peer go', async () => {
    rig.b.freeBytes = 30 * GIB;
    const { head, worker } = rig.pair('vllm', FITS);
    expect((await worker.ended).code).toBe(1);
    expect((await head.ended).code).toBe(1);
    expect(stages(worker)).toContain('err.free');
    expect(stages(head)).not.toContain('err.free');
    expect(head.text).toContain('Connection closed by peer [192.168.200.13]');
    expect(head.text).toContain('Engine core initialization failed. See root cause above.');
  });

  test('a context that does not fit names the longest that does; the worker waits on', async () => {
    const { head, worker } = rig.pair('vllm', ['--gpu-memory-utilization', '0.46']);
    expect((await head.ended).code).toBe(1);
    expect(head.text).toMatch(/max seq len \(262144\), [\d.]+ GiB KV cache is needed/);
    const longest = /estimated maximum model length is (\d+)/.exec(head.text)?.[1] ?? '';
    expect(worker.running).toBe(true);
    await rig.close();
    rig = await Rig.open();
    const again = rig.pair('vllm', ['--gpu-memory-utilization', '0.46', '--max-model-len', longest]);
    await again.head.until(/Application startup complete/);
  });

  test('a name on 127.0.1.1 breaks the mesh', async () => {
    const { head, worker } = rig.pair('vllm', FITS, {});
    await head.ended;
    expect(head.text).toContain('Gloo connectFullMesh failed');
    expect(stages(head)).toContain('err.engine');
    expect(worker.running).toBe(true);
  });

  test('unknown flags, bad paths, heads that do not divide and a taken port are refused at once', async () => {
    const say = async (more: readonly string[]): Promise<readonly [number | null, string]> => {
      const engine = rig.start(rig.a, ['vllm', 'serve', ...more]);
      return [(await engine.ended).code, engine.text];
    };
    expect(await say(['/m', '--no-such'])).toEqual([
      2,
      'usage: vllm [-h] [-v] {chat,complete,serve,launch,bench,collect-env,run-batch} ...\nvllm: error: unrecognized arguments: --no-such\n',
    ]);
    expect((await say(['/nowhere']))[1]).toContain(
      "Invalid repository ID or local directory specified: '/nowhere'",
    );
    expect((await say([rig.model, '-tp', '3', '--nnodes', '3']))[1]).toContain(
      'Total number of attention heads (32) must be divisible by tensor parallel size (3).',
    );
    expect((await say([rig.model, '-tp', '2']))[1]).toContain('World size (2) is larger than');
    const first = rig.start(rig.a, ['vllm', 'serve', rig.model, '--port', '30000', ...FITS]);
    await first.until(/Initializing a V1/);
    expect((await say([rig.model, '--port', '30000']))[1]).toContain(
      'OSError: [Errno 98] Address already in use',
    );
  });

  test('a plain model of one rank has no groups, and logs from its engine core', async () => {
    writeModel(rig.model, { full_attention_interval: 1 });
    const engine = rig.start(rig.a, [
      'vllm',
      'serve',
      rig.model,
      '--enforce-eager',
      '--gpu-memory-utilization',
      '0.83',
    ]);
    await engine.ended;
    // 100 GiB of weights do not leave room on one Spark.
    expect(engine.text).toContain('No available memory for the cache blocks.');
    expect(engine.text).not.toContain('Worker');
  });
});
