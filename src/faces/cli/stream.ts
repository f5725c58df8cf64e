import { clean } from './clean.ts';
import { plainAscii } from './glyphs.ts';
import type { Style } from './style.ts';

/** Text that is written as it comes: a chat answer, reasoning first and quieter; followed log lines. */
export function streamTo(
  write: (text: string) => void,
  style: Style,
): {
  readonly text: (part: 'answer' | 'reasoning', text: string) => void;
  readonly lines: (update: { readonly rank: number; readonly lines: readonly string[] }) => void;
  /** Whether anything of an answer was written; ends its last line. */
  readonly began: () => boolean;
} {
  const { paint, glyphs } = style;
  const gutter = glyphs.unicode ? glyphs.gutter : plainAscii(glyphs.gutter);
  let part: 'answer' | 'reasoning' | undefined;
  let fresh = true;
  return {
    text: (now, raw) => {
      let text = clean(raw);
      if (part !== now) {
        text = text.replace(/^\s+/, '');
        if (text === '') return;
        if (now === 'reasoning') write(paint.quiet('Reasoning\n'));
        else if (part === 'reasoning') write(fresh ? '\n' : '\n\n');
        part = now;
        fresh = true;
      }
      if (now === 'answer') {
        write(text);
        fresh = text.endsWith('\n');
        return;
      }
      // Reasoning has a rule at the left of every line.
      const ruled = text.replace(/\n(?=.)/gs, `\n${gutter}`);
      write(paint.quiet(fresh ? `${gutter}${ruled}` : ruled));
      fresh = text.endsWith('\n');
    },
    lines: ({ rank, lines }) => {
      for (const line of lines) write(`${rank}${gutter}${clean(line)}\n`);
    },
    began: () => {
      if (part === undefined) return false;
      if (!fresh) write('\n');
      fresh = true;
      return true;
    },
  };
}
