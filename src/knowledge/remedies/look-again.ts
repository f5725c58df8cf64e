import type { Remedy } from './remedy.ts';

/** The next look sees who holds the memory, and the next plan clears it under consent: nothing wanted changes. */
export const lookAgain: Remedy = {
  name: 'look-again',
  causes: [
    'leftover-process-holds-gpu-memory',
    'page-cache-hides-unified-memory',
    'insufficient-free-memory-at-startup',
    'gpu-memory-still-being-reclaimed',
  ],
  title: ({ finding }) => `Look at ${finding.node ?? 'the nodes'} again and clear what holds the memory`,
  cost: () => 'nothing; what is not ours is stopped with your consent only',
  apply: () => [],
};
