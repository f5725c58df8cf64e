import { z } from 'zod';
import { type NodeFacts, valueIf } from '../../../domain/facts.ts';
import { plural } from '../../../domain/units.ts';
import { aside } from '../../../operations/begin.ts';
import { check } from '../../../operations/check.ts';
import { recipeBeside } from '../../../operations/recipes.ts';
import { inGib, type LeftOut, newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { leftOut, recipeName } from './shapes.ts';

const MOST_HOLDERS = 8;
const MOST_ITEMS = 30;

const input = z.strictObject({ recipe: recipeName.optional() });
const output = z.strictObject({
  cluster: z.string(),
  nodes: z.array(
    z.strictObject({
      node: z.string(),
      reached: z.boolean(),
      why: z.string().optional().describe('why it was not reached'),
      availableGib: z.number().optional().describe('absent: unknown'),
      totalGib: z.number().optional(),
      gpus: z.array(z.string()).optional(),
      holders: z
        .array(z.strictObject({ name: z.string(), kind: z.string(), user: z.string(), gib: z.number() }))
        .optional()
        .describe('who holds its memory, largest first'),
    }),
  ),
  inTheWay: z.array(
    z.strictObject({
      level: z.string(),
      topic: z.string(),
      node: z.string(),
      title: z.string(),
      remedy: z.string().optional(),
    }),
  ),
  left_out: leftOut,
});

/** Looks at every node, and says what is in the way. */
export const lookTool: Tool<typeof input, typeof output> = {
  name: 'look',
  title: 'Look at the nodes',
  about:
    'Looks at every node over SSH: memory, who holds it, GPUs, and what stands in the way of the recipe where one is named. Changes nothing. Call it first.',
  input,
  output,
  effect: 'reads',
  async run({ recipe }, { client, signal }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const path = recipe === undefined ? undefined : recipeBeside(world, recipe);
    const { report } = await check.run({ recipe: path }, world);
    if (report.kind !== 'check') throw new Error('check gave another report');
    const out = newLeftOut();
    const items = report.items.filter((item) => item.level !== 'fine');
    const blocks = items.filter((item) => item.level === 'blocks').length;
    return {
      say: `${plural(report.facts.length, 'node')} looked at, ${plural(blocks, 'thing')} in the way.`,
      data: {
        cluster: report.cluster,
        nodes: report.facts.map((seen) => nodeOf(seen, out)),
        inTheWay: out
          .first(items, MOST_ITEMS, 'things in the way', 'mend the first ones and look again')
          .map(({ level, topic, node, title, remedy }) => ({
            level,
            topic,
            node,
            title,
            ...(remedy === undefined ? {} : { remedy }),
          })),
        left_out: [...out.said],
      },
    };
  },
};

function nodeOf(seen: NodeFacts, out: LeftOut) {
  if (!seen.reached) return { node: seen.node, reached: false, why: seen.failure.sentence };
  const memory = valueIf(seen.memory);
  const gpus = valueIf(seen.gpus);
  const holders = valueIf(seen.holders)?.toSorted((a, b) => b.bytes - a.bytes);
  return {
    node: seen.node,
    reached: true,
    ...(memory === undefined
      ? {}
      : { availableGib: inGib(memory.availableBytes), totalGib: inGib(memory.totalBytes) }),
    ...(gpus === undefined ? {} : { gpus: gpus.map((gpu) => gpu.name) }),
    ...(holders === undefined
      ? {}
      : {
          holders: out
            .first(holders, MOST_HOLDERS, `holders on ${seen.node}`, 'they hold less than those shown')
            .map(({ name, owner, user, bytes }) => ({ name, kind: owner.kind, user, gib: inGib(bytes) })),
        }),
  };
}
