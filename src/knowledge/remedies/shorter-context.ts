import { thousands } from '../../domain/units.ts';
import type { Remedy, RemedyInput } from './remedy.ts';

const STEP_TOKENS = 1024;

/** The longest context for which the engine says there is room, or that the model has, rounded down. */
export const shorterContext: Remedy = {
  name: 'shorter-context',
  causes: ['kv-cache-too-small-for-max-len', 'context-longer-than-model', 'memory-exhausted-rank-stopped'],
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

/** Where nothing says what there is room for, half of what was wanted. */
function tokens({ finding, recipe }: RemedyInput): number | undefined {
  const estimate =
    finding.cause === 'memory-exhausted-rank-stopped'
      ? (recipe.context ?? 0) / 2
      : Number(finding.values['estimate']);
  const rounded = Math.floor(estimate / STEP_TOKENS) * STEP_TOKENS;
  return rounded >= STEP_TOKENS ? rounded : undefined;
}
