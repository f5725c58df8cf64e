import type { Paint } from './color.ts';
import { drawsColor, paint } from './color.ts';
import type { Glyphs } from './glyphs.ts';
import { drawsUnicode, glyphs, plainAscii } from './glyphs.ts';

/** How to draw: the same for every renderer. `columns` bounds what is laid out; commands are never broken. */
export type Style = {
  readonly columns: number;
  readonly paint: Paint;
  readonly glyphs: Glyphs;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly verbose: boolean;
};

/** What an output stream and the environment allow. */
export function styleOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
  now: number,
  verbose: boolean,
): Style {
  return {
    columns: columnsOf(stream, env),
    paint: paint(drawsColor(env, stream.isTTY === true)),
    glyphs: glyphs(drawsUnicode(env)),
    now,
    verbose,
  };
}

/** From 40 to 120: of the terminal, or what COLUMNS leaves of it; 80 where neither says. */
function columnsOf(
  stream: { readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): number {
  const said = [stream.columns ?? 0, Number(env['COLUMNS'])].filter((columns) => columns > 0);
  return Math.max(40, Math.min(...(said.length > 0 ? said : [80]), 120));
}

/** Lines → the text to write; in a terminal without Unicode our own signs become ASCII. */
export function finish(lines: readonly string[], style: Style): string {
  return written(`${lines.map((line) => line.trimEnd()).join('\n')}\n`, style);
}

/** Text as it will be written; ASCII for a sign may be wider than the sign, so do this before text is wrapped. */
export function written(text: string, style: Style): string {
  return style.glyphs.unicode ? text : plainAscii(text);
}
