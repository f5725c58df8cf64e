import type { Cured } from './cured.ts';

/** The waits of the engines are minutes: so fast they are over in seconds. */
const FAST = { FIRSTLIGHT_LAB_SPEED: '100' };

/** Ranks that do not find each other: addresses, names, ranks and ports that are wrong or taken. */
export const curedAddresses: readonly Cured[] = [
  {
    name: 'management-names',
    title:
      'Names lead to the management networks, which the Sparks do not share; each rank gets its fabric address',
    cause: 'wrong-network-address-advertised',
    remedy: 'use-node-addresses',
    node: 'spark-b',
    recipe: { engines: ['sglang'], network: 'engine' },
    a: { etcHosts: 'own-name-on-management' },
    b: { etcHosts: 'own-name-on-management' },
  },
  {
    name: 'head-by-name',
    title: 'The head is given by its name, which leads elsewhere on the worker; the plan gives its address',
    cause: 'hostname-resolves-to-wrong-address',
    remedy: 'own-arguments',
    recipe: { engines: ['sglang'], env: FAST, args: { sglang: ['--dist-init-addr', 'spark-a:20000'] } },
  },
  {
    name: 'same-rank',
    title: 'Both nodes are told to be rank 0, and each waits for rank 1; the plan numbers them',
    cause: 'duplicate-node-rank',
    remedy: 'own-arguments',
    recipe: { engines: ['sglang'], env: FAST, args: { sglang: ['--node-rank', '0'] } },
  },
  {
    name: 'same-address',
    title:
      'Both nodes are told the head’s address as their own; vLLM over Ray refuses, and each gets its own',
    cause: 'duplicate-host-ip',
    remedy: 'use-node-addresses',
    recipe: { engines: ['vllm-ray'], env: { VLLM_HOST_IP: '192.168.200.12' } },
  },
  {
    name: 'port-taken',
    title: 'Somebody’s tunnel takes the rendezvous port after the look; the ranks meet at another one',
    cause: 'port-already-in-use',
    remedy: 'other-port',
    node: 'spark-a',
    recipe: { engines: ['sglang'] },
    a: {
      holders: [
        {
          kind: 'process',
          name: 'frpc',
          absent: true,
          user: 'aurora',
          uid: 1000,
          argv: ['frpc', '-c', '/home/aurora/frpc.toml'],
          cwd: '/home/aurora',
          listens: [{ address: '0.0.0.0', port: 20000 }],
          gpuGiB: 0,
          residentGiB: 0.1,
        },
      ],
    },
    timeline: [{ when: 'rank-started', seenOn: 'spark-b', node: 'spark-a', startHolder: 'frpc' }],
  },
  {
    name: 'head-restarted',
    title:
      'The head’s engine is ended, its start script starts it again, and the worker hangs on the old store',
    cause: 'head-store-restarted-while-worker-attached',
    remedy: 'launch-anew',
    node: 'spark-a',
    recipe: { engines: ['vllm'], env: FAST },
    images: { startsAgain: true },
    timeline: [{ when: 'loading', node: 'spark-a', endEngines: true }],
  },
  {
    name: 'tuned-on-one',
    title: 'The head has its tuned kernels from an earlier start, the worker has not: they tune apart',
    cause: 'rank-local-kernel-cache-drift',
    remedy: 'tune-apart',
    recipe: {
      engines: ['vllm'],
      env: FAST,
      run: {
        in: 'docker',
        image: { vllm: 'nvcr.io/nvidia/vllm:26.09-py3' },
        volumes: ['/home/aurora/models:/home/aurora/models:ro', '/home/aurora/.cache/vllm:/root/.cache/vllm'],
      },
    },
    a: { files: { '/home/aurora/.cache/vllm/flashinfer_autotune_cache/fused_moe.json': '{}\n' } },
    b: { files: { '/home/aurora/.cache/vllm/README': 'compiled kernels\n' } },
  },
  {
    name: 'unset-variable',
    title:
      'The image’s start script wants the interface’s name, which is set on the hosts alone; each rank gets it',
    cause: 'env-not-set-in-container',
    remedy: 'use-node-addresses',
    recipe: { engines: ['sglang'], network: 'engine' },
    images: { requires: ['GLOO_SOCKET_IFNAME'] },
  },
  {
    name: 'few-tasks',
    title: 'The worker’s services may have 48 tasks together; the rank’s processes start fewer threads',
    cause: 'process-limit-too-low',
    remedy: 'fewer-threads',
    node: 'spark-b',
    recipe: { engines: ['sglang'] },
    b: { pidsMax: 48 },
  },
];
