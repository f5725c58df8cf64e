import { z } from 'zod';
import { digestOf } from '../../../domain/digest.ts';
import { plural } from '../../../domain/units.ts';
import { aside, begin } from '../../../operations/begin.ts';
import { look } from '../../../operations/look.ts';
import { owedOf } from '../../../operations/owed.ts';
import { restore } from '../../../operations/restore.ts';
import { followRun } from '../follow-run.ts';
import type { Tool } from '../tool.ts';
import { digest, leftOut, owed } from './shapes.ts';

const input = z.strictObject({
  ids: z.array(z.string().max(64)).max(200).default([]).describe('what to give back; everything if left out'),
  plan: digest.optional().describe('digest that restore showed you for the same; without it, it only shows'),
});
const output = z.strictObject({
  done: z.boolean(),
  digest: z.string().optional().describe('hand this back as plan to have it done'),
  givesBack: owed,
  run: z.string().optional(),
  outcome: z.string().optional(),
  why: z.string().optional(),
  owed: owed.describe('what is owed still'),
  left_out: leftOut,
});

/** Gives back what was stopped; first shows what that is. */
export const restoreTool: Tool<typeof input, typeof output> = {
  name: 'restore',
  title: 'Give back what was stopped',
  about:
    'Starts again what was stopped to make room. The first call, without plan, only shows what would be given back and gives its digest; the second one, with it, does that.',
  input,
  output,
  effect: 'changes',
  async run({ ids, plan }, { client, signal, progress }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const owing = owedOf(await look(world, world.cluster.nodes, undefined)).map(({ node, id, title }) => ({
      node,
      id,
      title,
    }));
    const back = owing.filter(({ id }) => ids.length === 0 || ids.includes(id));
    const now = digestOf({ back: back.map(({ node, id }) => ({ node, id })), ids });
    const subject = `restore ${ids.join(',')}`;
    if (plan === undefined) {
      client.show(subject, now);
      return {
        say: `${plural(back.length, 'thing')} would be given back. Nothing was changed. Call restore again with plan ${now} to do it.`,
        data: { done: false, digest: now, givesBack: back, owed: owing, left_out: [] },
      };
    }
    client.mustChange();
    client.mustHaveSeen(subject, plan, 'call restore without plan first');
    client.mustHaveSeen(
      subject,
      plan === now ? plan : undefined,
      'what is owed has changed since; call restore without plan again',
    );
    const begun = begin(client.world(), restore, { ids }, { signal, face: 'through an agent' });
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
        givesBack: back,
        ...(run === undefined ? {} : { run }),
        ...(ended === undefined ? {} : { outcome: ended.outcome, why: ended.why }),
        owed: (ended?.owed ?? []).map(({ node, id, title }) => ({ node, id, title })),
        left_out: [],
      },
    };
  },
};
