import { STAGES, type Stage } from '../../domain/finding.ts';
import { movesOf } from '../../domain/log-marks.ts';
import type { LogFilter, LogPlace, LogRow, LogWindow } from '../../domain/log-rows.ts';
import type { RunState } from '../../domain/run-state.ts';
import type { Journal } from '../../journal/journal.ts';
import type { World } from '../world.ts';
import { keepLast, LogIndex } from './log-index.ts';
import { prefixOf } from './log-prefix.ts';
import type { LogSearch } from './log-search.ts';
import type { LogView, ViewFilter } from './log-view.ts';
import { rowAt } from './row-at.ts';

export type LogQuery = LogFilter & {
  /** First row; the tail where left out. */
  readonly from: number | undefined;
  readonly count: number;
  /** The window begins with this line where the filter lets it through, and the fold that it is in is opened. */
  readonly around?: LogPlace | undefined;
};

const indexes = new Map<string, LogIndex>();
const KEPT = 2;

/** A window of the merged log of a run's ranks under a filter. The files are read once, as they grow. */
export async function logWindow(
  world: Pick<World, 'journal'>,
  state: RunState,
  query: LogQuery,
): Promise<LogWindow> {
  const { index, view, opened } = await viewOf(world, state, query);
  const { around } = query;
  const wanted = around === undefined ? undefined : index.idOf(around, around.line);
  const place = wanted === undefined ? -1 : index.placeOf(wanted, view.rows);
  const found = wanted !== undefined && view.rows[place] === wanted;
  const last = query.from ?? view.rows.length - query.count;
  const from = found ? place : Math.max(0, Math.min(last, view.rows.length));
  const ids = view.rows.slice(from, from + query.count);
  const shown = ids.map((id) => {
    const closed = view.closedOver(id);
    return closed === 0 ? id : view.lastIn(closed);
  });
  const texts = index.texts(shown);
  const marks = new Map<number, readonly string[]>();
  for (const { at, text } of view.rows.length === 0 ? [] : movesOf(state, query)) {
    const row = rowAt(index, view.rows, at);
    marks.set(row, [...(marks.get(row) ?? []), text]);
  }
  return {
    total: view.rows.length,
    lines: view.lines,
    from,
    rows: shown.map((id, at) => {
      const { attempt, rank, node, line, at: time, level } = index.row(id);
      const stage = stageAt(enteredOf(state, attempt, rank), time);
      const text = texts[at] ?? '';
      const fold = foldAt(index, view, ids[at] ?? id);
      const row = { rank, node, attempt, line, at: time, stage, level, text, prefix: prefixOf(text) };
      const passed = marks.get(from + at);
      return {
        ...row,
        ...(fold === undefined ? {} : { fold }),
        ...(passed === undefined ? {} : { marks: passed }),
      };
    }),
    warnings: view.warnings,
    errors: view.errors,
    ...(opened === undefined ? {} : { opened }),
  };
}

/** What the log of the run shows under this filter, all folds that must be open opened. */
export async function viewOf(
  world: Pick<World, 'journal'>,
  state: RunState,
  query: LogFilter & Pick<LogQuery, 'around'>,
): Promise<{
  readonly index: LogIndex;
  readonly view: LogView;
  /** Ids of lines that a finding quotes. */
  readonly quoted: ReadonlySet<number>;
  /** The fold that was opened for `around`. */
  readonly opened: LogPlace | undefined;
}> {
  const index = indexOf(world.journal, state.run);
  await index.update(
    state.attempts.flatMap(({ attempt, ranks }) => ranks.map(({ rank, node }) => ({ attempt, rank, node }))),
  );
  const search = query.q === '' ? undefined : index.search(query.q);
  while (search !== undefined && !search.whole()) await search.readOn();
  const quoted = quotesOf(index, state);
  const view = viewUnder(index, state, query, quoted, search);
  const { around } = query;
  const id = around === undefined ? undefined : index.idOf(around, around.line);
  const closed = id === undefined ? 0 : view.closedOver(id);
  if (closed === 0) return { index, view, quoted, opened: undefined };
  const opened = firstLine(index, closed);
  const wider = { ...query, open: [...query.open, opened] };
  return { index, view: viewUnder(index, state, wider, quoted, search), quoted, opened };
}

function viewUnder(
  index: LogIndex,
  state: RunState,
  query: LogFilter,
  always: ReadonlySet<number>,
  search: LogSearch | undefined,
): LogView {
  const { ranks, attempt, stage, level, q, fold } = query;
  const entered =
    stage === undefined ? [] : state.attempts.flatMap((one) => one.ranks.map((rank) => rank.entered));
  const folds = fold && q === '';
  const open = new Set(
    (folds ? query.open : []).flatMap((place) => {
      const id = index.idOf(place, place.line);
      return id === undefined ? [] : [index.foldOf(id)];
    }),
  );
  const key = JSON.stringify([
    ranks,
    attempt,
    stage,
    entered,
    level,
    search?.number,
    folds,
    [...open],
    [...always],
  ]);
  return index.view(
    key,
    (): ViewFilter => ({
      admits: (id) => {
        if (search !== undefined && !search.holds(id)) return false;
        if (ranks.length === 0 && attempt === undefined && stage === undefined) return true;
        const row = index.row(id);
        return (
          (ranks.length === 0 || ranks.includes(row.rank)) &&
          (attempt === undefined || row.attempt === attempt) &&
          (stage === undefined || stageAt(enteredOf(state, row.attempt, row.rank), row.at) === stage)
        );
      },
      level,
      folds,
      open,
      always,
    }),
  );
}

/** Lines that a finding quotes. */
function quotesOf(index: LogIndex, state: RunState): ReadonlySet<number> {
  return new Set(
    state.attempts.flatMap(({ attempt, finding }) =>
      (finding?.quotes ?? []).flatMap(({ rank, line, log }) => {
        const id = log === undefined ? index.idOf({ attempt, rank }, line) : undefined;
        return id === undefined ? [] : [id];
      }),
    ),
  );
}

function foldAt(index: LogIndex, view: LogView, id: number): LogRow['fold'] {
  const { folds } = index;
  const fold = index.foldOf(id);
  const open = view.open.has(fold);
  if (fold === 0 || (open ? folds.firstOf(fold) !== id : view.closedOver(id) === 0)) return undefined;
  const lines = open ? folds.linesOf(fold) : view.linesIn(fold);
  const kind = folds.kindOf(fold);
  const count = kind === 'frames' ? folds.framesOf(fold) : lines - 1;
  return lines < 2 ? undefined : { place: firstLine(index, fold), kind, count, open };
}

function firstLine(index: LogIndex, fold: number): LogPlace {
  const { attempt, rank, line } = index.row(index.folds.firstOf(fold));
  return { attempt, rank, line };
}

function indexOf(journal: Journal, run: string): LogIndex {
  const key = `${journal.folder}\n${run}`;
  const index = indexes.get(key) ?? new LogIndex(journal, run);
  keepLast(indexes, key, index, KEPT);
  return index;
}

function enteredOf(state: RunState, attempt: number, rank: number): Readonly<Partial<Record<Stage, string>>> {
  const ranks = state.attempts.find((one) => one.attempt === attempt)?.ranks;
  return ranks?.find((one) => one.rank === rank)?.entered ?? {};
}

/** The stage that a rank had entered last by then. */
function stageAt(entered: Readonly<Partial<Record<Stage, string>>>, at: number): Stage {
  return STAGES.findLast((stage) => Date.parse(entered[stage] ?? '') <= at) ?? 'start';
}
