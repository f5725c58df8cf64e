import { thousands } from '../../domain/units.ts';
import type { Remedy, RemedyInput } from './remedy.ts';

const STEP_TOKENS = 1024;

/** The longest context for which the engine says there is room, or that the model has, rounded down. */
export const shorterContext: Remedy = {
  name: 'shorter-context',
  causes: ['kv-cache-too-small-for-max-len', 'context-longer-than-model'],
  title: (input) => `Serve a context of ${thousands(tokens(input) ?? 0)} tokens`,
  cost: ({ recipe, finding }) =>
    `requests longer than that are refused; ${thousands(recipe.context ?? Number(finding.values['context'] ?? 0))} were wanted`,
  apply(input) {
    const to = tokens(input);
    const { recipe } = input;
    if (to === undefined || (recipe.context !== undefined && to >= recipe.context)) return undefined;
    return [{ path: 'context', from: recipe.context, to }];
  },
};

function tokens({ finding }: RemedyInput): number | undefined {
  const estimate = Number(finding.values['estimate']);
  const rounded = Math.floor(estimate / STEP_TOKENS) * STEP_TOKENS;
  return rounded >= STEP_TOKENS ? rounded : undefined;
}
