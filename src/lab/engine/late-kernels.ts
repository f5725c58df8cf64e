import { lacks } from './lacks.ts';
import type { Pace } from './pace.ts';
import type { Env } from './rank.ts';

/** A little longer than the engines wait for a step: TileLang builds one for each shape it has not seen. */
const BUILD_SECONDS = 330;

/** What a rank does before its first step where no kernels for requests lie in its cache: it has them built. */
export function lateKernels(
  { env, pace }: { readonly env: Env; readonly pace: Pace },
  say: (message: string) => void,
): () => Promise<void> {
  let built: Promise<void> | undefined = lacks(env, 'request-kernels') ? undefined : Promise.resolve();
  const build = async (): Promise<void> => {
    say('TileLang begins to compile kernel `main` with `out_idx=[-1]`');
    await pace.wait(BUILD_SECONDS * 1000);
    say('TileLang completes to compile kernel `main`');
  };
  return () => {
    built ??= build();
    return built;
  };
}
