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
    const { attempt, lines: all } = readLines(world, found.run, filter);
    const { line: wanted, tail } = input;
    const near = wanted === undefined ? all : all.filter((one) => Math.abs(one.line - wanted) <= 10);
    const lines = tail === undefined ? near : near.slice(-tail);
    if (!input.follow) return { report: { kind: 'logs', run: found.run, attempt, lines }, exit: 0 };

    const tell = (fresh: readonly Line[]): void => {
      for (const { rank, node, text } of fresh) world.live({ kind: 'lines', rank, node, lines: [text] });
    };
    const keyOf = (of: number, one: Line): string => `${of}:${one.rank}:${one.line}`;
    const shown = new Set(all.map((one) => keyOf(attempt, one)));
    tell(lines);
    let current = attempt;
    for (let over = false; !over; ) {
      await world.clock.wait(adopted ? 2000 : 300, world.signal).catch(() => undefined); // read below
      // Looked at before the lines are read: what came between the two is still told.
      over = world.signal.aborted || (!adopted && foldAll(world.journal.read(found.run)).ended !== undefined);
      if (adopted) await catchUp(world, found.run).catch(() => undefined); // what cannot be read now comes later
      // A remedy may have begun another attempt: the end of the one before comes first.
      const last = readLines(world, found.run, filter);
      const ended =
        last.attempt === current ? [] : [readLines(world, found.run, { ...filter, attempt: current })];
      for (const now of [...ended, last]) {
        tell(now.lines.filter((one) => !shown.has(keyOf(now.attempt, one))));
        for (const one of now.lines) shown.add(keyOf(now.attempt, one));
      }
      current = last.attempt;
    }
    return { report: { kind: 'logs', run: found.run, attempt, lines: [] }, exit: 0 };
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
  const ranks = (known?.ranks ?? []).filter((rank) => filter.rank === undefined || rank.rank === filter.rank);
  // A rank of another attempt, or one that is planned, may yet write.
  const all = new Set(
    [
      ...state.attempts.flatMap((one) => one.ranks),
      ...(state.plan?.phases ?? []).flatMap((phase) => phase.services),
    ].map(({ rank }) => rank),
  );
  if (filter.rank !== undefined && all.size > 0 && !all.has(filter.rank))
    throw new UserError(
      'bad-input',
      `run ${run} has no rank ${filter.rank}`,
      `its ranks are: ${[...all].sort((a, b) => a - b).join(', ')}`,
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
