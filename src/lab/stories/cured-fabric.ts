import type { Cured } from './cured.ts';

/** The waits of the engines are minutes: so fast they are over in seconds. */
const FAST = { FIRSTLIGHT_LAB_SPEED: '100' };
const SGLANG = { engines: ['sglang'] } as const;

/** RDMA and NCCL: devices, GIDs, limits, kernels and builds that do not fit, or files that say otherwise. */
export const curedFabric: readonly Cured[] = [
  {
    name: 'wrong-devices',
    title: 'NCCL is given the head’s RDMA device and RDMA alone; the worker’s cable is in the other cage',
    cause: 'wrong-rdma-device-list',
    remedy: 'use-node-addresses',
    node: 'spark-b',
    recipe: { ...SGLANG, env: { NCCL_IB_HCA: '=rocep1s0f0', NCCL_NET: 'IB' } },
  },
  {
    name: 'wrong-gid',
    title: 'NCCL is told a GID index at which the tables of the Sparks have nothing; it chooses by itself',
    cause: 'wrong-gid-index',
    remedy: 'gid-index',
    recipe: { ...SGLANG, env: { NCCL_IB_GID_INDEX: '7' } },
  },
  {
    name: 'crossed-rails',
    title: 'NCCL may cross from one path of the cable to the other, which is another subnet; it stays on one',
    cause: 'rdma-cabling-topology',
    remedy: 'follow-cabling',
    recipe: { ...SGLANG, env: { NCCL_CROSS_NIC: '1' } },
  },
  {
    name: 'low-memlock',
    title: 'Plain processes may lock 64 KiB of memory, too little for RDMA; NCCL goes over TCP meanwhile',
    cause: 'memlock-limit-too-low',
    remedy: 'over-sockets',
    recipe: { ...SGLANG, run: { in: 'process' } },
    a: { memlockKib: 64 },
    b: { memlockKib: 64 },
  },
  {
    name: 'regressed-kernel',
    title: 'A kernel that registers no memory for RDMA runs on both Sparks; NCCL goes over TCP meanwhile',
    cause: 'kernel-regression-rdma-registration',
    remedy: 'over-sockets',
    recipe: SGLANG,
    a: { kernel: '7.0.0-1019-nvidia' },
    b: { kernel: '7.0.0-1019-nvidia' },
  },
  {
    name: 'stalling-nccl',
    title: 'The image’s NCCL stalls in CUDA graphs on this GPU; the model is served without graphs',
    cause: 'nccl-build-incompatible-with-platform',
    remedy: 'eager',
    recipe: { ...SGLANG, env: FAST },
    images: { nccl: '2.28.9' },
  },
  {
    name: 'stale-nccl-files',
    title:
      'The image brings a plugin and an nccl.conf of a cloud’s machines; NCCL is told to leave them aside',
    cause: 'stale-nccl-config-in-image',
    remedy: 'without-nccl-files',
    recipe: SGLANG,
    images: {
      files: {
        '/etc/nccl.conf': 'NCCL_NET=Libfabric\n',
        '/opt/amazon/ofi-nccl/lib/libnccl-net.so': 'ELF\n',
      },
    },
  },
  {
    name: 'broken-capture',
    title: 'The image captures graphs without regard to NCCL’s copies through the host; graphs are left out',
    cause: 'cuda-graph-capture-with-host-staged-nccl',
    remedy: 'eager',
    recipe: { engines: ['vllm'] },
    images: { lacks: ['thread-local-capture'] },
  },
];
