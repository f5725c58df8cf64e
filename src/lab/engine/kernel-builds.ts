import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EngineWorld, WorldError } from './engine-world.ts';
import { lacks } from './lacks.ts';
import { GIB } from './memory-model.ts';
import { realPath } from './model-folder.ts';
import { write } from './output.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** torch's builds start as many compilers as a GB10 has cores, each of several GiB. */
const CORES = 20;
const COMPILER_BYTES = 5 * GIB;

/** Kernels that the image does not bring are built: throws as torch does where the kernel ended a compiler for want of memory. */
export async function buildKernels(world: EngineWorld, env: Env): Promise<void> {
  if (!lacks(env, 'prebuilt-kernels')) return;
  const jobs = Number(env['MAX_JOBS'] ?? CORES);
  try {
    await world.stage(jobs * COMPILER_BYTES, 'cicc');
  } catch (error) {
    if (!(error instanceof WorldError)) throw error;
    write(
      2,
      "nvcc error   : 'cicc' died due to signal 9 (Kill signal)\nninja: build stopped: subcommand failed.\n",
    );
    throw new PythonError(
      'graphs',
      'RuntimeError',
      "Error building extension 'fused_moe_120': ['ninja', '-v'] returned non-zero exit status 1.",
    );
  }
}

/** A kernel that is being compiled into Triton's cache. */
export type Compiling = {
  /** Throws where the file is no longer the one that was made: another node has put its own in place of it. */
  check(): void;
};

/** Puts the file that is compiled into its place, at one stroke: of two nodes that do so at once, one loses its own. */
export function compileInCache(env: Env, hostname: string): Compiling {
  const path = `${env['TRITON_CACHE_DIR'] ?? '/root/.triton/cache'}/7c1e`;
  const real = realPath(path, env);
  // In the container's own layer nobody else writes.
  if (real === undefined || env['FIRSTLIGHT_LAB_MOUNTS'] === undefined) return { check: () => undefined };
  const mine = `${process.pid} ${hostname}`;
  const launcher = join(real, '__triton_launcher.so');
  const made = join(real, `tmp.pid_${process.pid}_${hostname}`);
  mkdirSync(real, { recursive: true });
  writeFileSync(made, mine);
  renameSync(made, launcher);
  return {
    check: () => {
      if (readFileSync(launcher, 'utf8') !== mine)
        throw new PythonError(
          'graphs',
          'OSError',
          `[Errno 116] Stale file handle: '${path}/__triton_launcher.so'`,
        );
    },
  };
}
