import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { engines } from '../../src/knowledge/engines/index.ts';
import { AUTO, type Engine, Rig } from './engine-rig.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await Rig.open();
});
afterEach(() => rig.close());

const INFO = { ...AUTO, NCCL_SOCKET_IFNAME: 'enp1s0f0np0', NCCL_DEBUG: 'INFO' };

/** What NCCL logged, less its prefix. */
function nccl(engine: Engine): readonly string[] {
  return engine.lines().flatMap((line) => /^spark-.:\d+:\d+ \[0\] NCCL INFO (.*)$/.exec(line)?.[1] ?? []);
}

describe.each(['sglang', 'vllm'] as const)('the ranks of %s', (name) => {
  test('say over which network NCCL goes, each with its own devices and address', async () => {
    const { head, worker } = rig.pair(name, [], INFO);
    await head.until(/Init COMPLETE/);
    await worker.until(/Init COMPLETE/);
    for (const [engine, address] of [
      [head, '192.168.200.12'],
      [worker, '192.168.200.13'],
    ] as const)
      expect(nccl(engine)).toEqual(
        expect.arrayContaining([
          `NET/IB : Using [0]roceP2p1s0f0:1/RoCE [1]rocep1s0f0:1/RoCE [RO]; OOB enp1s0f0np0:${address}<0>`,
          'Using network IB',
        ]),
      );
    expect(nccl(head).filter((line) => engines[name].landmark(line) !== undefined)).toEqual([]);
  });

  test('fall back to sockets without a warning in a container that got no device', async () => {
    const { head } = rig.pair(name, [], { ...INFO, FIRSTLIGHT_LAB_DEVICES: '/dev/fuse' });
    await head.until(/Init COMPLETE/);
    expect(nccl(head)).toEqual(
      expect.arrayContaining([
        'NET/IB : No device found.',
        'NET/Socket : Using [0]enp1s0f0np0:192.168.200.12<0>',
        'Using network Socket',
      ]),
    );
    expect(head.text).not.toContain('NCCL WARN');
  });

  test('end where NCCL_SOCKET_IFNAME names no interface', async () => {
    const { head } = rig.pair(name, [], { ...INFO, NCCL_SOCKET_IFNAME: 'eth9' });
    expect((await head.ended).code).not.toBe(0);
    expect(head.text).toMatch(/NCCL WARN Bootstrap: no socket interface found/);
    expect(head.text).toContain('RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN');
  });
});

test('sockets are used where no device is active', async () => {
  rig.rdma = false;
  const { head } = rig.pair('sglang', [], INFO);
  await head.until(/Using network Socket/);
});

test('sockets are used where RDMA is forbidden, or NCCL_IB_HCA names no device of the node', async () => {
  for (const env of [{ NCCL_IB_DISABLE: '1' }, { NCCL_IB_HCA: 'mlx5_0' }]) {
    const { head, worker } = rig.pair('vllm', [], { ...INFO, ...env });
    await head.until(/Using network Socket/);
    for (const engine of [head, worker]) engine.signal('SIGKILL');
    await Promise.all([head.ended, worker.ended]);
  }
});

test('NCCL says nothing unless it is asked to', async () => {
  const { head } = rig.pair('sglang', [], AUTO);
  await head.until(/CustomAllreduce is disabled/);
  expect(head.text).not.toContain('NCCL');
});
