import type { NowLine } from '../../domain/now-line.ts';
import type { Pen } from './pen.ts';

/** The glyph of a Now line in its colour, from the set that this terminal can show. */
export function nowMark(glyph: NowLine['glyph'], pen: Pick<Pen, 'glyphs' | 'paint'>): string {
  const { glyphs, paint: colours } = pen;
  switch (glyph) {
    case '✓':
      return colours.ok(glyphs.done);
    case '◔':
      return colours.working(glyphs.working);
    case '◐':
      return colours.wait(glyphs.waits);
    case '!':
      return colours.wait(glyphs.slow);
    case '✕':
      return colours.bad(glyphs.failed);
    case '?':
      return glyphs.unknown;
    case '':
      return '';
  }
}
