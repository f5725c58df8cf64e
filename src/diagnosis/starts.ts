import type { Evidence, LogLine, RankEvidence } from '../domain/evidence.ts';
import type { Engine } from '../knowledge/engines/engine.ts';
import { engines } from '../knowledge/engines/index.ts';
import { START } from '../knowledge/engines/log-line.ts';
import { wasAsked } from './asked-to-stop.ts';
import { startsIn } from './scan.ts';
import { newTracker, trackLine } from './stages.ts';

/** One attempt of which logs hold several starts: docker and systemd start anew what ended, into the same log. */
export type Starts = {
  /** What the last start of every rank says. */
  readonly last: Evidence;
  /** What was said before it. */
  readonly before: Evidence;
  /** Whether an engine said before it who it is. */
  readonly spoke: boolean;
};

/** Takes evidence apart at the last start of each rank; undefined where no log holds more than one. */
export function startsOf(evidence: Evidence): Starts | undefined {
  const engine = engines[evidence.engine];
  const seats = evidence.ranks.map((rank) => ({ rank, line: startsIn(rank.lines, engine).at(-1) }));
  if (seats.every(({ line }) => line === undefined)) return undefined;
  const anew = Math.max(
    ...seats.flatMap(({ rank, line }) => rank.lines.find((one) => one.line === line)?.at ?? []),
  );
  const own = seats.flatMap(({ rank, line }) =>
    line === undefined ? [] : [{ rank, lines: rank.lines.filter((one) => one.line < line) }],
  );
  const spoke = own.some(({ lines }) => lines.some(({ text }) => START.test(engine.message(text))));
  const before = evidence.ranks.map((rank) => {
    const lines = own.find((one) => one.rank === rank)?.lines;
    if (lines !== undefined) return earlier(rank, lines, engine, true);
    // What comes before an engine's first words is no start that another rank could have seen.
    if (!spoke) return { ...earlier(rank, [], engine, false), unseen: true as const };
    return earlier(
      rank,
      rank.lines.filter(({ at }) => at < anew),
      engine,
      false,
    );
  });
  return {
    last: {
      ...evidence,
      ranks: seats.map(({ rank, line }) =>
        line === undefined ? rank : { ...rank, lines: rank.lines.filter((one) => one.line >= line) },
      ),
    },
    before: { ...evidence, ranks: before },
    spoke,
  };
}

/** A rank as it stood after these lines of it; it had `ended` where it was started anew itself. */
function earlier(
  rank: RankEvidence,
  lines: readonly LogLine[],
  engine: Engine,
  ended: boolean,
): RankEvidence {
  const at = lines.at(-1)?.at ?? rank.movedAt;
  const { stage, percent, movedAt } = stageAfter(lines, engine, at);
  const requested = stage === 'serving' && wasAsked(lines);
  return {
    ...rank,
    lines,
    stage,
    percent,
    movedAt,
    ended: ended ? { code: undefined, requested, at } : undefined,
  };
}

/** How far a log's last start came by its lines; `at` is when it began, ms. */
export function stageAfter(
  lines: readonly LogLine[],
  engine: Engine,
  at: number,
): Pick<RankEvidence, 'stage' | 'percent' | 'movedAt'> {
  const from = startsIn(lines, engine).at(-1) ?? 0;
  const tracker = newTracker(engine, [{ rank: 0 }], at);
  for (const line of lines) if (line.line >= from) trackLine(tracker, 0, line);
  return tracker.of(0);
}
