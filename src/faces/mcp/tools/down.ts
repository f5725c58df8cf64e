import { z } from 'zod';
import { digestOf } from '../../../domain/digest.ts';
import type { NodeFacts } from '../../../domain/facts.ts';
import { plural } from '../../../domain/units.ts';
import { aside } from '../../../operations/begin.ts';
import { down } from '../../../operations/down.ts';
import { look } from '../../../operations/look.ts';
import { owedOf } from '../../../operations/owed.ts';
import { recipeBeside } from '../../../operations/recipes.ts';
import { servicesOnNodes } from '../../../operations/services-on-nodes.ts';
import { shownFirst, shownPlan, showOrDo } from '../shown-first.ts';
import type { Tool } from '../tool.ts';
import { recipeName } from './shapes.ts';

const input = z.strictObject({
  recipe: recipeName.optional().describe('stop this recipe only; all of ours if left out'),
  restore: z.boolean().default(false).describe('then give back what was stopped for it'),
  plan: shownPlan,
});
const output = z.strictObject({ ...shownFirst, stops: z.array(z.string()) });

/** Stops what firstlight started; first shows what that is. */
export const downTool: Tool<typeof input, typeof output> = {
  name: 'down',
  title: 'Stop what firstlight started',
  about:
    'Stops the ranks that firstlight started, nothing else; with restore also gives back what was stopped for them. The first call, without plan, only shows what would be stopped and gives its digest; the second one, with it, does that.',
  input,
  output,
  effect: 'changes',
  async run({ recipe, restore, plan }, work) {
    const world = aside(work.client.world(), { signal: work.signal, face: 'through an agent' });
    const path = recipe === undefined ? undefined : recipeBeside(world, recipe);
    const facts = await look(world, world.cluster.nodes, undefined);
    return showOrDo(work, {
      subject: `down ${path ?? 'all'} ${restore}`,
      plan,
      shown: whatStops(facts, path, restore),
      operation: down,
      input: { recipe: path, restore },
    });
  },
};

/** What `down` would do by this look, and the digest that stands for exactly that. */
function whatStops(facts: readonly NodeFacts[], path: string | undefined, restore: boolean) {
  const ranks = servicesOnNodes(facts).flatMap((job) =>
    job.ranks.filter(({ record }) => record.state !== 'ended'),
  );
  const owed = owedOf(facts);
  const unseen = facts.filter((seen) => !seen.reached).map((seen) => seen.node);
  return {
    digest: digestOf({
      path,
      ranks: ranks.map(({ node, record }) => ({ node, name: record.name, run: record.run })),
      owed: restore ? owed.map(({ node, id }) => ({ node, id })) : [],
      unseen,
    }),
    would: `${plural(ranks.length, 'rank')} would be stopped`,
    owed,
    data: {
      stops: ranks.map(
        ({ node, record }) => `${record.name} on ${node}, ${record.state}, of run ${record.run}`,
      ),
      givesBack: restore ? [...owed] : [],
    },
  };
}
