import { movesOf } from '../../domain/log-marks.ts';
import type { LogFilter, LogStrip } from '../../domain/log-rows.ts';
import type { RunState } from '../../domain/run-state.ts';
import type { World } from '../world.ts';
import type { LogView } from './log-view.ts';
import { viewOf } from './log-window.ts';
import { rowAt } from './row-at.ts';

const MOST_STOPS = 500;

/** Where in the log of a run much came at once, where it went wrong, and where its ranks moved on. */
export async function logStrip(
  world: Pick<World, 'journal'>,
  state: RunState,
  filter: LogFilter,
  most: number,
): Promise<LogStrip> {
  const { index, view, quoted } = await viewOf(world, state, { ...filter, around: undefined });
  const { rows } = view;
  const pieces = Math.min(most, rows.length);
  const edge = (piece: number): number => Math.floor((piece * rows.length) / pieces);
  const each = <T>(of: (from: number, to: number) => T): readonly T[] =>
    Array.from({ length: pieces }, (_, piece) => of(edge(piece), edge(piece + 1)));
  const sum = (of: (id: number) => number) => (from: number, to: number) => {
    let all = 0;
    for (let row = from; row < to; row++) all += of(rows[row] ?? 0);
    return all;
  };
  const timeOf = (row: number): number => index.row(rows[Math.min(row, rows.length - 1)] ?? 0).at;
  const linesOf = (id: number): number => linesAt(view, id);
  const moves = movesOf(state, filter)
    .map(({ at }) => rowAt(index, rows, at))
    .sort((a, b) => a - b);
  const quotedRows = [...quoted]
    .map((id) => index.placeOf(id, rows))
    .filter((row) => quoted.has(rows[row] ?? -1));
  const stops = rows.length === 0 ? [] : [...new Set([...moves, ...quotedRows])].sort((a, b) => a - b);
  return {
    total: rows.length,
    lines: each(sum(linesOf)),
    milliseconds: each((from, to) => Math.max(0, timeOf(to) - timeOf(from))),
    warnings: each(sum((id) => (index.levelOf(id) === 'warning' ? linesOf(id) : 0))),
    errors: each(sum((id) => (index.levelOf(id) === 'error' ? 1 : 0))),
    quotes: each(sum((id) => (quoted.has(id) ? 1 : 0))),
    marks: each((from, to) => moves.filter((row) => row >= from && row < to).length),
    stops: stops.slice(0, MOST_STOPS).map((row) => {
      const { attempt, rank, line } = index.row(rows[row] ?? 0);
      return { attempt, rank, line, row };
    }),
  };
}

function linesAt(view: LogView, id: number): number {
  const closed = view.closedOver(id);
  return closed === 0 ? 1 : view.linesIn(closed);
}
