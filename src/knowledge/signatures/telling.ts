/**
 * Literals of lines after which a rank does not go on: worth a diagnosis at once. Lines that healthy starts print
 * too (retries, ignored errors, tracebacks in passing) are left out; a rank's end is told by its end.
 */
export const FATAL: readonly string[] = [
  'Scheduler hit an exception: ',
  'Received sigquit from a child process',
  'EngineCore failed to start.',
  'WorkerProc failed to start.',
  'Engine core initialization failed.',
  'EngineCore encountered a fatal error',
  'died unexpectedly, shutting down executor',
  'scheduler died during initialization',
  'Gloo connectFullMesh failed',
  'willRetry=0',
  'torch.distributed.DistStoreError: ',
  'torch.distributed.DistNetworkError: ',
  'torch.distributed.DistBackendError: ',
  'torch.OutOfMemoryError: CUDA out of memory',
  'torch.AcceleratorError: CUDA error: ',
  'RuntimeError: CUDA error: ',
  'RuntimeError: No CUDA GPUs are available',
  'Failed to infer device type',
  'Unable to find address for: ',
  'no socket interface found',
  'error: unrecognized arguments: ',
  'error: ambiguous option: ',
  ': invalid choice: ',
  'xec format error',
  'error while attempting to bind on address',
  'on startup is less than desired GPU memory utilization',
  'KV cache is needed, which is larger than the available KV cache memory',
  'The memory capacity is unbalanced. Some GPUs may be occupied',
  'Initialization failed. warmup error',
  'permission denied while trying to connect to the',
  'could not select device driver',
];

/** A line with none of these weighs nothing. */
export const WEIGHTY: readonly string[] = [
  'Error',
  'Exception',
  'Interrupt',
  'Exit',
  'ERROR ',
  'CRITICAL ',
  'FATAL',
  '[E',
  'NCCL WARN',
  '[fatal]',
  'Killed',
  'Segmentation fault',
  'core dumped',
  'exited with code',
  'terminated with',
  'panic:',
  'error',
  'not found',
  'ailed to start',
];

const EXCEPTION =
  /^(?:\[rank\d+\]: ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b(?::|$)/;
const LEVEL = /^(?:\([^)]*\) ?)*(?:ERROR|CRITICAL|FATAL) |\]:\[E\d|^\[E\d|NCCL WARN|\bFATAL\b|\[fatal\]/;
const ENDED =
  /\bKilled\b|Segmentation fault|core dumped|exited with code|terminated with|^panic:|^[Ee]rror\b|: error: |not found$|[Ff]ailed to start/;
const NOISE =
  /^File "|^\s|destroy_process_group\(\) was not called|^Search for `|For debugging consider passing|Compile with `TORCH_USE|kernel errors might be asynchronously|Warning:|^raise |See root cause above/;

/** How much a line is worth to somebody who looks for a cause: 0 nothing, 3 an exception's own line. */
export function weight(message: string, text: string): 0 | 1 | 2 | 3 {
  if (message === '' || NOISE.test(message)) return 0;
  if (EXCEPTION.test(message)) return 3;
  if (ENDED.test(message)) return 2;
  return LEVEL.test(text) ? 1 : 0;
}
