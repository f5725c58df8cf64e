import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { known, type NodeFacts, unknown } from '../../src/domain/facts.ts';
import type { Service } from '../../src/domain/plan.ts';
import { networkInUse } from '../../src/operations/network-in-use.ts';
import { evidenceOf, readCase } from '../diagnosis/cases.ts';
import { sparkFacts } from '../diagnosis/facts.ts';

/** What NCCL 2.30 writes on a Spark, less the communicator's own lines. */
function nccl(node: string, lines: readonly string[]): readonly string[] {
  return lines.map((line) => `${node}:210:210 [0] NCCL INFO ${line}`);
}
const OOB = 'OOB enp1s0f1np1:192.168.200.12<0>';
const RDMA = [
  `NET/IB : Using [0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; ${OOB}`,
  'Initialized NET plugin IB',
  'Using network IB',
];
/** From 2.27 on the list of devices is printed empty, before the fall back. */
const SOCKETS = [
  'NET/IB : No device found.',
  `NET/IB : Using [RO]; ${OOB}`,
  'NET/Socket : Using [0]enp1s0f1np1:192.168.200.12<0>',
  'Initialized NET plugin Socket',
  'Using network Socket',
];

function spark(node: string, active: boolean): NodeFacts {
  const device = { device: 'rocep1s0f1', interfaceName: known('enp1s0f1np1'), rateGbps: known(200) };
  return sparkFacts({ node, more: { rdma: known([{ ...device, active }]) } });
}
/** A rank as it was planned, by the address on which the others reach it. */
function plannedAt(address: string, rank: number): Service {
  return {
    name: `tiny-r${rank}`,
    node: rank === 0 ? 'spark-a' : 'spark-b',
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'vllm',
    in: 'process',
    argv: ['vllm', 'serve'],
    env: {},
    secretEnv: {},
    recipe: 'tiny',
    recipeDigest: 'd1',
    effectiveDigest: 'd1',
    edits: [],
    servedName: 'tiny',
    address,
  };
}
const pair = [spark('spark-a', true), spark('spark-b', true)];

function pairSays(head: readonly string[], worker: readonly string[], facts: readonly NodeFacts[] = pair) {
  const logs = { head: nccl('spark-a', head), worker: nccl('spark-b', worker) };
  return networkInUse(evidenceOf({ engine: 'sglang', logs }), facts);
}

describe('the network that the ranks use', () => {
  it('is RoCE when every rank says so, and nothing is warned of', () => {
    expect(pairSays(RDMA, RDMA)).toEqual({ kind: 'rdma', text: 'RoCE (RDMA)', warning: undefined });
  });

  it('is InfiniBand where the devices say that', () => {
    const lines = [`NET/IB : Using [0]mlx5_0:1/IB ; ${OOB}`, 'Using network IB'];
    expect(pairSays(lines, lines).text).toBe('InfiniBand (RDMA)');
  });

  it('is RDMA by the plugin of NVIDIA’s images, whose name begins with IB', () => {
    const lines = ['Using network IBext_v8'];
    expect(pairSays(lines, lines)).toMatchObject({ kind: 'rdma', text: 'RDMA' });
  });

  it('is sockets though NCCL lists its RDMA devices, when the list is empty', () => {
    expect(pairSays(SOCKETS, SOCKETS).kind).toBe('sockets');
  });

  it('is sockets when one rank alone is on them, and that one is named', () => {
    const said = pairSays(RDMA, SOCKETS);
    expect(said.text).toBe('TCP sockets on spark-b');
    expect(said.warning).toContain('TCP sockets on spark-b although every node has active RDMA devices');
    expect(said.warning).toContain('On spark-b NCCL sees no device');
  });

  it('is told from the devices where an old log names no network', () => {
    expect(pairSays(RDMA.slice(0, 1), RDMA.slice(0, 1)).kind).toBe('rdma');
    expect(pairSays(SOCKETS.slice(1, 3), SOCKETS.slice(1, 3)).kind).toBe('sockets');
    const channel = ['Channel 00/0 : 1[0] -> 0[0] [send] via NET/Socket/0'];
    expect(pairSays(channel, channel).kind).toBe('sockets');
  });

  it('is another plugin’s where NCCL names one', () => {
    const lines = ['Using network AWS Libfabric'];
    expect(pairSays(lines, lines)).toMatchObject({
      kind: 'unknown',
      text: 'AWS Libfabric, by a plugin of NCCL',
    });
  });

  it('is unknown where no rank says it, and none between the ranks of one node', () => {
    expect(pairSays(['cudaDriverVersion 13000'], [])).toMatchObject({ kind: 'unknown', warning: undefined });
    const alone = evidenceOf({ engine: 'vllm', logs: { head: nccl('spark-a', SOCKETS) } });
    expect(networkInUse(alone, pair)).toMatchObject({ kind: 'unknown', warning: undefined });
  });
});

describe('sockets are a warning', () => {
  it('on a pair that has RDMA, with what is lost and where to look', () => {
    expect(pairSays(SOCKETS, SOCKETS).warning).toBe(
      'The ranks talk over TCP sockets although every node has active RDMA devices: expect a fraction of the link. On spark-a and spark-b NCCL sees no device: see that a container gets --device /dev/infiniband, and that NCCL_IB_HCA names devices of that node.',
    );
  });

  it('with the variable that forbids RDMA, or the library that lacks', () => {
    const forbidden = ['NCCL_IB_DISABLE set by environment to 1.', 'Using network Socket'];
    expect(pairSays(forbidden, forbidden).warning).toContain('NCCL_IB_DISABLE=1 in the environment');
    const evidence = evidenceOf({ engine: 'sglang', logs: readCase('075-libibverbs-missing-in-image').logs });
    expect(networkInUse(evidence, pair).warning).toContain(
      'On spark-a and spark-b the image lacks libibverbs',
    );
  });

  it('in a recorded log of a container without the devices', () => {
    const logs = readCase('074-no-rdma-device-in-container-slow-tcp').logs;
    expect(networkInUse(evidenceOf({ engine: 'vllm', logs }), pair)).toMatchObject({
      kind: 'sockets',
      text: 'TCP sockets',
    });
  });

  it('by an interface that is not the fabric’s, as real ranks say it, and not by the fabric’s own', () => {
    const read = (role: string) =>
      readFileSync(new URL(`../samples/engines/gpu/torch-pair/${role}.log`, import.meta.url));
    const evidence = evidenceOf({ engine: 'vllm', logs: { head: read('head'), worker: read('worker') } });
    const services = ['192.168.200.12', '192.168.200.13'].map(plannedAt);
    const dark = [spark('spark-a', false), spark('spark-b', false)];
    expect(networkInUse({ ...evidence, services }, dark)).toEqual({
      kind: 'sockets',
      text: 'TCP sockets',
      warning: undefined,
    });
    const elsewhere = services.map((one) => (one.rank === 1 ? { ...one, address: '10.9.0.2' } : one));
    expect(networkInUse({ ...evidence, services: elsewhere }, dark).warning).toBe(
      'On spark-b NCCL talks over enp1s0f1np1 (192.168.200.13), not over 10.9.0.2, the address between the nodes: network: auto chooses the interface that has it, as does NCCL_SOCKET_IFNAME.',
    );
  });

  it('not where a node has no active device, or its devices are not known', () => {
    const dark: NodeFacts = sparkFacts({ node: 'spark-b', more: { rdma: unknown('nobody looked') } });
    for (const other of [spark('spark-b', false), dark])
      expect(pairSays(SOCKETS, SOCKETS, [spark('spark-a', true), other])).toMatchObject({
        kind: 'sockets',
        warning: undefined,
      });
  });
});
