import { openAttention, runExperts } from './attention.ts';
import type { EngineWorld } from './engine-world.ts';
import { buildKernels, compileInCache } from './kernel-builds.ts';
import type { Env } from './rank.ts';

/**
 * All that a rank builds, compiles and chooses of kernels once its weights are read; throws PythonError where the GPU,
 * the image or another node stands against it. `together` waits for all ranks.
 */
export async function prepareKernels(
  { world, env }: { readonly world: EngineWorld; readonly env: Env },
  wanted: {
    readonly engine: 'sglang' | 'vllm';
    readonly attention: string | undefined;
    readonly experts: string | undefined;
    readonly warn: (text: string) => void;
    readonly together: () => Promise<unknown>;
  },
): Promise<void> {
  await buildKernels(world, env);
  openAttention(env, wanted.engine, wanted.attention);
  const compiling = compileInCache(env, world.hostname);
  await wanted.together();
  compiling.check();
  runExperts(wanted.experts, wanted.warn);
}
