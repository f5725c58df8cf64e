import type { Quote } from '../../domain/finding.ts';
import type { Style } from './style.ts';
import { fill, pad, width, wrap } from './width.ts';

const SHOWN = 4;
const LINES_EACH = 3;

/** Quoted lines under "Seen": rank and line at the left, the text as it stands in the log, long ones cut. */
export function quoteLines(quotes: readonly Quote[], style: Style): readonly string[] {
  const shown = style.verbose ? quotes : quotes.slice(0, SHOWN);
  const heads = shown.map((quote) =>
    quote.log === undefined ? `rank ${quote.rank} line ${quote.line}` : `${quote.log} line ${quote.line}`,
  );
  const room = Math.max(0, ...heads.map(width));
  const columns = Math.max(20, style.columns - 9 - room - 2);
  return shown.flatMap((quote, index) => {
    const lines = wrap(quote.text.trim(), columns);
    const kept = style.verbose || lines.length <= LINES_EACH ? lines : lines.slice(0, LINES_EACH);
    return kept.map((line, at) => {
      const label = index === 0 && at === 0 ? 'Seen' : '';
      const more = at === kept.length - 1 && kept.length < lines.length ? ` ${style.glyphs.ellipsis}` : '';
      const text = style.verbose ? line : fill(`${line}${more}`, columns, style.glyphs.ellipsis).trimEnd();
      return `${pad(label, 9)}${pad(at === 0 ? (heads[index] ?? '') : '', room)}  ${text}`;
    });
  });
}

/** The command that shows a quoted line: in the attempt in which it was found, which need not be the last. */
export function quotedLine(
  run: string,
  { attempt, quotes }: { readonly attempt?: number; readonly quotes: readonly Quote[] },
): string {
  const quote = quotes.find(({ log }) => log === undefined);
  if (quote === undefined) return '';
  const which = attempt === undefined ? '' : ` --attempt ${attempt}`;
  return `firstlight logs ${run}${which} --rank ${quote.rank} --line ${quote.line}`;
}
