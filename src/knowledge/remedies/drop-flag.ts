import { argsOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';

/** Leaves out a flag that the engine does not have, or writes it as the engine does. Only flags of the recipe's args. */
export const dropFlag: Remedy = {
  name: 'drop-flag',
  causes: ['flag-unknown-to-this-version', 'flag-of-other-engine', 'flag-misspelled'],
  title: ({ finding }) =>
    finding.values['meant']
      ? `Write ${finding.values['meant']} instead of ${finding.values['flag']}`
      : `Leave out the flag ${finding.values['flag']}`,
  cost: ({ finding }) =>
    finding.values['meant'] ? 'nothing' : `what ${finding.values['flag']} was meant to do is not done`,
  apply({ recipe, engine, finding }) {
    const args = argsOf(recipe, engine);
    const flag = finding.values['flag'];
    // A value the engine refuses, or a flag without one, is the user's to correct: only whole flags are dropped.
    if (flag === undefined || finding.values['words'] === undefined) return undefined;
    const to = without(args, flag, finding.values['meant']);
    return to === undefined ? undefined : [{ path: `args.${engine}`, from: args, to }];
  },
};

function without(
  args: readonly string[],
  flag: string,
  meant: string | undefined,
): readonly string[] | undefined {
  const at = args.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = args[at];
  if (word === undefined) return undefined;
  if (meant !== undefined)
    return args.map((other, index) => (index === at ? meant + word.slice(flag.length) : other));
  let end = at + 1;
  if (!word.includes('=')) while (end < args.length && isValue(args[end] ?? '')) end++;
  return [...args.slice(0, at), ...args.slice(end)];
}

/** Whether the word belongs to the flag before it: no flag itself, negative numbers aside. */
function isValue(word: string): boolean {
  return !word.startsWith('-') || /^-\d/.test(word);
}
