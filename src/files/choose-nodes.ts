import type { Cluster, Node } from '../domain/cluster.ts';
import type { Recipe } from '../domain/recipe.ts';
import { UserError } from '../domain/user-error.ts';
import { layoutProblem } from './layout.ts';
import { suggest } from './suggest.ts';

/**
 * The nodes that the recipe runs on, head first: those it names, else the first `layout.nodes` of the cluster.
 * Throws a UserError `bad-recipe-file` when they are too few, unknown, repeated, or cannot share the ranks evenly.
 */
export function chooseNodes(cluster: Cluster, recipe: Recipe): readonly Node[] {
  const problem = layoutProblem(recipe);
  if (problem !== undefined) throw refuse(recipe, problem.what, problem.hint);
  const wanted = recipe.layout.nodes;
  const names = recipe.nodes ?? cluster.nodes.slice(0, wanted).map((node) => node.name);
  if (recipe.nodes !== undefined && recipe.nodes.length !== wanted)
    throw refuse(
      recipe,
      `nodes names ${recipe.nodes.length}, and layout.nodes is ${wanted}`,
      'Make them agree.',
    );
  if (names.length < wanted)
    throw refuse(
      recipe,
      `it needs ${wanted} nodes, and ${cluster.file} has ${cluster.nodes.length}`,
      'Add nodes to the cluster file, or lower layout.nodes and layout.tensor.',
    );
  return names.map((name, index) => {
    if (names.indexOf(name) !== index)
      throw refuse(recipe, `nodes names ${name} twice`, 'Name each node once.');
    const node = cluster.nodes.find((other) => other.name === name);
    if (node !== undefined) return node;
    const known = cluster.nodes.map((other) => other.name);
    const near = suggest(name, known);
    throw refuse(
      recipe,
      `${cluster.file} has no node "${name}"`,
      near === undefined ? `Its nodes are ${known.join(', ')}.` : `Did you mean "${near}"?`,
    );
  });
}

function refuse(recipe: Recipe, what: string, hint: string): UserError {
  return new UserError('bad-recipe-file', `recipe ${recipe.recipe}: ${what}`, hint);
}
