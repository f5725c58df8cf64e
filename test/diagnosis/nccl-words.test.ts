import { describe, expect, it } from 'vitest';
import { diagnose, failed } from '../../src/diagnosis/diagnose.ts';
import { engines } from '../../src/knowledge/engines/index.ts';
import { weight } from '../../src/knowledge/signatures/telling.ts';
import { evidenceOf, nodeOf, readCases } from './cases.ts';

/** What NCCL 2.28 to 2.30 writes at NCCL_DEBUG=INFO, over RDMA and where it falls back. */
const TEXTS = [
  'cudaDriverVersion 13000',
  'NCCL_SOCKET_IFNAME set by environment to enp1s0f1np1',
  'Bootstrap: Using enp1s0f1np1:192.168.200.12<0>',
  'NCCL version 2.30.7+cuda13.0',
  'ncclOsDlopen(libnccl-net.so) failed: libnccl-net.so: cannot open shared object file: No such file or directory',
  'NET/Plugin: Could not find: libnccl-net.so',
  'dlvsym failed on mlx5dv_reg_dmabuf_mr - /lib/aarch64-linux-gnu/libmlx5.so: undefined symbol: mlx5dv_reg_dmabuf_mr, version MLX5_1.25',
  'NCCL_IB_HCA set to rocep1s0f1,roceP2p1s0f1',
  'NET/IB : Using [0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; OOB enp1s0f1np1:192.168.200.12<0>',
  'NET/IB : No device found.',
  'NET/IB : Using [RO]; OOB enp1s0f1np1:192.168.200.12<0>',
  'Failed to initialize NET plugin IB',
  'Failed to open libibverbs.so[.1]',
  'Initialized NET plugin IB',
  'Assigned NET plugin IB to comm',
  'Using network IB',
  'ncclCommInitRankConfig comm 0xc53b8f7f6ab0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId f01000 commId 0x798dcd8b6f24bb47 - Init START',
  'RAS client listening socket at 127.0.0.1<28028>',
  'Bootstrap timings total 1.927735 (create 0.000034, send 0.000107, recv 1.927205, ring 0.000036, delay 0.000000)',
  'Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0',
  'Connected all rings, use ring PXN 0 GDR 0',
  'Symmetric memory is not supported. cuMemEnable 1, globalGinSupport 0, cuMemGdrSupport 0',
];
const lines = (node: string): readonly string[] =>
  TEXTS.map((text) => `${node}:210:388 [0] NCCL INFO ${text}`);

/** The rendezvous' last line, after which NCCL speaks. */
const AFTER = /Init torch distributed begin|world_size=\d+ rank=|is using nccl==/;

/** The log with NCCL's lines where NCCL writes them. */
function withNccl(role: string, log: Uint8Array): readonly string[] {
  const given = Buffer.from(log).toString('utf8').trimEnd().split('\n');
  const at = given.findLastIndex((line) => AFTER.test(line)) + 1;
  return [...given.slice(0, at), ...lines(nodeOf(role)), ...given.slice(at)];
}

describe('what NCCL says at NCCL_DEBUG=INFO', () => {
  it('is no landmark, and worth nothing to somebody who looks for a cause', () => {
    for (const line of lines('spark-a'))
      for (const engine of Object.values(engines)) {
        expect(engine.landmark(line), line).toBeUndefined();
        expect(weight(engine.message(line), line), line).toBe(0);
      }
  });

  const cases = readCases().map((one) => ({
    ...one,
    spoken: Object.fromEntries(
      Object.entries(one.logs).map(([role, log]) => [role, withNccl(role, log)] as const),
    ),
  }));

  it.each(cases.filter((one) => one.cause === 'no-fault').map((one) => [one.name, one] as const))(
    'leaves %s healthy',
    (_name, one) => {
      expect(failed(evidenceOf({ engine: one.engine, logs: one.spoken, silence: 1000 }))).toBe(false);
    },
  );

  it.each(
    cases
      .filter((one) => one.cause !== 'no-fault' && !one.unrecognised)
      .map((one) => [one.name, one] as const),
  )('leaves the cause of %s as it is', (_name, one) => {
    const plain = diagnose(evidenceOf(one), { final: true });
    const spoken = diagnose(evidenceOf({ ...one, logs: one.spoken }), { final: true });
    expect([spoken.cause, spoken.node]).toEqual([plain.cause, plain.node]);
  });
});
