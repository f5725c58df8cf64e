import { z } from 'zod';
import { digestOf } from '../../../domain/digest.ts';
import { plural } from '../../../domain/units.ts';
import { aside } from '../../../operations/begin.ts';
import { look } from '../../../operations/look.ts';
import { owedOf } from '../../../operations/owed.ts';
import { restore } from '../../../operations/restore.ts';
import { shownFirst, shownPlan, showOrDo } from '../shown-first.ts';
import type { Tool } from '../tool.ts';

const input = z.strictObject({
  ids: z.array(z.string().max(64)).max(200).default([]).describe('what to give back; everything if left out'),
  plan: shownPlan,
});
const output = z.strictObject(shownFirst);

/** Gives back what was stopped; first shows what that is. */
export const restoreTool: Tool<typeof input, typeof output> = {
  name: 'restore',
  title: 'Give back what was stopped',
  about:
    'Starts again what was stopped to make room. The first call, without plan, only shows what would be given back and gives its digest; the second one, with it, does that.',
  input,
  output,
  effect: 'changes',
  async run({ ids, plan }, work) {
    const world = aside(work.client.world(), { signal: work.signal, face: 'through an agent' });
    const owed = owedOf(await look(world, world.cluster.nodes, undefined));
    const givesBack = owed.filter(({ id }) => ids.length === 0 || ids.includes(id));
    return showOrDo(work, {
      subject: `restore ${ids.join(',')}`,
      plan,
      shown: {
        digest: digestOf({ back: givesBack.map(({ node, id }) => ({ node, id })), ids }),
        would: `${plural(givesBack.length, 'thing')} would be given back`,
        owed,
        data: { givesBack },
      },
      operation: restore,
      input: { ids },
    });
  },
};
