import type { StoryHolder } from '../story.ts';
import type { Cured } from './cured.ts';

/** Somebody's job that comes while the ranks come up. */
function job(memory: Pick<StoryHolder, 'gpuGiB' | 'residentGiB' | 'leavesGiB'>): StoryHolder {
  return {
    kind: 'process',
    name: 'reindex',
    absent: true,
    user: 'aurora',
    uid: 1000,
    argv: ['reindex', '--library', '/home/aurora/papers'],
    cwd: '/home/aurora/papers',
    listens: [],
    ...memory,
  };
}

const CONSENTS = [{ node: 'spark-b', holder: 'reindex' }] as const;

const ROWS: readonly (Cured & { readonly memory?: Readonly<Record<string, unknown>> })[] = [
  {
    name: 'cache-hides-memory',
    title: 'Files are copied on the worker after the look: its page cache hides the memory, and is dropped',
    cause: 'page-cache-hides-unified-memory',
    remedy: 'look-again',
    node: 'spark-b',
    recipe: { engines: ['sglang'] },
    timeline: [{ when: 'rank-started', node: 'spark-b', readsGiB: 130 }],
  },
  {
    name: 'less-than-seen',
    title:
      'The worker’s system takes more after the look; the engine finds less than planned, and is given less',
    cause: 'insufficient-free-memory-at-startup',
    remedy: 'less-memory',
    node: 'spark-b',
    // As much as there is, so that a little less is too little.
    memory: { fraction: 0.93 },
    recipe: { engines: ['vllm'] },
    timeline: [{ when: 'rank-started', node: 'spark-b', systemGiB: 2.5 }],
  },
  {
    name: 'memory-on-its-way',
    title:
      'What held the worker’s memory has just ended, and the driver gives it back late: it is waited for',
    cause: 'gpu-memory-still-being-reclaimed',
    remedy: 'look-again',
    node: 'spark-b',
    recipe: { engines: ['vllm'] },
    timeline: [
      { when: 'rank-started', node: 'spark-b', endedGiB: 60 },
      { when: 'rank-ended', node: 'spark-b', givesBack: true },
    ],
  },
  {
    name: 'new-driver',
    title: 'A newer driver takes more of the worker’s memory than the 580 line did; the engine asks for less',
    cause: 'driver-version-regression',
    remedy: 'less-memory',
    node: 'spark-b',
    memory: { fraction: 0.91 },
    recipe: { engines: ['vllm'] },
    b: { driver: '595.58.03' },
  },
  {
    name: 'host-memory-gone',
    title: 'Somebody’s job takes the worker’s memory while weights are read, and the kernel ends the rank',
    cause: 'oom-killer-during-weight-load',
    remedy: 'look-again',
    node: 'spark-b',
    recipe: { engines: ['vllm'] },
    b: { holders: [job({ gpuGiB: 0, residentGiB: 120, leavesGiB: 0.3 })] },
    timeline: [{ when: 'loading', node: 'spark-b', startHolder: 'reindex' }],
    consents: CONSENTS,
  },
  {
    name: 'slab-hides-memory',
    title:
      'The worker’s kernel remembers millions of files: available to all but the driver, and less is asked for',
    cause: 'unified-memory-exhausted-driver-alloc',
    remedy: 'less-memory',
    node: 'spark-b',
    recipe: {
      engines: ['vllm'],
      args: { vllm: ['--safetensors-load-strategy', 'eager'] },
    },
    timeline: [{ when: 'loading', node: 'spark-b', slabGiB: 24 }],
  },
  {
    name: 'job-counted',
    title:
      'Somebody’s job grows on the worker while vLLM measures, which takes it for its own; it is stopped',
    cause: 'kv-cache-negative-other-process-counted',
    remedy: 'look-again',
    node: 'spark-b',
    recipe: { engines: ['vllm'] },
    b: { holders: [job({ gpuGiB: 36, residentGiB: 0.5 })] },
    timeline: [{ when: 'loading', node: 'spark-b', startHolder: 'reindex' }],
    consents: CONSENTS,
  },
  {
    name: 'context-too-long',
    title:
      'The share of memory leaves no room for one request of the wanted context; a shorter one is served',
    cause: 'kv-cache-too-small-for-max-len',
    remedy: 'shorter-context',
    memory: { fraction: 0.53 },
    recipe: { engines: ['vllm'], context: 262144 },
  },
  {
    name: 'share-too-small',
    title: 'The share of memory holds the weights and nothing else; vLLM gets more',
    cause: 'gpu-memory-utilization-too-low',
    remedy: 'more-memory',
    memory: { fraction: 0.5 },
    recipe: { engines: ['vllm'] },
  },
  {
    name: 'pool-too-small',
    title: 'The share of memory leaves nothing for the KV pool; SGLang gets more',
    cause: 'kv-pool-size-not-positive',
    remedy: 'more-memory',
    memory: { fraction: 0.5 },
    recipe: { engines: ['sglang'] },
  },
  {
    name: 'graphs-too-large',
    title: 'Graphs for 512 requests do not fit beside a large KV pool; the pool gets less',
    cause: 'cuda-graph-capture-oom',
    remedy: 'less-memory',
    memory: { fraction: 0.95 },
    recipe: {
      engines: ['sglang'],
      args: { sglang: ['--cuda-graph-max-bs', '512'] },
    },
  },
  {
    name: 'frozen-host',
    title:
      'Graphs take the worker’s last memory, and the whole host stands still for a while; less is asked for',
    cause: 'unified-memory-exhausted-host-freeze',
    remedy: 'less-memory',
    node: 'spark-b',
    memory: { fraction: 0.95 },
    recipe: {
      engines: ['sglang'],
      args: { sglang: ['--cuda-graph-max-bs', '512'] },
    },
    b: { starvesSeconds: 4 },
  },
  {
    name: 'too-many-requests',
    title: 'The sampler has no room for 4096 requests at once; a quarter of them is served',
    cause: 'too-many-sequences-for-memory',
    remedy: 'fewer-sequences',
    memory: { fraction: 0.87 },
    recipe: { engines: ['vllm'], sequences: 4096 },
  },
  {
    name: 'ray-watches-memory',
    title: 'Ray’s memory monitor takes page cache for memory in use, and ends the worker; it is turned off',
    cause: 'ray-memory-monitor-killed-worker',
    remedy: 'ray-memory-monitor-off',
    recipe: { engines: ['vllm-ray'], env: { RAY_memory_monitor_refresh_ms: '250' } },
  },
  {
    name: 'ended-by-somebody',
    title:
      'The driver gets no memory for the KV cache, and somebody ends the worker’s rank; less is asked for',
    cause: 'device-allocation-failed-sigkill-unattributed',
    remedy: 'less-memory',
    node: 'spark-b',
    recipe: {
      engines: ['vllm'],
      args: { vllm: ['--safetensors-load-strategy', 'eager'] },
    },
    timeline: [
      { when: 'loading', node: 'spark-b', slabGiB: 24 },
      { when: 'no-memory', node: 'spark-b', afterSeconds: 0.15, endRanks: true },
    ],
  },
];

/**
 * Memory that is missing: taken by others, hidden, on its way back, or divided wrongly. Without guards: at the pace of
 * the lab memory falls faster than a guard lets it.
 */
export const curedMemory: readonly Cured[] = ROWS.map(({ memory, ...row }) => ({
  ...row,
  recipe: { ...row.recipe, memory: { guard: 'off', ...memory } },
}));
