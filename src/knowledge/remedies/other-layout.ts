import type { Recipe, RecipeEdit } from '../../domain/recipe.ts';
import { architectureOf } from '../models/read-architecture.ts';
import type { Remedy, RemedyInput } from './remedy.ts';

/** Experts are shared out whole instead of each being cut: their blocks stay as they are. */
export const wholeExperts: Remedy = {
  name: 'whole-experts',
  causes: ['tp-breaks-quantization-blocks'],
  title: ({ recipe }) => `Share out whole experts over ${recipe.layout.tensor} ranks`,
  cost: () => 'ranks whose experts are asked for more often are busier',
  apply(input) {
    const { layout } = input.recipe;
    return layout.tensor < 2 || layout.expert > 1 || !expertsBreak(input)
      ? undefined
      : [{ path: 'layout.expert', from: layout.expert, to: layout.tensor }];
  },
};

const USUAL_BLOCK = 128;

/** Whether it may be experts that are cut through a block: not where there are none, nor where each slice is whole blocks. */
function expertsBreak({ recipe, finding, facts }: RemedyInput): boolean {
  const [config] = facts.flatMap((node) => {
    const model = node.reached && node.model?.known ? node.model.value : undefined;
    return model?.present && model.config.known ? [model.config.value] : [];
  });
  const model = config === undefined ? undefined : architectureOf(config);
  if (model === undefined) return true;
  const block = Number(finding.values['block'] ?? USUAL_BLOCK);
  return model.experts !== undefined && (model.experts.width / recipe.layout.tensor) % block !== 0;
}

/** Fewer slices of each layer, and layers in a row over the rest of the ranks. */
export const tensorThatDivides: Remedy = {
  name: 'tensor-that-divides',
  causes: ['tp-size-not-divisible', 'tp-breaks-quantization-blocks'],
  title: ({ recipe, finding }) => {
    const to = smaller(recipe, Number(finding.values['heads']));
    return to === undefined
      ? 'Split the model otherwise'
      : `Split each layer over ${to.tensor} and put layers in a row over ${to.pipeline}`;
  },
  cost: () => 'one request alone is slower; many at once are about as fast',
  apply({ recipe, finding }) {
    const { layout } = recipe;
    const to = smaller(recipe, Number(finding.values['heads']));
    if (to === undefined) return undefined;
    const edits: readonly RecipeEdit[] = [
      { path: 'layout.tensor', from: layout.tensor, to: to.tensor },
      { path: 'layout.pipeline', from: layout.pipeline, to: to.pipeline },
      ...(layout.expert > to.tensor ? [{ path: 'layout.expert', from: layout.expert, to: 1 }] : []),
    ];
    return edits;
  },
};

/** The largest smaller tensor size that divides the ranks, and the heads where these are known. */
function smaller(
  { layout }: Recipe,
  heads: number,
): { readonly tensor: number; readonly pipeline: number } | undefined {
  const ranks = layout.tensor * layout.pipeline;
  for (let tensor = layout.tensor - 1; tensor >= 1; tensor--) {
    if (ranks % tensor !== 0 || (heads > 0 && heads % tensor !== 0)) continue;
    return { tensor, pipeline: ranks / tensor };
  }
  return undefined;
}
