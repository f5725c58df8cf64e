import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Engine, Rig } from './engine-rig.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await Rig.open();
});
afterEach(() => rig.close());

const HEAD = '192.168.200.12';
const WORKER = '192.168.200.13';

/** `ray start` on a node, in the environment that its own node is given. */
function ray(host: 'a' | 'b', env: Readonly<Record<string, string>>): Engine {
  const own = host === 'a' ? HEAD : WORKER;
  const place = host === 'a' ? ['--head', '--port=20000'] : [`--address=${HEAD}:20000`];
  const words = ['ray', 'start', '--block', `--node-ip-address=${own}`, '--num-gpus=1', ...place];
  return rig.start(rig[host], words, { VLLM_HOST_IP: own, ...env });
}

const NAMED = { GLOO_SOCKET_IFNAME: 'enp1s0f0np0' };

function driver(): Engine {
  const words = ['vllm', 'serve', rig.model, '-tp', '2', '--distributed-executor-backend', 'ray'];
  const more = ['--port', '30000', '--gpu-memory-utilization', '0.85'];
  return rig.start(rig.a, [...words, ...more], { RAY_ADDRESS: `${HEAD}:20000`, VLLM_HOST_IP: HEAD });
}

describe('vLLM over Ray', () => {
  test('comes up on two nodes, each rank in the environment of its own node’s Ray', async () => {
    const head = ray('a', NAMED);
    await head.until(/Ray runtime started/);
    const worker = ray('b', NAMED);
    await worker.until(/Ray runtime started/);
    const vllm = driver();
    await vllm.until(/Application startup complete/);
    expect(vllm.text).toContain('No current placement group found. Creating a new placement group.');
    // What the worker says comes through Ray to the driver, behind its node's address, and stands nowhere else.
    expect(vllm.text).toMatch(
      /\(EngineCore pid=\d+\) \(RayWorkerProc pid=\d+, ip=192\.168\.200\.13\) INFO .*Loading weights took/,
    );
    expect(worker.text).not.toContain('Loading weights took');
    expect((await rig.get('/health')).status).toBe(200);
    vllm.signal('SIGTERM');
    expect((await vllm.ended).code).toBe(0);
    // Ray outlives what ran on it.
    expect([head.running, worker.running]).toEqual([true, true]);
    head.signal('SIGTERM');
    worker.signal('SIGTERM');
    await Promise.all([head.ended, worker.ended]);
  });

  test('fails by loopback where one node’s Ray was started without an interface', async () => {
    const head = ray('a', NAMED);
    await head.until(/Ray runtime started/);
    const worker = ray('b', {});
    await worker.until(/Ray runtime started/);
    const vllm = driver();
    expect((await vllm.ended).code).toBe(1);
    expect(vllm.text).toMatch(/Gloo connectFullMesh failed .*remote=\[127\.0\.1\.1\]/);
  });

  test('waits for GPUs while the second node has not joined', async () => {
    const head = ray('a', NAMED);
    await head.until(/Ray runtime started/);
    const vllm = driver();
    await vllm.until(/Waiting for creating a placement group of specs for 10 seconds/);
    const worker = ray('b', NAMED);
    await worker.until(/Ray runtime started/);
    await vllm.until(/Application startup complete/);
  });

  test('a node’s Ray that ends takes its worker along, and the driver with it', async () => {
    const head = ray('a', NAMED);
    await head.until(/Ray runtime started/);
    const worker = ray('b', NAMED);
    await worker.until(/Ray runtime started/);
    const vllm = driver();
    await vllm.until(/Application startup complete/);
    worker.signal('SIGTERM');
    await vllm.ended;
    expect(vllm.text).toContain('RayWorkerProc rank=[1] died unexpectedly, shutting down executor.');
  });

  test('nobody joins a head that is not there', async () => {
    const worker = ray('b', NAMED);
    expect((await worker.ended).code).toBe(1);
    expect(worker.text).toContain('Failed to connect to GCS at 192.168.200.12:20000');
  });
});
