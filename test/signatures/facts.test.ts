import { describe, expect, it } from 'vitest';
import { logsAfterwards } from '../../src/diagnosis/afterwards.ts';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import type { ReachedFacts } from '../../src/domain/facts.ts';
import { known } from '../../src/domain/facts.ts';
import { evidenceOf } from '../diagnosis/cases.ts';
import { holderOf, sparkFacts } from '../diagnosis/facts.ts';

const GIB = 2 ** 30;
const CHECK =
  'ValueError: Free memory on device cuda:0 (38.02/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.';

function on(lines: readonly string[], after: readonly ReachedFacts[], before: readonly ReachedFacts[] = []) {
  const evidence = evidenceOf({
    engine: 'vllm',
    logs: { head: [], worker: lines },
    after,
    before,
    ended: { worker: 1 },
  });
  return diagnose(evidence, { final: after.length > 0 });
}

describe('what the look after the failure adds', () => {
  it('memory that is free by now, and nobody’s, was on its way back', () => {
    const after = [sparkFacts({ node: 'spark-b', memory: { freeBytes: 111 * GIB } })];
    expect(on([CHECK], after)).toMatchObject({ cause: 'gpu-memory-still-being-reclaimed', node: 'spark-b' });
  });

  it('a GPU with memory of its own is not given back by what the host has free', () => {
    const gpu = {
      index: 0,
      name: 'NVIDIA H200',
      uuid: 'GPU-1',
      unified: false,
      totalBytes: known(140 * GIB),
      freeBytes: known(6 * GIB),
      driver: '580.159.04',
    };
    const memory = { freeBytes: 244 * GIB };
    const still = [{ ...sparkFacts({ node: 'spark-b', memory }), gpus: known([gpu]) }];
    expect(on([CHECK], still).cause).not.toBe('gpu-memory-still-being-reclaimed');
    const back = [
      { ...sparkFacts({ node: 'spark-b', memory }), gpus: known([{ ...gpu, freeBytes: known(139 * GIB) }]) },
    ];
    expect(on([CHECK], back).cause).toBe('gpu-memory-still-being-reclaimed');
  });

  it('memory that is missing still is too large a wish', () => {
    const after = [
      sparkFacts({ node: 'spark-b', memory: { freeBytes: 41 * GIB, availableBytes: 42 * GIB } }),
    ];
    expect(on([CHECK], after).cause).toBe('insufficient-free-memory-at-startup');
  });

  it('a holder beside the engine is what was counted as the engine’s own', () => {
    const lines = [
      '(EngineCore pid=77) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: -9.77 GiB',
      'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
    ];
    const after = [sparkFacts({ node: 'spark-b', holders: [holderOf(31)] })];
    expect(on(lines, after)).toMatchObject({
      cause: 'kv-cache-negative-other-process-counted',
      node: 'spark-b',
      values: { counted: '31.0' },
    });
    expect(on(lines, [sparkFacts({ node: 'spark-b' })]).cause).toBe('gpu-memory-utilization-too-low');
  });

  it('a newer driver that a look saw is what takes the little that is missing', () => {
    const line =
      'ValueError: Free memory on device cuda:0 (108.32/119.7 GiB) on startup is less than desired GPU memory utilization (0.91, 108.93 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.';
    const memory = { freeBytes: 108.5 * GIB, availableBytes: 109 * GIB };
    const seen = (driver: string) => {
      const one = sparkFacts({ node: 'spark-b', memory });
      const gpus = one.gpus.known ? one.gpus.value.map((gpu) => ({ ...gpu, driver })) : [];
      return [{ ...one, gpus: known(gpus) }];
    };
    expect(on([line], seen('595.58.03'))).toMatchObject({
      cause: 'driver-version-regression',
      values: { driver: '595.58.03' },
    });
    expect(on([line], seen('580.159.03')).cause).toBe('insufficient-free-memory-at-startup');
  });

  it('what no process holds is no page cache where the look shows little of that', () => {
    const lines = [
      '(Worker_TP1 pid=9) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: 29.77 GiB',
      'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 29.77 GiB. GPU 0 has a total capacity of 119.70 GiB of which 27.60 GiB is free. Including non-PyTorch memory, this process has 62.80 GiB memory in use.',
    ];
    const cause = (cachedBytes: number) => {
      const kernelLog = known([
        '[ 100.000000] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)',
      ]);
      const more = { afterwards: { kernelLog, containers: known([]) } };
      const after = [sparkFacts({ node: 'spark-b', memory: { cachedBytes }, more })];
      const evidence = evidenceOf({
        engine: 'vllm',
        logs: { head: [], worker: lines },
        after,
        ended: { worker: 1 },
      });
      return diagnose({ ...evidence, side: logsAfterwards(after) }, { final: true }).cause;
    };
    expect(cause(1 * GIB)).toBe('unified-memory-exhausted-driver-alloc');
    expect(cause(60 * GIB)).toBe('page-cache-hides-unified-memory');
  });

  it('the SIGKILL with which SGLang ends itself is nobody else’s', () => {
    const lines = [
      '[2026-10-02 10:00:09 TP1] Init torch distributed begin.',
      '[2026-10-02 10:00:10 TP1] Scheduler hit an exception: Traceback (most recent call last):',
      'torch.AcceleratorError: CUDA error: out of memory',
      '[2026-10-02 10:00:10] Received sigquit from a child process. It usually means the child failed.',
    ];
    const container = {
      name: 'firstlight-x-r1',
      state: 'exited',
      exitCode: 137,
      oomKilled: false,
      error: '',
    };
    const more = { afterwards: { kernelLog: known([]), containers: known([container]) } };
    const memory = { freeBytes: 1 * GIB, cachedBytes: 110 * GIB };
    const after = [sparkFacts({ node: 'spark-b', memory, more })];
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: { head: [], worker: lines },
      after,
      ended: { worker: 137 },
    });
    const said = diagnose({ ...evidence, side: logsAfterwards(after) }, { final: true });
    expect(said).toMatchObject({ cause: 'page-cache-hides-unified-memory', node: 'spark-b' });
    expect((said.alternatives ?? []).map((one) => one.cause)).not.toContain(
      'device-allocation-failed-sigkill-unattributed',
    );
  });

  it('a rank that somebody stopped did not end by itself', () => {
    const logs = {
      head: ['[2026-10-02 10:00:10 TP0] Load weight begin. avail mem=108.11 GB'],
      worker: ['[2026-10-02 10:00:10 TP1] Load weight begin. avail mem=108.11 GB'],
    };
    const cause = (ended: Readonly<Record<string, number>>) => {
      const said = diagnose(evidenceOf({ engine: 'sglang', logs, ended }), { final: true });
      return [said.cause, said.node, said.title.includes('SIGTERM')];
    };
    expect(cause({ head: 143 })).toEqual(['head-ended-from-outside', 'spark-a', true]);
    expect(cause({ worker: 143 })).toEqual(['worker-died-head-still-healthy', 'spark-b', true]);
    expect(cause({ head: 1 })[0]).toBe('unknown');
  });

  it('a network that an image’s plugin does not bring is no matter of the devices that the rank was given', () => {
    const words = (more: readonly string[]) => [
      'b:1:1 [0] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v10)',
      '[2026-10-04 11:40:22] b:1:1 [0] nccl_ofi_net.c:230 NCCL WARN NET/OFI No eligible providers were found',
      ...more,
      'RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)',
    ];
    const cause = (more: readonly string[]) => {
      const logs = { head: [], worker: words(more) };
      const evidence = evidenceOf({ engine: 'sglang', logs, ended: { worker: 1 } });
      const launched = [{ node: 'spark-b', env: { NCCL_IB_HCA: 'rocep1s0f1' } }];
      return diagnose({ ...evidence, launched }, { final: true }).cause;
    };
    expect(cause([])).toBe('stale-nccl-config-in-image');
    const none = [
      'b:1:1 [0] NCCL INFO NCCL_IB_HCA set to rocep1s0f1',
      'b:1:1 [0] NCCL INFO NET/IB : No device found.',
    ];
    expect(cause(none)).toBe('wrong-rdma-device-list');
  });

  it('the kernel that a look saw tells a refused registration from a low limit', () => {
    const line = 'b:1:1 [0] NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory';
    const facts = (kernel: string) => {
      const one = sparkFacts({ node: 'spark-b' });
      return one.host.known ? { ...one, host: known({ ...one.host.value, kernel }) } : one;
    };
    expect(on([line], [facts('7.0.0-1019-nvidia')]).cause).toBe('kernel-regression-rdma-registration');
    expect(on([line], [facts('6.17.0-1008-nvidia')]).cause).toBe('memlock-limit-too-low');
  });

  it('a network that goes over TCP has not ended a rank that met the others', () => {
    const tcp = (host: string, more: readonly string[]) => [
      `${host}:1:1 [0] NCCL INFO NET/IB : No device found.`,
      `${host}:1:1 [0] NCCL INFO Using network Socket`,
      ...more,
    ];
    const loads = ['[2026-10-04 11:40:22 TP0] Load weight begin. avail mem=108.11 GB'];
    const cause = (more: readonly string[]) =>
      diagnose(
        evidenceOf({
          engine: 'sglang',
          logs: { head: tcp('a', more), worker: tcp('b', more) },
          ended: { worker: 139 },
        }),
        { final: true },
      ).cause;
    expect(cause([])).toBe('rdma-not-available-in-container');
    expect(cause(loads)).toBe('unknown');
  });

  it('an address of the fabric that answers nothing lies behind a firewall', () => {
    const net = (node: string, address: string) =>
      sparkFacts({
        node,
        more: {
          interfaces: known([
            {
              name: 'enp1s0f0np0',
              up: true,
              mtu: 9000,
              speedMbps: known(200_000),
              addresses: [{ address, prefix: 24 }],
              reaches: ['other'],
            },
          ]),
        },
      });
    const nodes = [net('spark-a', '192.168.200.12'), net('spark-b', '192.168.200.13')];
    const line =
      '[c10d] The client socket has timed out after 600000ms while trying to connect to (192.168.200.12, 29501).';
    const said = on([line], nodes, nodes);
    expect(said).toMatchObject({ cause: 'firewall-blocks-ports', atFault: 'network' });
    expect(said.advice.join('\n')).toContain('192.168.200.12');
  });
});
