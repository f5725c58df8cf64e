import { describe, expect, it } from 'vitest';
import { causeOf } from '../../src/knowledge/causes.ts';
import { remedies } from '../../src/knowledge/remedies/index.ts';
import { stories } from '../../src/lab/stories/index.ts';

const NOT_YET = 'not written yet';
/** Curable causes of which no story tells, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  // Family A
  'ray-memory-monitor-killed-worker': NOT_YET,
  'unified-memory-exhausted-host-freeze': NOT_YET,
  'jit-compile-parallelism-oom': NOT_YET,
  'device-allocation-failed-sigkill-unattributed': NOT_YET,
  // Family B
  'cuda-graph-capture-with-host-staged-nccl': NOT_YET,
  // Family C
  'wrong-network-address-advertised': NOT_YET,
  'hostname-resolves-to-wrong-address': NOT_YET,
  'duplicate-node-rank': NOT_YET,
  'duplicate-host-ip': NOT_YET,
  'head-store-restarted-while-worker-attached': NOT_YET,
  'port-already-in-use': NOT_YET,
  'rank-local-kernel-cache-drift': NOT_YET,
  'env-not-set-in-container': NOT_YET,
  // Family D
  'process-limit-too-low': NOT_YET,
  // Family E
  'wrong-rdma-device-list': NOT_YET,
  'wrong-gid-index': NOT_YET,
  'rdma-cabling-topology': NOT_YET,
  'rdma-underused-one-half-or-small-mtu': NOT_YET,
  'lossless-ethernet-config-lost': NOT_YET,
  'memlock-limit-too-low': NOT_YET,
  'kernel-regression-rdma-registration': NOT_YET,
  'nccl-build-incompatible-with-platform': NOT_YET,
  'stale-nccl-config-in-image': NOT_YET,
  // Family F
  'kernels-exceed-sm121-shared-memory': NOT_YET,
  'jit-cache-shared-between-nodes': NOT_YET,
  'attention-backend-unsupported': NOT_YET,
  'experimental-kernel-crash': NOT_YET,
};

/** Causes that a remedy exists for, each with its remedies. */
const curable = new Map<string, readonly string[]>();
for (const { name, causes } of remedies)
  for (const cause of causes) curable.set(cause, [...(curable.get(cause) ?? []), name]);

/** Causes that a story names, cures and proves, each with the stories that do. */
const told = new Map<string, readonly string[]>();
for (const { name, expect: ends } of stories)
  for (const { type, cause } of ends.events)
    if (type === 'remedy-proved' && cause !== undefined) told.set(cause, [...(told.get(cause) ?? []), name]);

/** Cause, remedies, stories: one line each, in the order of the remedies. */
const table = [...curable].map(([cause, cures]) => [
  cause,
  cures.join(' '),
  (told.get(cause) ?? []).join(' '),
]);

describe('every cause that a remedy cures is broken, named, cured and proved in the lab', () => {
  it.each(table)('%s, by %s: %s', (cause, _, by) => {
    expect(causeOf(cause)).toBeDefined();
    if (cause in WITHOUT) expect(by, 'has a story now: take it off the list').toBe('');
    else expect(by, 'needs a story in src/lab/stories').not.toBe('');
  });

  it('says of nothing else that it has no story', () => {
    expect(Object.keys(WITHOUT).filter((cause) => !curable.has(cause))).toEqual([]);
  });

  it('proves in a story nothing that no remedy cures', () => {
    expect([...told.keys()].filter((cause) => !curable.has(cause))).toEqual([]);
  });
});
