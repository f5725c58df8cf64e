import type { Remedy } from './remedy.ts';

/** Nothing wanted changes: what came back with the host is seen by the next look, and then all ranks are launched anew. */
export const launchAnew: Remedy = {
  name: 'launch-anew',
  causes: ['host-restarted'],
  title: ({ finding }) => `Look at ${finding.node ?? 'the nodes'} again and launch all ranks anew`,
  cost: () => 'nothing; what came back with the host is stopped with your consent only',
  apply: () => [],
};
