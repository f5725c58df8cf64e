import type { LogIndex } from './log-index.ts';

/** The first of these rows that is not before that moment; the last one where none is. */
export function rowAt(index: LogIndex, rows: readonly number[], at: number): number {
  let low = 0;
  for (let high = rows.length - 1; low < high; ) {
    const middle = (low + high) >> 1;
    if (index.row(rows[middle] ?? 0).at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
