import { write } from './output.ts';
import type { Env } from './rank.ts';
import { readIfThere } from './text-file.ts';

/** Cores of a GB10: the maths libraries start a thread for each in every process, unless they are told a number. */
const CORES = 20;
/** The API's process, the engine's and the rank's. */
const PROCESSES = 3;

/** Whether the limit on tasks of the slice lets all threads of a rank be started; else OpenBLAS and Python say so. */
export function startThreads(env: Env): boolean {
  const limit = Number(
    readIfThere(`${env['FIRSTLIGHT_ROOT'] ?? ''}/sys/fs/cgroup/system.slice/pids.max`) || Number.NaN,
  );
  const each = Number(env['OMP_NUM_THREADS'] ?? CORES);
  if (!(each * PROCESSES > limit)) return true;
  const failed = limit - each * (PROCESSES - 1);
  write(
    2,
    `OpenBLAS blas_thread_init: pthread_create failed for thread ${Math.max(1, failed)} of ${each}: Resource temporarily unavailable\nOpenBLAS blas_thread_init: ensure that your address space and process count limits are big enough (ulimit -a)\nOpenBLAS blas_thread_init: or set a smaller OPENBLAS_NUM_THREADS to fit into what you have available\n`,
  );
  write(2, "RuntimeError: can't start new thread\n");
  return false;
}
