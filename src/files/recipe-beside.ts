import { readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { UserError } from '../domain/user-error.ts';
import { readRecipe } from './recipe-file.ts';

const MOST_FILES = 200;
const HINT = 'Put the recipe beside the cluster file, as a .yaml file, and name it as from there.';

/**
 * Absolute path of a recipe by the name that a client gave, which is no person at this machine: a .yaml file in the
 * cluster file's folder or below it, links followed. Throws a UserError `bad-input` for anything else, and says the
 * same whether such a file exists or not.
 */
export function recipeBeside(clusterFile: string, name: string): string {
  const folder = real(dirname(clusterFile));
  if (name.includes('\0') || !/\.ya?ml$/i.test(name)) throw refused(name);
  const path = resolve(folder ?? dirname(clusterFile), name);
  const found = real(path) ?? path;
  if (folder === undefined || !isInside(folder, found) || !/\.ya?ml$/i.test(found)) throw refused(name);
  return path;
}

/** Recipes in the cluster file's folder and one below it, sorted; files that are none are passed over. */
export function recipesBeside(
  clusterFile: string,
): readonly { readonly file: string; readonly recipe: string; readonly model: string }[] {
  const folder = dirname(clusterFile);
  const names = list(folder).flatMap((name) =>
    isFolder(join(folder, name)) ? list(join(folder, name)).map((inner) => join(name, inner)) : [name],
  );
  return names
    .filter((name) => /\.ya?ml$/i.test(name) && resolve(folder, name) !== resolve(clusterFile))
    .slice(0, MOST_FILES)
    .sort()
    .flatMap((name) => {
      try {
        const { recipe } = readRecipe(recipeBeside(clusterFile, name));
        return [{ file: name, recipe: recipe.recipe, model: recipe.model }];
      } catch (error) {
        // Other YAML files lie there too: policy.yaml, compose files.
        if (error instanceof UserError) return [];
        throw error;
      }
    });
}

function refused(name: string): UserError {
  return new UserError(
    'bad-input',
    `${JSON.stringify(name.slice(0, 200))} is no recipe beside the cluster file`,
    HINT,
  );
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function real(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // It does not exist, or its folder may not be read.
    return undefined;
  }
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => !name.startsWith('.') && name !== 'node_modules');
  } catch {
    // No folder, or none that may be read: there are no recipes in it.
    return [];
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // A dangling link.
    return false;
  }
}
