import type { Options } from './command-line.ts';
import type { EngineWorld } from './engine-world.ts';
import type { Pace } from './pace.ts';
import type { Env } from './rank.ts';

export async function runVllm(_: {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly env: Env;
  readonly options: Options;
  readonly program: string;
}): Promise<number> {
  return 1;
}
