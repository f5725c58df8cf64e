import { STAGES, type Stage } from '../../domain/finding.ts';
import type { AttemptState, RankState } from '../../domain/run-state.ts';
import { edit, STAGE_WORDS, silence } from '../../domain/run-words.ts';
import { stopwatch } from '../../domain/units.ts';
import type { Pen } from './pen.ts';
import { fill, pad, width } from './width.ts';

const COLUMNS: readonly { readonly stage: Stage; readonly head: string; readonly columns: number }[] = [
  { stage: 'rendezvous', head: 'rdv', columns: 8 },
  { stage: 'weights', head: 'weights', columns: 0 },
  { stage: 'kv', head: 'KV', columns: 7 },
  { stage: 'graphs', head: 'graphs', columns: 8 },
  { stage: 'warmup', head: 'warm-up', columns: 9 },
  { stage: 'serving', head: 'serving', columns: 8 },
];
const FIXED = COLUMNS.reduce((sum, column) => sum + column.columns, 0);

/** The present attempt: its header, then one row per rank over the stages, then its finding and remedy. */
export function attemptGrid(attempt: AttemptState, pen: Pen): readonly string[] {
  const { glyphs, paint, columns } = pen;
  const names = Math.max(...attempt.ranks.map((rank) => width(`${rank.rank} ${rank.node}`)), 9);
  const nameColumns = Math.min(names + 4, 22, Math.max(10, columns - FIXED - 8));
  const weights = Math.max(7, Math.min(columns - FIXED - nameColumns, 46));
  const since = stopwatch(pen.now - Date.parse(attempt.startedAt));
  const heads = COLUMNS.map((column) => fill(column.head, column.columns || weights, '')).join('');
  return [
    `attempt ${attempt.attempt}  ${attempt.engine}  ${attempt.finding?.final ? failure(attempt, pen) : since}`,
    ' '.repeat(nameColumns) + paint.quiet(heads),
    ...attempt.ranks.map((rank) => row(rank, { nameColumns, weights }, pen)),
    ...(attempt.finding
      ? [
          `${paint.bad(glyphs.failed)} ${fill(`${attempt.finding.final ? '' : 'provisional: '}${attempt.finding.title}`, columns - 4, glyphs.ellipsis).trimEnd()}`,
        ]
      : []),
    ...remedyBand(attempt, pen),
  ];
}

/** An earlier attempt as one line, and the remedy that followed it as another. */
export function finishedAttempt(attempt: AttemptState, pen: Pen): readonly string[] {
  const left = `attempt ${attempt.attempt}  ${attempt.engine}  `;
  const failed = failure(attempt, pen);
  const gap = ' '.repeat(Math.max(2, 20 - width(failed)));
  return [`${left}${failed}${gap}${attempt.finding?.title ?? ''}`, ...remedyBand(attempt, pen)].map((line) =>
    fill(line, pen.columns, pen.glyphs.ellipsis).trimEnd(),
  );
}

function failure(attempt: AttemptState, pen: Pen): string {
  const { glyphs, paint } = pen;
  const ended = attempt.ranks.flatMap((rank) => (rank.ended ? [Date.parse(rank.ended.at)] : []));
  const took = ended.length > 0 ? ` ${stopwatch(Math.min(...ended) - Date.parse(attempt.startedAt))}` : '';
  const stage = attempt.finding?.stage ?? attempt.ranks[0]?.stage ?? 'start';
  return paint.bad(`${glyphs.failed} ${STAGE_WORDS[stage]}${took}`);
}

function remedyBand(attempt: AttemptState, pen: Pen): readonly string[] {
  const { remedy } = attempt;
  if (!remedy) return [];
  const { glyphs, paint } = pen;
  const state =
    remedy.state === 'proved'
      ? paint.ok(`${glyphs.done} proved`)
      : remedy.state === 'failed'
        ? paint.bad(`${glyphs.failed} no effect`)
        : paint.working(`${glyphs.working} not yet proved`);
  const what = remedy.edits.length > 0 ? remedy.edits.map(edit).join(', ') : remedy.title;
  return [`${' '.repeat(11)}remedy  ${pad(state, 20)}${what}`];
}

function row(
  rank: RankState,
  layout: { readonly nameColumns: number; readonly weights: number },
  pen: Pen,
): string {
  const { glyphs, paint, columns } = pen;
  const name = fill(`${rank.rank} ${rank.node}`, layout.nameColumns - 2, glyphs.ellipsis);
  const quiet = silence(rank, pen.now);
  const here = Math.max(1, STAGES.indexOf(rank.stage));
  let line = `${name}  `;
  for (const column of COLUMNS) {
    const wide = column.columns || layout.weights;
    const at = STAGES.indexOf(column.stage);
    const shown = cell(rank, column.stage, { here, at, wide }, pen);
    // Nothing follows the cell in which a rank ended: it is shown whole, a cut exit code would be another one.
    if (at === here && rank.ended) return line + shown;
    line += fill(shown, wide, '');
    if (at === here && quiet) {
      const limit = quiet.limit === undefined ? '' : `, limit ${stopwatch(quiet.limit)}`;
      return (
        line +
        paint.wait(
          fill(
            `${glyphs.slow} still for ${stopwatch(quiet.still)}${limit}`,
            columns - width(line),
            '',
          ).trimEnd(),
        )
      );
    }
  }
  return line.trimEnd();
}

function cell(
  rank: RankState,
  stage: Stage,
  place: { readonly here: number; readonly at: number; readonly wide: number },
  pen: Pen,
): string {
  const { glyphs, paint } = pen;
  if (place.at > place.here) return rank.ended ? '' : paint.quiet(glyphs.none);
  if (place.at < place.here) return `${paint.ok(glyphs.done)} ${spent(rank, stage)}`;
  if (rank.ended) {
    const code = rank.ended.code === undefined ? '' : ` ${rank.ended.code}`;
    return rank.ended.requested ? `${glyphs.peer} ended` : paint.bad(`${glyphs.failed} exit${code}`);
  }
  if (stage === 'serving') return `${paint.ok(glyphs.done)}`;
  if (stage === 'weights' && rank.percent !== undefined) return bar(rank.percent, place.wide, pen);
  const entered = rank.entered[rank.stage] ?? rank.movedAt;
  return `${paint.working(glyphs.working)} ${stopwatch(pen.now - Date.parse(entered))}`;
}

function bar(percent: number, wide: number, pen: Pen): string {
  const { glyphs, paint } = pen;
  const cells = wide - 7;
  const text = `${String(Math.floor(percent)).padStart(2)} %`;
  if (cells < 6) return text;
  const full = Math.max(0, Math.min(cells, Math.round((percent / 100) * cells)));
  return `${paint.working(glyphs.barFull.repeat(full))}${glyphs.barRest.repeat(cells - full)} ${text}`;
}

/** Time from entering a stage to entering the next one that was entered. */
function spent(rank: RankState, stage: Stage): string {
  const from = rank.entered[stage] ?? (stage === 'rendezvous' ? rank.entered.start : undefined);
  const to = STAGES.slice(STAGES.indexOf(stage) + 1)
    .map((later) => rank.entered[later])
    .find((at) => at !== undefined);
  return from !== undefined && to !== undefined ? stopwatch(Date.parse(to) - Date.parse(from)) : '';
}
