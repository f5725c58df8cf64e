/** Where in an engine something raises; each engine has its own frames for it. */
export type Site =
  | 'set-device'
  | 'store'
  | 'gloo'
  | 'nccl'
  | 'queue'
  | 'balance'
  | 'load'
  | 'barrier'
  | 'pool'
  | 'graphs'
  | 'draft'
  | 'parser'
  | 'memory-check'
  | 'kv-check'
  | 'loop';

export type Frame = readonly [file: string, line: number, name: string, code: string];

/** An exception as the engine would raise it. `lines` follow the message, as CUDA's hints do. */
export class PythonError extends Error {
  readonly type: string;
  readonly site: Site;
  readonly lines: readonly string[];
  constructor(site: Site, type: string, message: string, lines: readonly string[] = []) {
    super(message);
    this.site = site;
    this.type = type;
    this.lines = lines;
  }
}

/** The text of Python's traceback, without a last newline. */
export function traceback(error: PythonError, frames: readonly Frame[]): readonly string[] {
  return [
    'Traceback (most recent call last):',
    ...frames.flatMap(([file, line, name, code]) => [
      `  File "${file}", line ${line}, in ${name}`,
      `    ${code}`,
    ]),
    error.message === '' ? error.type : `${error.type}: ${error.message}`,
    ...error.lines,
  ];
}

const TORCH = '/usr/local/lib/python3.12/dist-packages/torch';

/** The part of a traceback that lies in torch, by site (torch 2.11). */
export const TORCH_FRAMES: Readonly<Partial<Record<Site, readonly Frame[]>>> = {
  'set-device': [[`${TORCH}/cuda/__init__.py`, 638, 'set_device', 'torch._C._cuda_setDevice(device)']],
  store: [
    [`${TORCH}/distributed/c10d_logger.py`, 83, 'wrapper', 'return func(*args, **kwargs)'],
    [`${TORCH}/distributed/c10d_logger.py`, 97, 'wrapper', 'func_return = func(*args, **kwargs)'],
    [
      `${TORCH}/distributed/distributed_c10d.py`,
      1831,
      'init_process_group',
      'store, rank, world_size = next(rendezvous_iterator)',
    ],
    [`${TORCH}/distributed/rendezvous.py`, 231, '_tcp_rendezvous_handler', 'store = _create_c10d_store('],
    [`${TORCH}/distributed/rendezvous.py`, 199, '_create_c10d_store', 'return TCPStore('],
  ],
  gloo: [
    [`${TORCH}/distributed/c10d_logger.py`, 97, 'wrapper', 'func_return = func(*args, **kwargs)'],
    [`${TORCH}/distributed/distributed_c10d.py`, 5398, 'new_group', 'return _new_group_with_tag('],
    [
      `${TORCH}/distributed/distributed_c10d.py`,
      5496,
      '_new_group_with_tag',
      'pg, pg_store = _new_process_group_helper(',
    ],
    [
      `${TORCH}/distributed/distributed_c10d.py`,
      2087,
      '_new_process_group_helper',
      'backend_class = ProcessGroupGloo(',
    ],
  ],
  barrier: [
    [`${TORCH}/distributed/c10d_logger.py`, 83, 'wrapper', 'return func(*args, **kwargs)'],
    [`${TORCH}/distributed/distributed_c10d.py`, 3021, 'all_reduce', 'work.wait()'],
  ],
};

/** `torch.AcceleratorError: CUDA error: out of memory` with its hints (captured with torch 2.11+cu130 on an H200). */
export function cudaOutOfMemory(site: Site): PythonError {
  return new PythonError(site, 'torch.AcceleratorError', 'CUDA error: out of memory', [
    "Search for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
    'CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.',
    'For debugging consider passing CUDA_LAUNCH_BLOCKING=1',
    'Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.',
    '',
  ]);
}

/** More ranks on this node than it has GPUs. */
export function noSuchDevice(site: Site): PythonError {
  return new PythonError(site, 'torch.AcceleratorError', 'CUDA error: invalid device ordinal', [
    'GPU device may be out of range, do you have enough GPUs?',
    'CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.',
    'For debugging consider passing CUDA_LAUNCH_BLOCKING=1',
    'Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.',
    '',
  ]);
}

/** torch's caching allocator found no room (captured with torch 2.11 on an H200). Sizes in bytes. */
export function torchOutOfMemory(
  site: Site,
  sizes: { readonly wanted: number; readonly total: number; readonly free: number; readonly own: number },
): PythonError {
  const show = (bytes: number): string =>
    bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`;
  return new PythonError(
    site,
    'torch.OutOfMemoryError',
    `CUDA out of memory. Tried to allocate ${show(sizes.wanted)}. GPU 0 has a total capacity of ${show(sizes.total)} of which ${show(sizes.free)} is free. Including non-PyTorch memory, this process has ${show(sizes.own)} memory in use. Of the allocated memory ${show(sizes.own * 0.98)} is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)`,
  );
}
