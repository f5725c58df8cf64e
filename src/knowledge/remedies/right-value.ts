import { argsOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';
import { flagValue, setArgs } from './set-args.ts';

/** Recipe keys from which a flag comes where it does not stand in args. */
const KEYS: Readonly<Record<string, string>> = {
  '--reasoning-parser': 'serve.reasoning',
  '--tool-call-parser': 'serve.tools',
};

/** Writes a flag's value as the engine does, where the engine names what it takes and one of these was meant. */
export const rightValue: Remedy = {
  name: 'right-value',
  causes: ['flag-misspelled'],
  title: ({ finding }) => `Write ${finding.values['meantValue']} as the value of ${finding.values['flag']}`,
  cost: () => 'nothing',
  apply({ recipe, engine, finding }) {
    const { flag, value, meantValue } = finding.values;
    if (flag === undefined || value === undefined || meantValue === undefined) return undefined;
    if (flagValue(argsOf(recipe, engine), flag) === value)
      return setArgs(recipe, engine, { [flag]: meantValue });
    const key = KEYS[flag];
    const stands = flag === '--reasoning-parser' ? recipe.serve.reasoning : recipe.serve.tools;
    return key === undefined || stands !== value ? undefined : [{ path: key, from: value, to: meantValue }];
  },
};
