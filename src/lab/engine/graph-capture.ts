import { lacks } from './lacks.ts';
import { ncclVersion } from './nccl.ts';
import { write } from './output.ts';
import type { Pace } from './pace.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** The build of NCCL that stalls in CUDA graphs on a GB10 (vllm-project/vllm#41725). */
const STALLS = '2.28.9';
/** Graphs are captured so that a call of another thread, NCCL's copy through the host, does not break them. */
const APART = 'thread-local-capture';

/**
 * What NCCL does to the capture of graphs over several nodes on a GB10, whose data go through the host: throws where
 * the image captures without regard to other threads; with a build that stalls nothing comes until the watchdog does.
 */
export async function checkCapture(
  { env, pace }: { readonly env: Env; readonly pace: Pace },
  {
    rank,
    size,
    timeoutSeconds,
  }: { readonly rank: number; readonly size: number; readonly timeoutSeconds: number },
): Promise<void> {
  if (size < 2) return;
  if (lacks(env, APART))
    throw new PythonError(
      'graphs',
      'torch.AcceleratorError',
      'CUDA error: an illegal memory access was encountered',
      [
        'CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.',
        'For debugging consider passing CUDA_LAUNCH_BLOCKING=1',
        'Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.',
        '',
      ],
    );
  if (ncclVersion(env) !== STALLS) return;
  await pace.wait(timeoutSeconds * 1000);
  const limit = timeoutSeconds * 1000;
  const words = `[Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=393216, NumelOut=393216, Timeout(ms)=${limit}) ran for ${limit + 12} milliseconds before timing out.`;
  write(2, `[rank${rank}]:[E ProcessGroupNCCL.cpp:685] ${words}\n`);
  throw new PythonError('graphs', 'torch.distributed.DistBackendError', words);
}
