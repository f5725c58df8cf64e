import type { Software } from '../../domain/recipe.ts';

export type Stage = {
  readonly from: number;
  readonly to: number;
  readonly first: boolean;
  readonly last: boolean;
};

/**
 * Layers over pipeline stages. What is left over goes to the stages before the last in vLLM, from the back
 * (distributed/utils.py get_pp_indices), and to the first ones in SGLang.
 */
export function stagesOf(layers: number, pipeline: number, engine: Software): readonly Stage[] {
  const base = Math.floor(layers / pipeline);
  const over = layers % pipeline;
  const sizes = Array.from({ length: pipeline }, (_, stage) => {
    const extra = engine === 'vllm' ? stage < pipeline - 1 && stage >= pipeline - 1 - over : stage < over;
    return base + (extra ? 1 : 0);
  });
  let from = 0;
  return sizes.map((size, stage) => {
    const at = { from, to: from + size, first: stage === 0, last: stage === pipeline - 1 };
    from += size;
    return at;
  });
}
