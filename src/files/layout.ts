import type { Recipe } from '../domain/recipe.ts';

/** Why the layout cannot be spread over its nodes, and what would do; undefined when it can. */
export function layoutProblem({
  layout,
}: Recipe): { readonly what: string; readonly hint: string } | undefined {
  const { nodes, tensor, pipeline, data } = layout;
  const ranks = tensor * pipeline * data;
  if (ranks % nodes === 0) return undefined;
  return {
    what: `layout: tensor ${tensor} x pipeline ${pipeline} x data ${data} makes ${ranks} GPU ranks, which ${nodes} nodes cannot share evenly`,
    hint: `with one GPU a node write tensor: ${nodes}, or nodes: 1`,
  };
}
