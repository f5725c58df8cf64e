import { argsOf, type EngineName, type Recipe, type RecipeEdit } from '../../domain/recipe.ts';

/** What an engine's arguments shall become: flags with a value, flags alone (true), and flags to leave out (undefined). */
export type Wanted = Readonly<Record<string, string | true | undefined>>;

/** One edit that brings the engine's arguments there; undefined where they stand so already. */
export function setArgs(
  recipe: Recipe,
  engine: EngineName,
  wanted: Wanted,
): readonly RecipeEdit[] | undefined {
  const args = argsOf(recipe, engine);
  const kept = withoutFlags(args, (flag) => flag in wanted);
  const added = Object.entries(wanted).flatMap(([flag, value]) =>
    value === undefined ? [] : value === true ? [flag] : [flag, value],
  );
  const stands = Object.entries(wanted).every(([flag, value]) => flagValue(args, flag) === value);
  return stands ? undefined : [{ path: `args.${engine}`, from: args, to: [...kept, ...added] }];
}

/** The arguments without these flags and their values. */
export function withoutFlags(args: readonly string[], drop: (flag: string) => boolean): readonly string[] {
  const kept: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? '';
    if (!word.startsWith('-') || !drop(word.split('=')[0] ?? word)) {
      kept.push(word);
      continue;
    }
    if (word.includes('=')) continue;
    while (at + 1 < args.length && isValue(args[at + 1] ?? '')) at++;
  }
  return kept;
}

/** The value of a flag in these arguments: true where it stands alone, undefined where it does not stand at all. */
export function flagValue(args: readonly string[], flag: string): string | true | undefined {
  const at = args.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = args[at];
  if (word === undefined) return undefined;
  if (word.includes('=')) return word.slice(flag.length + 1);
  const next = args[at + 1];
  return next !== undefined && isValue(next) ? next : true;
}

/** Whether the word belongs to the flag before it: no flag itself, negative numbers aside. */
function isValue(word: string): boolean {
  return !word.startsWith('-') || /^-\d/.test(word);
}
