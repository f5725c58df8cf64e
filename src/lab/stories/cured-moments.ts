import type { Cured } from './cured.ts';

/** The waits of the engines are minutes: so fast they are over in seconds. */
const FAST = { FIRSTLIGHT_LAB_SPEED: '100' };

/** Something happens to a node while its rank comes up or serves, and all ranks are launched anew or given more time. */
export const curedMoments: readonly Cured[] = [
  {
    name: 'lost-gpu',
    title: 'systemd is reloaded on the worker as its rank starts, and the container loses its GPU',
    cause: 'container-lost-gpu-access',
    remedy: 'launch-anew',
    node: 'spark-b',
    recipe: { engines: ['vllm'] },
    timeline: [{ when: 'rank-started', node: 'spark-b', reloadSystemd: true }],
  },
  {
    name: 'slow-disk',
    title: 'A backup keeps the worker’s disk busy while the weights are read, and the head stops waiting',
    cause: 'unbalanced-load-barrier-timeout',
    remedy: 'launch-anew',
    node: 'spark-b',
    recipe: { engines: ['sglang'], env: FAST },
    b: {
      holders: [
        {
          kind: 'process',
          name: 'restic',
          user: 'aurora',
          uid: 1000,
          argv: ['restic', 'backup', '/home/aurora'],
          cwd: '/home/aurora',
          listens: [],
          gpuGiB: 0,
          residentGiB: 0.3,
          busyDisk: true,
        },
      ],
    },
    timeline: [{ when: 'rank-ended', node: 'spark-b', endHolder: 'restic' }],
  },
  {
    name: 'rebooted-worker',
    title: 'The worker is restarted while it reads the weights; it is looked at again, and both are launched',
    cause: 'host-restarted',
    remedy: 'launch-anew',
    node: 'spark-b',
    recipe: { engines: ['vllm'] },
    timeline: [{ when: 'loading', node: 'spark-b', reboot: true }],
  },
  {
    name: 'worker-gone',
    title: 'The worker’s rank is ended at the first question, and the head says that it is well',
    cause: 'worker-died-head-still-healthy',
    remedy: 'launch-anew',
    node: 'spark-b',
    recipe: { engines: ['vllm'], env: FAST },
    timeline: [{ when: 'asked', seenOn: 'spark-a', node: 'spark-b', endRanks: true }],
  },
  {
    name: 'head-killed',
    title: 'The head’s rank is ended by somebody while it reads the weights; both are launched anew',
    cause: 'head-ended-from-outside',
    remedy: 'launch-anew',
    node: 'spark-a',
    recipe: { engines: ['vllm'] },
    timeline: [{ when: 'loading', node: 'spark-a', endRanks: true }],
  },
  {
    name: 'late-kernel',
    title: 'The first question has the worker build a kernel for longer than the head waits; it waits longer',
    cause: 'late-jit-exceeds-execute-timeout',
    remedy: 'more-time',
    node: 'spark-b',
    recipe: { engines: ['vllm'], env: FAST },
    b: { lacks: ['request-kernels'] },
  },
];
