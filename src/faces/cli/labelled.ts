import { type Style, written } from './style.ts';
import { pad, width, wrap, wrapAdvice } from './width.ts';

const LABEL_COLUMNS = 9;

/** "Why     text", wrapped under itself; nothing when there is no text. */
export function labelled(label: string, texts: readonly string[], style: Style): readonly string[] {
  const indent = ' '.repeat(LABEL_COLUMNS);
  return texts
    .filter((text) => text !== '')
    .flatMap((text) => wrapAdvice(written(text, style), style.columns - LABEL_COLUMNS))
    .map((line, index) => (index === 0 ? `${pad(label, LABEL_COLUMNS)}${line}` : `${indent}${line}`));
}

/** Left and right on one line; the right part goes to its own line where there is no room. */
export function spread(left: string, right: string, style: Style): readonly string[] {
  const gap = style.columns - width(left) - width(right);
  if (gap >= 2) return [`${left}${' '.repeat(gap)}${right}`];
  return [...wrap(left, style.columns), `${' '.repeat(Math.max(0, style.columns - width(right)))}${right}`];
}

/** Rows with columns as wide as their widest cell; the last column is not filled. */
export function table(rows: readonly (readonly string[])[], gap = 2): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : pad(cell, (widths[index] ?? 0) + gap)))
      .join('')
      .trimEnd(),
  );
}
