import { z } from 'zod';
import { nowLine } from '../../../domain/now-line.ts';
import { foldAll } from '../../../domain/run-state.ts';
import { aside } from '../../../operations/begin.ts';
import { status } from '../../../operations/status.ts';
import { newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { leftOut, owed } from './shapes.ts';

const MOST_OWED = 30;

const input = z.strictObject({});
const output = z.strictObject({
  cluster: z.string(),
  services: z.array(
    z.strictObject({
      recipe: z.string(),
      engine: z.string(),
      run: z.string(),
      serving: z.boolean(),
      why: z.array(z.string()).optional().describe('what keeps it from serving, and what to do'),
      since: z.string().optional(),
      head: z.string(),
      port: z.number().optional(),
      ranks: z.array(z.string()),
    }),
  ),
  newestRun: z
    .strictObject({
      run: z.string(),
      operation: z.string(),
      now: z.string(),
      next: z.string(),
      goesOn: z.boolean().describe('no end is journaled: it works, or was cut off'),
      waitsForPerson: z.array(z.string()).describe('ids of steps that a person is asked about'),
    })
    .optional(),
  busy: z.array(z.string()).describe('who works on which nodes now'),
  unreached: z.array(z.string()),
  owed,
  left_out: leftOut,
});

/** What serves now, what goes on, and what is owed. */
export const statusTool: Tool<typeof input, typeof output> = {
  name: 'status',
  title: 'What serves now',
  about:
    'Looks at the nodes and says what serves, whether it answers, how the newest run stands, who works there, and what was stopped and is not given back. Changes nothing.',
  input,
  output,
  effect: 'reads',
  async run(_input, { client, signal }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const { report } = await status.run({}, world);
    if (report.kind !== 'status') throw new Error('status gave another report');
    const newest = world.journal.latest();
    const state = newest === undefined ? undefined : foldAll(world.journal.read(newest));
    const now = state === undefined ? undefined : nowLine(state, world.clock.now());
    const out = newLeftOut();
    const serving = report.services.filter((service) => service.serving);
    return {
      say:
        serving.length > 0
          ? `${serving.map(({ recipe, head }) => `${recipe} serves, its head on ${head}`).join('; ')}.`
          : `Nothing of ours serves. ${report.services
              .flatMap(({ why }) => why ?? [])
              .map(({ title }) => title)
              .join(' ')}`.trim(),
      data: {
        cluster: report.cluster,
        services: report.services.map((service) => ({
          recipe: service.recipe,
          engine: service.engine,
          run: service.run,
          serving: service.serving,
          ...(service.why === undefined
            ? {}
            : { why: service.why.map(({ title, advice }) => [title, ...advice].join(' ')) }),
          ...(service.since === undefined ? {} : { since: service.since }),
          head: service.head,
          ...(service.port === undefined ? {} : { port: service.port }),
          ranks: service.ranks.map(
            ({ rank, node, state: is, text }) => `rank ${rank} on ${node}: ${is}, ${text}`,
          ),
        })),
        ...(state === undefined || now === undefined || newest === undefined
          ? {}
          : {
              newestRun: {
                run: newest,
                operation: state.operation ?? 'unknown',
                now: `${now.glyph} ${now.sentence}`.trim(),
                next: now.next,
                goesOn: state.ended === undefined,
                waitsForPerson: (state.asked?.steps ?? []).map((step) => step.id),
              },
            }),
        busy: (report.busy ?? []).map(
          ({ nodes, owner, run, since }) => `${owner} on ${nodes.join(', ')} since ${since} (run ${run})`,
        ),
        unreached: report.unreached.map(({ node, why }) => `${node}: ${why}`),
        owed: out
          .first(report.owed, MOST_OWED, 'things owed', 'firstlight status shows all')
          .map(({ node, id, title }) => ({ node, id, title })),
        left_out: [...out.said],
      },
    };
  },
};
