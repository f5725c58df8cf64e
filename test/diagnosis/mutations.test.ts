import { describe, expect, it } from 'vitest';
import { diagnose, failed } from '../../src/diagnosis/diagnose.ts';
import { type Case, evidenceOf, readCases } from './cases.ts';

type Logs = Readonly<Record<string, string>>;

const cases = readCases().filter((one) => one.cause !== 'no-fault' && !one.unrecognised);

/** What hosts differ in without failing differently. */
const mutations: readonly (readonly [string, (text: string) => string])[] = [
  ['line ends of DOS', (text) => text.replaceAll('\n', '\r\n')],
  ['colours', (text) => text.replace(/^(?=.)/gm, '\u001b[36m').replace(/(?<=.)$/gm, '\u001b[0m')],
  [
    'a prefix of Ray around it',
    (text) => text.replace(/^(?=\(\w+ pid=\d+)/gm, '(RayWorkerWrapper pid=77, ip=10.9.8.7) '),
  ],
  ['other process numbers', (text) => text.replace(/pid=(\d+)/g, (_all, pid) => `pid=${Number(pid) + 1111}`)],
  [
    'other host names',
    (text) => text.replaceAll('spark-a', 'gpu01.example').replaceAll('spark-b', 'gpu02.example'),
  ],
  ['another private network', (text) => text.replace(/\b192\.168\.(\d+)\.(\d+)\b/g, '172.20.$1.$2')],
  ['another loopback address', (text) => text.replaceAll('127.0.1.1', '127.0.0.53')],
  ['another date', (text) => text.replace(/\b2026-(?=\d\d-\d\d\b)/g, '2027-')],
  ['lines moved in the engines', (text) => text.replace(/\[(\w+\.py):\d+\]/g, '[$1:4711]')],
];

describe.each(mutations)('with %s', (_name, mutate) => {
  it.each(cases.map((one) => [one.name, one] as const))('%s gives the same cause and node', (_case, one) => {
    const before = diagnose(evidenceOf(one), { final: true });
    const changed = evidenceOf({ engine: one.engine, logs: mapLogs(one, mutate) });
    const after = diagnose(changed, { final: true });
    expect({ cause: after.cause, node: after.node }).toEqual({ cause: before.cause, node: before.node });
    expect(failed(changed)).toBe(true);
  });
});

describe('the ports and addresses of a finding', () => {
  it('are the ones of the log', () => {
    const line =
      'torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 31337, useIpv6: true, code: -98, name: EADDRINUSE, message: address already in use';
    const finding = diagnose(evidenceOf({ engine: 'sglang', logs: { head: [line] } }), { final: true });
    expect(finding.values).toMatchObject({ port: '31337', kind: 'rendezvous' });
  });

  it.each([
    ['[127.0.1.1]:15285$0', '127.0.1.1'],
    ['[::1]:15285$0', '::1'],
    ['[::ffff:127.0.1.1]:15285$0', '127.0.1.1'],
  ])('a loopback address is known as %s', (remote, address) => {
    const line = `RuntimeError: Gloo connectFullMesh failed with [/x/pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=${remote}`;
    const finding = diagnose(evidenceOf({ engine: 'sglang', logs: { head: [line], worker: [] } }), {
      final: true,
    });
    expect(finding).toMatchObject({
      cause: 'loopback-address-advertised',
      node: 'spark-b',
      role: 'worker',
      title: `spark-b told the others to reach it at ${address}`,
      values: { address },
    });
  });

  it.each([
    ['[192.168.1.77]:15285$0', '192.168.1.77'],
    ['[fd00::77]:15285$0', 'fd00::77'],
    ['[fe80::77%wlan0]:15285$0', 'fe80::77'],
  ])('an address of another network is known as %s', (remote, address) => {
    const line = `RuntimeError: Gloo connectFullMesh failed with [/x/pair.cc:152] timed out connecting: SO_ERROR: No route to host, remote=${remote}`;
    const finding = diagnose(evidenceOf({ engine: 'vllm', logs: { head: [line], worker: [] } }), {
      final: true,
    });
    expect(finding).toMatchObject({
      cause: 'wrong-network-address-advertised',
      node: 'spark-b',
      values: { address },
    });
  });
});

function mapLogs(one: Case, mutate: (text: string) => string): Logs {
  return Object.fromEntries(
    Object.entries(one.logs).map(([role, log]) => [role, mutate(log.toString('utf8'))]),
  );
}
