import type { Node } from '../domain/cluster.ts';
import type { NodeFacts } from '../domain/facts.ts';
import type { Plan } from '../domain/plan.ts';
import { type EngineName, editRecipe, type RecipeFile } from '../domain/recipe.ts';
import { chooseNodes } from '../files/choose-nodes.ts';
import { POLICY_FILE } from '../files/policy-file.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { whySkip } from '../planning/engine-choice.ts';
import { runningEdits } from '../planning/our-ranks.ts';
import { plan as decide } from '../planning/plan.ts';
import { allowedBeforehand } from './consent.ts';
import { failedBefore } from './failed-before.ts';
import { hostKeyError } from './host-key-error.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { provedFor } from './proved-before.ts';
import { remembered } from './remembered.ts';
import type { World } from './world.ts';

/** What `up` would do now, from what was just seen; pure but for its arguments. */
export function planFor(
  world: World,
  file: RecipeFile,
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
  replace: boolean,
  anew = false,
): Plan {
  const running = runningEdits(facts, file.digest);
  const engine =
    running?.engine ?? (anew ? file.recipe.engines[0] : choose(world, file, nodes, facts)) ?? 'sglang';
  const proved = running !== undefined || anew ? [] : provedFor(world, file.recipe, engine);
  const edits = running?.edits ?? proved.flatMap((one) => one.edits);
  return decide({
    cluster: world.cluster,
    nodes,
    recipe: editRecipe(file.recipe, edits),
    recipeDigest: file.digest,
    edits,
    engine,
    facts,
    sudo: Object.fromEntries(nodes.map((node) => [node.name, true])),
    replace,
    remembered: remembered(world),
  });
}

/** The first engine that is not known to fail here; the recipe's last where all are. */
function choose(
  world: World,
  { recipe }: RecipeFile,
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
): EngineName | undefined {
  const input = { nodes, facts, recipe, failedBefore: failedBefore(world) };
  return recipe.engines.find((engine) => whySkip(engine, input) === undefined) ?? recipe.engines.at(-1);
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
    allowedBeforehand(world, []); // a policy that is not in order is told before any look
    const facts = await look(world, nodes, file.recipe, { modelHeaders: true });
    for (const node of facts) {
      if (node.reached) continue;
      const error = hostKeyError(node.failure);
      if (error !== undefined) throw error;
    }
    const planned = planFor(world, file, nodes, facts, input.replace, input.anew);
    const blocked = planned.state === 'blocked';
    const asks = planned.phases.flatMap(({ steps }) => steps).filter((step) => step.needsConsent);
    const allowed = [...allowedBeforehand(world, asks)].map(([id, { line }]) => ({
      id,
      by: `${POLICY_FILE}, line ${line}`,
    }));
    return {
      report: { kind: 'plan', plan: planned, facts, ...(allowed.length > 0 ? { allowed } : {}) },
      exit: blocked
        ? planned.blockers.some((blocker) => blocker.userError)
          ? 2
          : 1
        : asks.length > 0
          ? 1
          : 0,
    };
  },
};
