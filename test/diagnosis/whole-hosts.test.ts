import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { known } from '../../src/domain/facts.ts';
import { evidenceOf } from './cases.ts';
import { holderOf, sparkFacts } from './facts.ts';

const GIB = 2 ** 30;

/** Two ranks that have met over TCP, as NCCL tells it where there is no RDMA. */
const met = (tp: number): readonly string[] => [
  `[2026-11-29 23:51:00 TP${tp}] Init torch distributed begin.`,
  `[2026-11-29 23:51:00 TP${tp}] sglang is using nccl==2.30.7`,
  `spark:7304:7304 [0] NCCL INFO NET/IB : No device found.`,
  `spark:7304:7304 [0] NCCL INFO Using network Socket`,
];

describe('on hosts without RDMA', () => {
  const unbalanced = [
    ...met(0),
    '[2026-11-29 23:51:02 TP0] Scheduler hit an exception: Traceback (most recent call last):',
    'RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=0.45, local_gpu_memory=1.65, local_gpu_memory * 0.9=1.48',
  ];
  const evidence = (more = {}) =>
    evidenceOf({ engine: 'sglang', logs: { head: unbalanced, worker: met(1) }, ...more });

  it('an engine that gives up for another reason is not said to want RDMA, not even while it is followed', () => {
    const finding = diagnose(evidence({ silence: 1000 }), { final: false });
    expect(finding).toMatchObject({ family: 'A', node: 'spark-b' });
  });

  it('a holder on a small host is one, though it holds little: it is the worker that has it, and the head that complains', () => {
    const holder = holderOf(1.2, { name: 'trainer' });
    const small = {
      totalBytes: 2 * GIB,
      freeBytes: 0.3 * GIB,
      availableBytes: 0.45 * GIB,
      cachedBytes: 0.2 * GIB,
    };
    const after = [sparkFacts({ node: 'spark-b', holders: [holder], memory: small })];
    expect(diagnose(evidence({ after }), { final: true })).toMatchObject({
      cause: 'leftover-process-holds-gpu-memory',
      node: 'spark-b',
      values: { holder: 'trainer' },
      quotes: [{ rank: 0, line: 6 }],
    });
    const large = [sparkFacts({ node: 'spark-b', holders: [holder] })];
    expect(diagnose(evidence({ after: large }), { final: true }).cause).not.toBe(
      'leftover-process-holds-gpu-memory',
    );
  });
});

describe('a head that nobody reaches', () => {
  const head = [
    '[2026-11-29 23:54:10 TP0] Init torch distributed begin.',
    '[2026-11-29 23:54:18 TP0] Scheduler hit an exception: Traceback (most recent call last):',
    'torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 clients joined.',
    '[2026-11-29 23:54:18] Received sigquit from a child process. It usually means the child failed.',
  ];
  const worker = [
    '[2026-11-29 23:54:10 TP1] Init torch distributed begin.',
    '[2026-11-29 23:54:20 TP1] Scheduler hit an exception: Traceback (most recent call last):',
    'torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (192.168.200.12, 20000).',
  ];
  const there = (letter: 'a' | 'b', last: number) =>
    sparkFacts({
      node: `spark-${letter}`,
      more: {
        interfaces: known([
          {
            name: 'enp1s0f0np0',
            up: true,
            mtu: 9000,
            speedMbps: known(200_000),
            addresses: [{ address: `192.168.200.${last}`, prefix: 24 }],
            reaches: [letter === 'a' ? 'spark-b' : 'spark-a'],
          },
        ]),
      },
    });
  const of = (lines: readonly string[]) =>
    diagnose(
      evidenceOf({
        engine: 'sglang',
        logs: { head: lines, worker },
        ended: { head: 137, worker: 137 },
        before: [there('a', 12), there('b', 13)],
        after: [there('a', 12), there('b', 13)],
      }),
      { final: true },
    );

  it('and that ended first, because nobody came, is still what the worker dialled in vain', () => {
    expect(of(head)).toMatchObject({ cause: 'firewall-blocks-ports', atFault: 'network', family: 'C' });
  });

  it('but one that ended of something else was simply gone', () => {
    const gone = [head[0] ?? '', '[2026-11-29 23:54:12] Received sigquit from a child process.'];
    expect(of(gone).cause).not.toBe('firewall-blocks-ports');
  });
});
