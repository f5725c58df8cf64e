import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** Ray's watch over a node's memory counts weights in unified memory and page cache as used (NVIDIA's own playbook turns it off). */
export const rayMemoryMonitorOff: Remedy = {
  name: 'ray-memory-monitor-off',
  causes: ['ray-memory-monitor-killed-worker'],
  title: () => "Turn Ray's memory monitor off on every node",
  cost: () => 'Ray no longer ends workers before the kernel does; the guard of each rank still watches',
  apply: ({ recipe }) => setEnv(recipe, { RAY_memory_monitor_refresh_ms: '0' }),
};
