import { prefixOf } from '../../operations/logs/log-prefix.ts';
import { shapeOf } from '../../operations/logs/log-shape.ts';

/** A line of a rank as the live view keeps it; `at` is when it came, ms. */
export type LiveLine = { readonly rank: number; readonly at: number; readonly text: string };

/**
 * The kept lines with new ones of one rank behind them, at most so many. Empty lines go, the engine's own stamp and
 * rank are cut off, and a progress bar stands once, as it was last.
 */
export function keepLines(
  kept: readonly LiveLine[],
  fresh: { readonly rank: number; readonly at: number; readonly lines: readonly string[] },
  most: number,
): readonly LiveLine[] {
  const { rank, at } = fresh;
  const all = [...kept];
  for (const line of fresh.lines.slice(-most)) {
    const text = line.slice(prefixOf(line)).trim();
    if (text === '') continue;
    const bar = barOf(text);
    if (bar !== undefined) {
      const before = all.findLastIndex((one) => one.rank === rank);
      if (before !== -1 && barOf(all[before]?.text ?? '') === bar) all.splice(before, 1);
    }
    all.push({ rank, at, text });
  }
  return all.slice(-most);
}

/** What is the same in all states of one bar; undefined for a line that is none. */
function barOf(text: string): number | undefined {
  if (!text.includes('%')) return undefined;
  const { hash, percent } = shapeOf(text);
  return percent === undefined ? undefined : hash;
}
