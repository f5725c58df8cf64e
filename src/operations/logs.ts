import { STAGES, type Stage } from '../domain/finding.ts';
import type { LogsReport } from '../domain/report.ts';
import { foldAll } from '../domain/run-state.ts';
import { UserError } from '../domain/user-error.ts';
import { catchUp } from './adopted-logs.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { findRun, hasRanks, isAdoption } from './past-run.ts';
import type { World } from './world.ts';

type Line = LogsReport['lines'][number];
type Filter = {
  readonly rank: number | undefined;
  readonly stage: Stage | undefined;
  readonly attempt: number | undefined;
};

/** `firstlight logs [RUN]`: the logs of all ranks as one stream in time order, by rank and stage. */
export const logs: Operation<typeof inputs.logs> = {
  name: 'logs',
  summary: 'show the logs of all ranks as one stream',
  effect: 'reads',
  input: inputs.logs,
  async run(input, world) {
    const stage = STAGES.find((name) => name === input.stage);
    if (input.stage !== undefined && stage === undefined)
      throw new UserError(
        'bad-input',
        `there is no stage ${input.stage}`,
        `stages are: ${STAGES.join(', ')}`,
      );
    if (input.line !== undefined && input.rank === undefined)
      throw new UserError('bad-input', '--line needs --rank', 'firstlight logs --rank 1 --line 1204');
    const found = findRun(world.journal, input.run, hasRanks);
    const adopted = isAdoption(found.events);
    if (adopted) await catchUp(world, found.run);
    const filter = { rank: input.rank, stage, attempt: input.attempt };
    let { attempt, lines } = readLines(world, found.run, filter);
    if (input.line !== undefined) {
      const wanted = input.line;
      lines = lines.filter((line) => Math.abs(line.line - wanted) <= 10);
    }
    if (input.tail !== undefined) lines = lines.slice(-input.tail);
    if (input.follow) {
      const shown = new Set<string>();
      for (;;) {
        const fresh = lines.filter((line) => !shown.has(`${line.rank}:${line.line}`));
        for (const line of fresh) {
          shown.add(`${line.rank}:${line.line}`);
          world.live({ kind: 'lines', rank: line.rank, node: line.node, lines: [line.text] });
        }
        if (world.signal.aborted) break;
        if (!adopted && foldAll(world.journal.read(found.run)).ended !== undefined) break;
        await world.clock.wait(adopted ? 2000 : 300, world.signal).catch(() => undefined); // read at the top
        if (adopted) await catchUp(world, found.run).catch(() => undefined); // what cannot be read now comes later
        lines = readLines(world, found.run, { ...filter, attempt }).lines;
      }
      lines = [];
    }
    return { report: { kind: 'logs', run: found.run, attempt, lines }, exit: 0 };
  },
};

function readLines(world: World, run: string, filter: Filter): { attempt: number; lines: readonly Line[] } {
  const events = world.journal.read(run);
  const state = foldAll(events);
  const last = state.attempts.at(-1)?.attempt ?? 0;
  const attempt = filter.attempt ?? last;
  const known = state.attempts.find((candidate) => candidate.attempt === attempt);
  if (known === undefined && last > 0)
    throw new UserError('bad-input', `run ${run} has no attempt ${attempt}`, `it has 1 to ${last}`);
  const all = known?.ranks ?? [];
  const ranks = all.filter((rank) => filter.rank === undefined || rank.rank === filter.rank);
  if (ranks.length === 0 && all.length > 0)
    throw new UserError(
      'bad-input',
      `run ${run} has no rank ${filter.rank}`,
      `its ranks are: ${all.map((rank) => rank.rank).join(', ')}`,
    );
  const stages = events.flatMap((event) =>
    event.type === 'rank-stage' && event.attempt === attempt ? [event] : [],
  );
  const lines = ranks.flatMap((rank) => {
    const moves = stages.filter((event) => event.rank === rank.rank);
    return world.journal.readLog(run, attempt, rank.rank).map((line) => ({
      rank: rank.rank,
      node: rank.node,
      ...line,
      stage: moves.findLast((move) => move.line <= line.line)?.stage ?? ('start' as const),
    }));
  });
  return {
    attempt,
    lines: lines
      .filter((line) => filter.stage === undefined || line.stage === filter.stage)
      .sort((a, b) => a.at - b.at || a.rank - b.rank || a.line - b.line),
  };
}
