import { pattern, type Signature } from '../signature.ts';

const segment = pattern(
  ['/dev/shm', 'shared memory', 'shm_open', 'psm_'],
  /(?:Error while creating shared memory segment|failed to extend|Error: failed to (?:extend|allocate)|posix_fallocate|shmOpen|Could not (?:create|allocate) shared memory).{0,300}\/dev\/shm|\/dev\/shm\/\S{1,100}.{0,200}No space left on device|No space left on device.{0,300}(?:\/dev\/shm|\/psm_|\/torch_|\/sem\.)|insufficient shared memory|unable to (?:open|write to|allocate|resize|mmap) (?:shared memory|file <\/torch_)|unable to (?:mmap|resize).{0,400}(?:shm|torch_).{0,400}(?:No space|Cannot allocate)|possible that dataloader's workers are out of shared memory|shm_open.{0,400}(?:No space left|Cannot allocate)/,
);
const busError = pattern(
  ['Bus error', 'SIGBUS', 'signal 7'],
  /Bus error|SIGBUS|exit ?code:? -7\b|signal 7\b/,
);
const size = pattern(
  ['/dev/shm', 'shm '],
  /(?:^|\s)(?:shm|tmpfs)\s{1,60}(?<size>[\d.]{1,200}[KMG]?)\s{1,60}(?<used>[\d.]{1,200}[KMG]?)\s{1,60}(?<free>[\d.]{1,200}[KMG]?)\s{1,60}(?<percent>\d{1,20})%\s{1,60}\/dev\/shm|\/dev\/shm has only (?<bytes>\d{1,20}) bytes/,
);

/** Segments of shared memory do not fit in /dev/shm: docker gives a container 64 MiB unless it is told otherwise. */
export const sharedMemory: Signature = {
  name: 'shared-memory',
  causes: ['shared-memory-too-small'],
  seenOn: 'NCCL 2.18 to 2.28 and torch 2 in docker, 2023 to 2026',
  source: 'NCCL misc/shmutils.cc; torch MapAllocator.cpp; vllm-project/vllm#11054',
  looks: [
    'NCCL WARN Error while creating shared memory segment /dev/shm/nccl-UbzKZ9 (size 9637888), error: No space left on device (28)',
  ],
  patterns: [segment, busError, size],
  match(view) {
    const small = view.find(size).find((found) => isSmall(found.groups));
    const first =
      view.find(segment)[0] ??
      (small === undefined ? undefined : view.find(busError).find((found) => found.node === small.node));
    if (first === undefined) return undefined;
    const { node } = first;
    return {
      cause: 'shared-memory-too-small',
      node,
      shown: [first, ...(small !== undefined && small.node === node ? [small] : [])],
      title: `/dev/shm is too small for the ranks on ${node}`,
      why: 'NCCL and torch pass data between processes of a node through files there; a container has 64 MiB of it unless it is told otherwise.',
      advice: [
        'Start the container with --ipc=host, or --shm-size 16g; firstlight up does so for containers.',
        `For a plain process on ${node}: df -h /dev/shm; rm -f /dev/shm/nccl-* of runs that have ended`,
      ],
      confidence: 0.94,
      specificity: 3,
    };
  },
};

function isSmall(groups: Readonly<Record<string, string | undefined>>): boolean {
  const { size: text, percent, bytes } = groups;
  if (bytes !== undefined) return Number(bytes) < 2 ** 30;
  const small = text !== undefined && (/[KM]$/.test(text) || Number(text) < 1024 * 1024);
  return small || Number(percent) > 97;
}
