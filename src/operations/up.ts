import { chooseNodes } from '../files/choose-nodes.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { bringUp } from './bring-up.ts';
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
    return inRun(
      world,
      { operation: 'up', nodes, recipe: file.recipe.recipe, recipeDigest: file.digest },
      (recorder, inside) =>
        bringUp(inside, recorder, file, nodes, {
          consent: input.consent,
          plan: input.plan,
          replace: input.replace,
          wait: input.wait,
        }),
      async () => owedOf(await look(world, nodes, undefined)),
    );
  },
};
