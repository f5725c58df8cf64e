import type { GuardRecord } from '../../src/domain/guard.ts';

const GIB = 2 ** 30;

/** What a rank's guard puts down while all is well. */
export const guarding: GuardRecord = {
  state: 'guards',
  by: 'docker',
  why: undefined,
  memory: 'host',
  reserveBytes: 3 * GIB,
  kernelLog: 'read',
  driverErrors: 0,
  oomKills: 0,
  lowestBytes: 19.8 * GIB,
  lowestAt: '2026-11-12T10:06:10.000Z',
  curve: [],
};
