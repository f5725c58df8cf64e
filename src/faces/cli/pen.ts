import type { Paint } from './color.ts';
import type { Glyphs } from './glyphs.ts';

/** What the parts of the frame are drawn with. */
export type Pen = {
  readonly columns: number;
  readonly now: number;
  readonly paint: Paint;
  readonly glyphs: Glyphs;
};
