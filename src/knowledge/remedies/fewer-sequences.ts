import type { Remedy } from './remedy.ts';

/** vLLM's and SGLang's own default where memory decides; what is not said in the recipe counts as this. */
const DEFAULT_SEQUENCES = 256;

/** A quarter of the sequences at once. */
export const fewerSequences: Remedy = {
  name: 'fewer-sequences',
  causes: ['too-many-sequences-for-memory'],
  title: ({ recipe }) => `Serve ${fewer(recipe.sequences)} requests at once`,
  cost: ({ recipe }) => `more requests wait; ${recipe.sequences ?? DEFAULT_SEQUENCES} were wanted at once`,
  apply({ recipe }) {
    const to = fewer(recipe.sequences);
    return to === recipe.sequences ? undefined : [{ path: 'sequences', from: recipe.sequences, to }];
  },
};

function fewer(sequences: number | undefined): number {
  return Math.max(1, Math.floor((sequences ?? DEFAULT_SEQUENCES) / 4));
}
