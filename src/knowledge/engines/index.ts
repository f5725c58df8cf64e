import type { EngineName } from '../../domain/recipe.ts';
import type { Engine } from './engine.ts';
import { sglang } from './sglang.ts';
import { vllm } from './vllm.ts';
import { vllmRay } from './vllm-ray.ts';

/** Every engine that firstlight can bring up, by its name in a recipe. */
export const engines: Readonly<Record<EngineName, Engine>> = {
  sglang,
  vllm,
  'vllm-ray': vllmRay,
};
