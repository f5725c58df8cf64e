import { z } from 'zod';
import { valueIf } from '../../../domain/facts.ts';
import { foldAll } from '../../../domain/run-state.ts';
import { UserError } from '../../../domain/user-error.ts';
import { aside } from '../../../operations/begin.ts';
import { findRun, hasRanks } from '../../../operations/past-run.ts';
import { inGib, newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { leftOut, runNumber } from './shapes.ts';

const AROUND = 4;
const LAST_LINES = 5;
const LONGEST_LINE = 300;
const MOST_QUOTES = 4;

const input = z.strictObject({
  run: runNumber,
  attempt: z.number().int().min(1).optional().describe('the last with a finding if left out'),
});
const output = z.strictObject({
  run: z.string(),
  attempt: z.number().int(),
  engine: z.string(),
  finding: z.string().optional(),
  quotes: z.array(z.strictObject({ place: z.string(), lines: z.array(z.string()) })),
  ranks: z.array(
    z.strictObject({
      rank: z.number().int(),
      node: z.string(),
      stage: z.string(),
      percent: z.number().optional(),
      ended: z.string(),
      lastLines: z.array(z.string()),
    }),
  ),
  memory: z.array(z.string()).describe('what was available on each node at the last look of the run'),
  left_out: leftOut,
});

/** What a finding rests on: the quoted lines with their surroundings, and how each rank ended. */
export const evidenceTool: Tool<typeof input, typeof output> = {
  name: 'evidence',
  title: 'Show the evidence',
  about:
    'For one attempt of a run: the lines that a finding quotes with those around them, and of each rank its stage, its end and its last lines. Changes nothing.',
  input,
  output,
  effect: 'reads',
  async run({ run, attempt: wanted }, { client, signal }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const found = findRun(world.journal, run, hasRanks);
    const state = foldAll(found.events);
    const attempt =
      wanted === undefined
        ? (state.attempts.findLast((one) => one.finding !== undefined) ?? state.attempts.at(-1))
        : state.attempts.find((one) => one.attempt === wanted);
    if (attempt === undefined)
      throw new UserError(
        'bad-input',
        wanted === undefined
          ? `run ${found.run} launched nothing`
          : `run ${found.run} has no attempt ${wanted}`,
        `it has ${state.attempts.length} attempts`,
      );
    const out = newLeftOut();
    const read = (rank: number) => world.journal.readLog(found.run, attempt.attempt, rank);
    const shown = (line: { readonly line: number; readonly text: string }): string =>
      `${line.line} ${line.text.slice(0, LONGEST_LINE)}`;
    const quotes = out.first(attempt.finding?.quotes ?? [], MOST_QUOTES, 'quotes', 'logs shows them by line');
    return {
      say: attempt.finding?.title ?? `Attempt ${attempt.attempt} of run ${found.run} has no finding.`,
      data: {
        run: found.run,
        attempt: attempt.attempt,
        engine: attempt.engine,
        ...(attempt.finding === undefined ? {} : { finding: attempt.finding.title }),
        quotes: quotes.map((quote) => ({
          place: `${quote.node} rank ${quote.rank} line ${quote.line}`,
          lines: read(quote.rank)
            .filter((line) => Math.abs(line.line - quote.line) <= AROUND)
            .map(shown),
        })),
        ranks: attempt.ranks.map((rank) => ({
          rank: rank.rank,
          node: rank.node,
          stage: rank.stage,
          ...(rank.percent === undefined ? {} : { percent: rank.percent }),
          ended:
            rank.ended === undefined
              ? 'not ended'
              : `${rank.ended.requested ? 'stopped by us' : 'by itself'}, ${rank.ended.code === undefined ? 'exit code unknown' : `exit ${rank.ended.code}`}`,
          lastLines: read(rank.rank).slice(-LAST_LINES).map(shown),
        })),
        memory: state.facts.map((seen) => {
          const memory = seen.reached ? valueIf(seen.memory) : undefined;
          return memory === undefined
            ? `${seen.node}: unknown`
            : `${seen.node}: ${inGib(memory.availableBytes)} of ${inGib(memory.totalBytes)} GiB available`;
        }),
        left_out: [...out.said, 'all other lines; logs shows them by rank, stage and line'],
      },
    };
  },
};
