import { chooseNodes } from '../files/choose-nodes.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { check as judge } from '../planning/check.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { planFor } from './plan.ts';

/** `firstlight check [RECIPE]`: looks at every host and says what is in the way, with a remedy for each. */
export const check: Operation<typeof inputs.check> = {
  name: 'check',
  summary: 'look at the hosts and say what is in the way',
  effect: 'reads',
  input: inputs.check,
  async run(input, world) {
    const started = world.clock.now();
    const file = input.recipe === undefined ? undefined : readRecipe(input.recipe);
    const nodes = file === undefined ? world.cluster.nodes : chooseNodes(world.cluster, file.recipe);
    const facts = await look(world, nodes, file?.recipe, { modelHeaders: file !== undefined });
    const milliseconds = world.clock.now() - started;
    const planned =
      file === undefined || facts.some((node) => !node.reached)
        ? undefined
        : planFor(world, file, nodes, facts, false);
    const items = judge({ cluster: world.cluster, nodes, recipe: file?.recipe, plan: planned, facts });
    const badInput =
      planned?.blockers.some((blocker) => blocker.userError) === true ||
      facts.some((node) => !node.reached && node.failure.why.startsWith('host-key'));
    return {
      report: {
        kind: 'check',
        cluster: world.cluster.name,
        recipe: file?.recipe.recipe,
        milliseconds,
        facts,
        items,
        memory: planned?.memory ?? [],
      },
      exit: badInput ? 2 : items.some((item) => item.level === 'blocks') ? 1 : 0,
    };
  },
};
