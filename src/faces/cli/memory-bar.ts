import type { Ledger } from '../../domain/ledger.ts';
import type { Paint } from './color.ts';
import type { Glyphs } from './glyphs.ts';

/** The bar: one cell per step of the scale, owners left to right, the reserve as a line through it. */
export function memoryBar(
  ledger: Ledger,
  options: {
    readonly cells: number;
    /** Bytes that the full width stands for: the largest total of all nodes shown. */
    readonly scaleBytes: number;
    readonly reserveBytes: number | undefined;
    readonly glyphs: Glyphs;
    readonly paint: Paint;
  },
): string {
  const { cells, scaleBytes, reserveBytes, glyphs, paint } = options;
  const at = (bytes: number): number => Math.round((bytes / scaleBytes) * cells);
  const parts = [
    { bytes: ledger.systemBytes, glyph: glyphs.system, paint: paint.quiet },
    { bytes: ledger.unaccountedBytes, glyph: glyphs.unaccounted, paint: paint.quiet },
    { bytes: ledger.othersBytes, glyph: glyphs.others, paint: paint.wait },
    { bytes: ledger.oursBytes, glyph: glyphs.ours, paint: paint.working },
    { bytes: ledger.cacheBytes, glyph: glyphs.cache, paint: paint.quiet },
    { bytes: ledger.freeBytes, glyph: glyphs.free, paint: paint.quiet },
  ];
  const line: { glyph: string; paint: (text: string) => string }[] = [];
  let bytes = 0;
  for (const part of parts) {
    bytes += part.bytes;
    while (line.length < at(bytes)) line.push(part);
  }
  const reserve = reserveBytes === undefined ? -1 : at(ledger.totalBytes - reserveBytes);
  if (reserve >= 0 && reserve < line.length) line[reserve] = { glyph: glyphs.reserve, paint: same };
  let out = '';
  for (let index = 0; index < line.length; ) {
    const first = line[index];
    if (!first) break;
    let end = index;
    while (line[end]?.glyph === first.glyph) end += 1;
    out += first.paint(first.glyph.repeat(end - index));
    index = end;
  }
  return out + ' '.repeat(Math.max(0, cells - line.length));
}

function same(text: string): string {
  return text;
}
