import { z } from 'zod';
import { digestOf } from '../../../domain/digest.ts';
import type { NodeFacts } from '../../../domain/facts.ts';
import { plural } from '../../../domain/units.ts';
import { aside, begin } from '../../../operations/begin.ts';
import { down } from '../../../operations/down.ts';
import { look } from '../../../operations/look.ts';
import { owedOf } from '../../../operations/owed.ts';
import { recipeBeside } from '../../../operations/recipes.ts';
import { servicesOnNodes } from '../../../operations/services-on-nodes.ts';
import { followRun } from '../follow-run.ts';
import type { Tool } from '../tool.ts';
import { digest, leftOut, owed, recipeName } from './shapes.ts';

const input = z.strictObject({
  recipe: recipeName.optional().describe('stop this recipe only; all of ours if left out'),
  restore: z.boolean().default(false).describe('then give back what was stopped for it'),
  plan: digest.optional().describe('digest that down showed you for the same; without it, it only shows'),
});
const output = z.strictObject({
  done: z.boolean(),
  digest: z.string().optional().describe('hand this back as plan to have it done'),
  stops: z.array(z.string()),
  givesBack: owed,
  run: z.string().optional(),
  outcome: z.string().optional(),
  why: z.string().optional(),
  owed,
  left_out: leftOut,
});

/** Stops what firstlight started; first shows what that is. */
export const downTool: Tool<typeof input, typeof output> = {
  name: 'down',
  title: 'Stop what firstlight started',
  about:
    'Stops the ranks that firstlight started, nothing else; with restore also gives back what was stopped for them. The first call, without plan, only shows what would be stopped and gives its digest; the second one, with it, does that.',
  input,
  output,
  effect: 'changes',
  async run({ recipe, restore, plan }, { client, signal, progress }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const path = recipe === undefined ? undefined : recipeBeside(world, recipe);
    const facts = await look(world, world.cluster.nodes, undefined);
    const shown = whatStops(facts, path, restore);
    const subject = `down ${path ?? 'all'} ${restore}`;
    if (plan === undefined) {
      client.show(subject, shown.digest);
      return {
        say: `${plural(shown.stops.length, 'rank')} would be stopped. Nothing was changed. Call down again with plan ${shown.digest} to do it.`,
        data: { done: false, ...shown, owed: [...shown.owed], left_out: [] },
      };
    }
    client.mustChange();
    client.mustHaveSeen(subject, plan, 'call down without plan first');
    client.mustHaveSeen(
      subject,
      plan === shown.digest ? plan : undefined,
      'what runs has changed since; call down without plan again',
    );
    const begun = begin(
      client.world(),
      down,
      { recipe: path, restore },
      { signal, face: 'through an agent' },
    );
    const { run, answer } = await followRun(world, begun, {
      work: client.work,
      seconds: 1800,
      tell: progress,
    });
    const ended = answer?.report.kind === 'run' ? answer.report.ended : undefined;
    return {
      say: ended?.why ?? 'it goes on',
      failed: ended !== undefined && ended.exit !== 0,
      data: {
        done: answer !== undefined,
        stops: [...shown.stops],
        givesBack: [...shown.givesBack],
        ...(run === undefined ? {} : { run }),
        ...(ended === undefined ? {} : { outcome: ended.outcome, why: ended.why }),
        owed: (ended?.owed ?? []).map(({ node, id, title }) => ({ node, id, title })),
        left_out: [],
      },
    };
  },
};

/** What `down` would do by this look, and the digest that stands for exactly that. */
function whatStops(facts: readonly NodeFacts[], path: string | undefined, restore: boolean) {
  const ranks = servicesOnNodes(facts).flatMap((job) =>
    job.ranks.filter(({ record }) => record.state !== 'ended'),
  );
  const owing = owedOf(facts).map(({ node, id, title }) => ({ node, id, title }));
  const unseen = facts.filter((seen) => !seen.reached).map((seen) => seen.node);
  return {
    digest: digestOf({
      path,
      ranks: ranks.map(({ node, record }) => ({ node, name: record.name, run: record.run })),
      owed: restore ? owing.map(({ node, id }) => ({ node, id })) : [],
      unseen,
    }),
    stops: ranks.map(
      ({ node, record }) => `${record.name} on ${node}, ${record.state}, of run ${record.run}`,
    ),
    givesBack: restore ? owing : [],
    owed: owing,
  };
}
