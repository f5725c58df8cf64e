import { z } from 'zod';
import { aside } from '../../../operations/begin.ts';
import { logs } from '../../../operations/logs.ts';
import { newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { leftOut, runNumber, stage } from './shapes.ts';

const MOST_CHARACTERS = 12_000;
const LONGEST_LINE = 400;

const input = z.strictObject({
  run: runNumber,
  rank: z.number().int().min(0).optional().describe('one rank only'),
  stage: stage.optional().describe('one stage only'),
  attempt: z.number().int().min(1).optional().describe('the last if left out'),
  line: z.number().int().min(1).optional().describe('the lines around this one of that rank (needs rank)'),
  tail: z.number().int().min(1).max(200).default(40).describe('the last so many lines'),
});
const output = z.strictObject({
  run: z.string(),
  attempt: z.number().int(),
  lines: z.array(z.string()).describe('rank, line number, stage, text'),
  left_out: leftOut,
});

/** Lines of the merged log, bounded. */
export const logsTool: Tool<typeof input, typeof output> = {
  name: 'logs',
  title: 'Read the logs',
  about:
    'The last lines of all ranks as one stream in time order, by rank and stage. At most 200 lines. Changes nothing.',
  input,
  output,
  effect: 'reads',
  async run({ run, rank, stage: wanted, attempt, line, tail }, { client, signal }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const { report } = await logs.run(
      { run, rank, stage: wanted, attempt, line, tail: undefined, follow: false },
      world,
    );
    if (report.kind !== 'logs') throw new Error('logs gave another report');
    const out = newLeftOut();
    const kept = report.lines.slice(-tail);
    if (kept.length < report.lines.length)
      out.said.push(
        `${report.lines.length - kept.length} earlier lines; name a stage, a rank with line, or a larger tail`,
      );
    let room = MOST_CHARACTERS;
    const lines: string[] = [];
    for (const one of kept.toReversed()) {
      const text = `${one.rank} ${one.line} ${one.stage} ${one.text.slice(0, LONGEST_LINE)}`;
      room -= text.length;
      if (room < 0) break;
      lines.unshift(text);
    }
    if (lines.length < kept.length)
      out.said.push(
        `${kept.length - lines.length} earlier lines that did not fit; take a smaller tail by rank`,
      );
    const long = kept.filter((one) => one.text.length > LONGEST_LINE).length;
    if (long > 0) out.said.push(`the ends of ${long} lines over ${LONGEST_LINE} characters`);
    return {
      say: `${lines.length} lines of run ${report.run}, attempt ${report.attempt}.`,
      data: { run: report.run, attempt: report.attempt, lines, left_out: [...out.said] },
    };
  },
};
