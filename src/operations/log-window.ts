import { STAGES, type Stage } from '../domain/finding.ts';
import type { RunState } from '../domain/run-state.ts';
import type { Journal } from '../journal/journal.ts';
import { LogIndex } from './log-index.ts';
import type { World } from './world.ts';

export type LogRow = {
  readonly rank: number;
  readonly node: string;
  readonly attempt: number;
  readonly line: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly stage: Stage;
  readonly level: 'error' | 'warning' | '';
  readonly text: string;
};

export type LogQuery = {
  /** First row; the tail where left out. */
  readonly from: number | undefined;
  readonly count: number;
  /** The window begins with this row where the filter lets it through. */
  readonly around?: { readonly attempt: number; readonly rank: number; readonly line: number } | undefined;
  /** Empty: all. */
  readonly ranks: readonly number[];
  readonly attempt: number | undefined;
  readonly stage: Stage | undefined;
  readonly level: 'error' | 'warning' | undefined;
  /** Found anywhere in the text, large and small letters alike. */
  readonly q: string;
};

export type LogWindow = {
  readonly total: number;
  readonly from: number;
  readonly rows: readonly LogRow[];
  readonly warnings: number;
  readonly errors: number;
};

const indexes = new Map<string, LogIndex>();
const KEPT = 2;

/** A window of the merged log of a run's ranks under a filter. The files are read once, as they grow. */
export async function logWindow(
  world: Pick<World, 'journal'>,
  state: RunState,
  query: LogQuery,
): Promise<LogWindow> {
  const index = indexOf(world.journal, state.run);
  await index.update(
    state.attempts.flatMap(({ attempt, ranks }) => ranks.map(({ rank, node }) => ({ attempt, rank, node }))),
  );
  const rows = await filtered(index, state, query);
  let warnings = 0;
  let errors = 0;
  for (const id of rows) {
    const level = index.levelOf(id);
    if (level === 'warning') warnings++;
    else if (level === 'error') errors++;
  }
  const found = query.level === undefined ? rows : rows.filter((id) => index.levelOf(id) === query.level);
  const from = firstOf(index, found, query);
  const ids = found.slice(from, from + query.count);
  const texts = index.texts(ids);
  return {
    total: found.length,
    from,
    rows: ids.map((id, at) => {
      const { attempt, rank, node, line, at: time, level } = index.row(id);
      const stage = stageAt(enteredOf(state, attempt, rank), time);
      return { rank, node, attempt, line, at: time, stage, level, text: texts[at] ?? '' };
    }),
    warnings,
    errors,
  };
}

function indexOf(journal: Journal, run: string): LogIndex {
  const key = `${journal.folder}\n${run}`;
  const index = indexes.get(key) ?? new LogIndex(journal, run);
  // The one that was asked for last stands last.
  indexes.delete(key);
  indexes.set(key, index);
  const oldest = indexes.keys().next().value;
  if (indexes.size > KEPT && oldest !== undefined) indexes.delete(oldest);
  return index;
}

async function filtered(index: LogIndex, state: RunState, query: LogQuery): Promise<readonly number[]> {
  const { ranks, attempt, stage, q } = query;
  if (ranks.length === 0 && attempt === undefined && stage === undefined && q === '') return index.all();
  const hits = q === '' ? undefined : await index.search(q);
  return index.all().filter((id) => {
    if (hits !== undefined && !hits.has(id)) return false;
    const row = index.row(id);
    return (
      (ranks.length === 0 || ranks.includes(row.rank)) &&
      (attempt === undefined || row.attempt === attempt) &&
      (stage === undefined || stageAt(enteredOf(state, row.attempt, row.rank), row.at) === stage)
    );
  });
}

function firstOf(index: LogIndex, found: readonly number[], { from, count, around }: LogQuery): number {
  if (around !== undefined) {
    const at = found.findIndex((id) => {
      const row = index.row(id);
      return row.attempt === around.attempt && row.rank === around.rank && row.line === around.line;
    });
    if (at !== -1) return at;
  }
  return Math.max(0, Math.min(from ?? found.length - count, found.length));
}

function enteredOf(state: RunState, attempt: number, rank: number): Readonly<Partial<Record<Stage, string>>> {
  const ranks = state.attempts.find((one) => one.attempt === attempt)?.ranks;
  return ranks?.find((one) => one.rank === rank)?.entered ?? {};
}

/** The stage that a rank had entered last by then. */
function stageAt(entered: Readonly<Partial<Record<Stage, string>>>, at: number): Stage {
  return STAGES.findLast((stage) => Date.parse(entered[stage] ?? '') <= at) ?? 'start';
}
