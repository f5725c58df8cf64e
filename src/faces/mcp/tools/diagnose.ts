import { z } from 'zod';
import { foldAll } from '../../../domain/run-state.ts';
import { edit } from '../../../domain/run-words.ts';
import { aside } from '../../../operations/begin.ts';
import { findRun, hasLooked } from '../../../operations/past-run.ts';
import { findingOf } from '../findings.ts';
import { newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { finding, leftOut, runNumber } from './shapes.ts';

const MOST_FINDINGS = 6;

const input = z.strictObject({ run: runNumber });
const output = z.strictObject({
  run: z.string(),
  outcome: z.string(),
  findings: z.array(finding),
  remedies: z.array(z.string()).describe('what was tried, and whether it was proved'),
  left_out: leftOut,
});

/** Why a run failed: the cause, its node, the lines that show it, and what was tried. */
export const diagnoseTool: Tool<typeof input, typeof output> = {
  name: 'diagnose',
  title: 'Say why it failed',
  about:
    'The final findings of a run: cause, node at fault, quoted lines, consequences, advice; and the remedies that were tried. Changes nothing.',
  input,
  output,
  effect: 'reads',
  async run({ run }, { client, signal }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const found = findRun(world.journal, run, hasLooked);
    const state = foldAll(found.events);
    const final = found.events.flatMap((event) => (event.type === 'finding' && event.final ? [event] : []));
    const out = newLeftOut();
    // The last ones are what ended it.
    const shown = out.first(
      final.toReversed(),
      MOST_FINDINGS,
      'earlier findings',
      'show the run in a terminal',
    );
    const outcome = state.ended?.outcome ?? 'goes on, or was cut off';
    return {
      say:
        final.length === 0
          ? `Run ${found.run} has no final finding; it ended ${outcome}.`
          : `Run ${found.run} ended ${outcome}; last finding: ${final.at(-1)?.title}.`,
      data: {
        run: found.run,
        outcome,
        findings: shown.map((one) => findingOf(one, out)),
        remedies: state.attempts.flatMap(({ attempt, remedy }) =>
          remedy === undefined
            ? []
            : [
                `attempt ${attempt}: ${remedy.title}${remedy.edits.length > 0 ? ` (${remedy.edits.map(edit).join('; ')})` : ''}: ${remedy.state}`,
              ],
        ),
        left_out: [...out.said],
      },
    };
  },
};
