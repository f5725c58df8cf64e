import { resolve } from 'node:path';
import { digestOf } from '../domain/digest.ts';
import { imageOf, type Recipe, type RecipeFile, recipeSchema } from '../domain/recipe.ts';
import { explain } from './explain.ts';
import { layoutProblem } from './layout.ts';
import { otherFile } from './other-file.ts';
import { readText } from './read-text.ts';
import { type Problem, parseYaml, refusal, type YamlFile } from './yaml-file.ts';

const CODE = 'bad-recipe-file';
const HINT = 'Mend the file and ask again; docs/files.md shows every key.';

/** The recipe file with every default folded in. Throws a UserError `bad-recipe-file` with file, line and column. */
export function readRecipe(path: string): RecipeFile {
  const text = readText(path, {
    code: CODE,
    what: 'recipe',
    absent: 'Name the file of the recipe; docs/files.md has one to begin with.',
  });
  return parseRecipeText(text, path);
}

/** The same from text; `file` need not exist. */
export function parseRecipeText(text: string, file: string): RecipeFile {
  const yaml = parseYaml(text, file, CODE);
  const result = recipeSchema.safeParse(yaml.value);
  if (!result.success)
    throw (
      otherFile('recipe', yaml.value, file, CODE) ??
      refusal(CODE, file, explain('recipe', yaml, result.error.issues), HINT)
    );
  const recipe = result.data;
  const problems = [...missingImages(recipe, yaml), ...wrongNodes(recipe, yaml)];
  const layout = layoutProblem(recipe);
  if (layout !== undefined) problems.push(yaml.problem(['layout'], `${layout.what}; ${layout.hint}`));
  if (problems.length > 0) throw refusal(CODE, file, problems, HINT);
  return { file: resolve(file), recipe, digest: digestOf(recipe) };
}

function missingImages(recipe: Recipe, yaml: YamlFile): readonly Problem[] {
  if (recipe.run.in === 'process') return [];
  return recipe.engines
    .filter((engine) => imageOf(recipe, engine) === undefined)
    .map((engine) => {
      const words = `run.image has no image for ${engine}; add "${engine}: IMAGE", or take ${engine} out of engines`;
      return yaml.problem(['run', 'image'], words, 'key');
    });
}

function wrongNodes({ nodes, layout }: Recipe, yaml: YamlFile): readonly Problem[] {
  if (nodes === undefined) return [];
  const problems = nodes.flatMap((name, index) =>
    nodes.indexOf(name) === index ? [] : [yaml.problem(['nodes', index], `the node "${name}" stands twice`)],
  );
  if (nodes.length !== layout.nodes)
    problems.push(
      yaml.problem(['nodes'], `nodes names ${nodes.length}, and layout.nodes is ${layout.nodes}`),
    );
  return problems;
}
