import type { Recipe } from '../domain/recipe.ts';
import { recipesBeside, recipeBeside as resolveBeside } from '../files/recipe-beside.ts';
import { readRecipe } from '../files/recipe-file.ts';
import type { World } from './world.ts';

export type KnownRecipe = { readonly file: string; readonly recipe: string; readonly model: string };

/** The recipes that lie beside the cluster file, and below it. */
export function knownRecipes(world: Pick<World, 'clusterFile'>): readonly KnownRecipe[] {
  return recipesBeside(world.clusterFile);
}

/** Absolute path of a recipe that a client over the network names; a UserError for one that lies elsewhere. */
export function recipeBeside(world: Pick<World, 'clusterFile'>, name: string): string {
  return resolveBeside(world.clusterFile, name);
}

/** That recipe, with every default folded in. */
export function recipeAt(world: Pick<World, 'clusterFile'>, name: string): Recipe {
  return readRecipe(recipeBeside(world, name)).recipe;
}
