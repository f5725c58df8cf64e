import type { Recipe, RecipeEdit } from '../../domain/recipe.ts';

/** Edits that give every rank these variables; undefined where all of them stand so already. */
export function setEnv(
  { env }: Recipe,
  wanted: Readonly<Record<string, string>>,
): readonly RecipeEdit[] | undefined {
  const edits = Object.entries(wanted)
    .filter(([name, value]) => env[name] !== value)
    .map(([name, value]) => ({ path: `env.${name}`, from: env[name], to: value }));
  return edits.length === 0 ? undefined : edits;
}

/** Edits that take these variables away again; undefined where none of them is set. */
export function dropEnv({ env }: Recipe, names: readonly string[]): readonly RecipeEdit[] | undefined {
  const edits = names
    .filter((name) => name in env)
    .map((name) => ({ path: `env.${name}`, from: env[name], to: undefined }));
  return edits.length === 0 ? undefined : edits;
}
