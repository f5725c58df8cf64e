import type { Remedy } from './remedy.ts';

/**
 * The next look sees who holds the memory or the API's port, and the next plan clears it under consent: nothing wanted
 * changes. A rendezvous port is not worth anybody's work: that one moves.
 */
export const lookAgain: Remedy = {
  name: 'look-again',
  causes: [
    'leftover-process-holds-gpu-memory',
    'page-cache-hides-unified-memory',
    'insufficient-free-memory-at-startup',
    'gpu-memory-still-being-reclaimed',
    'kv-cache-negative-other-process-counted',
    'oom-killer-during-weight-load',
    'unified-memory-exhausted-driver-alloc',
    'port-already-in-use',
  ],
  title: ({ finding }) =>
    `Look at ${finding.node ?? 'the nodes'} again and clear what holds ${finding.cause === 'port-already-in-use' ? `port ${finding.values['port'] ?? ''}` : 'the memory'}`,
  cost: () => 'nothing; what is not ours is stopped with your consent only',
  apply: ({ finding }) =>
    finding.cause === 'port-already-in-use' && finding.values['kind'] !== 'api' ? undefined : [],
};
