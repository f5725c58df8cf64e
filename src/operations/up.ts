import { chooseNodes } from '../files/choose-nodes.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { apiKeyFrom } from './api-key.ts';
import { bringUp } from './bring-up.ts';
import { allowedBeforehand } from './consent.ts';
import { inRun } from './in-run.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { owedOf } from './owed.ts';

/** `firstlight up RECIPE`: from unknown hosts to a verified answer, or to a finding. */
export const up: Operation<typeof inputs.up> = {
  name: 'up',
  summary: 'bring the model up, and look whether it answers',
  effect: 'changes',
  input: inputs.up,
  async run(input, world) {
    const file = readRecipe(input.recipe);
    const nodes = chooseNodes(world.cluster, file.recipe);
    allowedBeforehand(world, []); // a policy that is not in order is told before any host is touched
    apiKeyFrom(world, file.recipe.serve.apiKey?.env);
    return inRun(
      world,
      { operation: 'up', nodes, recipe: file.recipe.recipe, recipeDigest: file.digest },
      (recorder, inside) => bringUp({ world: inside, recorder, file, nodes, input }),
      async (now) => owedOf(await look(now, nodes, undefined)),
    );
  },
};
