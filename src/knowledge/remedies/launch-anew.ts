import type { Remedy } from './remedy.ts';

/** Nothing wanted changes: what came back with the host is seen by the next look, and then all ranks are launched anew, the
 * workers too: none of them finds a head that began without it. */
export const launchAnew: Remedy = {
  name: 'launch-anew',
  causes: [
    'host-restarted',
    'head-store-restarted-while-worker-attached',
    'container-lost-gpu-access',
    'worker-died-head-still-healthy',
    'head-ended-from-outside',
    'unbalanced-load-barrier-timeout',
  ],
  title: ({ finding }) => `Look at ${finding.node ?? 'the nodes'} again and launch all ranks anew`,
  cost: () => 'nothing; what came back with the host is stopped with your consent only',
  apply: () => [],
};
