import type { Node } from '../domain/cluster.ts';
import type { NodeFacts } from '../domain/facts.ts';
import type { Plan } from '../domain/plan.ts';
import { editRecipe, type RecipeFile } from '../domain/recipe.ts';
import { chooseNodes } from '../files/choose-nodes.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { runningEdits } from '../planning/our-ranks.ts';
import { plan as decide } from '../planning/plan.ts';
import { hostKeyError } from './host-key-error.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { remembered } from './remembered.ts';
import type { World } from './world.ts';

/** What `up` would do now, from what was just seen; pure but for its arguments. */
export function planFor(
  world: World,
  file: RecipeFile,
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
  replace: boolean,
): Plan {
  const running = runningEdits(facts, file.digest);
  const edits = running?.edits ?? [];
  return decide({
    cluster: world.cluster,
    nodes,
    recipe: editRecipe(file.recipe, edits),
    recipeDigest: file.digest,
    edits,
    engine: running?.engine ?? file.recipe.engines[0] ?? 'sglang',
    facts,
    sudo: Object.fromEntries(nodes.map((node) => [node.name, true])),
    replace,
    remembered: remembered(world),
  });
}

/** `firstlight plan RECIPE`: the dry run: probe and plan without apply. */
export const planOperation: Operation<typeof inputs.plan> = {
  name: 'plan',
  summary: 'say what up would do, step by step, and whether the model fits',
  effect: 'reads',
  input: inputs.plan,
  async run(input, world) {
    const file = readRecipe(input.recipe);
    const nodes = chooseNodes(world.cluster, file.recipe);
    const facts = await look(world, nodes, file.recipe, { modelHeaders: true });
    for (const node of facts) {
      if (node.reached) continue;
      const error = hostKeyError(node.failure);
      if (error !== undefined) throw error;
    }
    const planned = planFor(world, file, nodes, facts, input.replace);
    const blocked = planned.state === 'blocked';
    const inTheWay = planned.phases.some((phase) => phase.steps.some((step) => step.needsConsent));
    return {
      report: { kind: 'plan', plan: planned, facts },
      exit: blocked ? (planned.blockers.some((blocker) => blocker.userError) ? 2 : 1) : inTheWay ? 1 : 0,
    };
  },
};
