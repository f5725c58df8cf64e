import type { LogStrip } from '../../../domain/log-rows.ts';

/** A filled part of the strip, in pixels; `name` is a colour of the style sheet. */
export type StripPart = {
  readonly name: '--quiet' | '--bad' | '--wait' | '--accent' | '--text';
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  /** 0 to 1. */
  readonly strength: number;
};

/** Numbers of each piece of a log. */
export type StripNumbers = Omit<LogStrip, 'total' | 'stops'>;

/** At so many lines a second the strip is at its darkest. */
const FASTEST = 10_000;

/**
 * The strip beside a log: its length is the log's rows, so that a press goes where the scroll bar would. The left part
 * is darker where lines came faster; then warnings and errors; marks reach from the left, quoted lines all across;
 * what is in view has an outline.
 */
export function stripPicture(
  numbers: StripNumbers | undefined,
  view: { readonly first: number; readonly visible: number; readonly total: number },
  width: number,
  height: number,
): readonly StripPart[] {
  const parts: StripPart[] = [];
  const pieces = numbers?.lines.length ?? 0;
  const tall = height / Math.max(1, pieces);
  const half = Math.floor(width / 2);
  for (let piece = 0; numbers !== undefined && piece < pieces; piece++) {
    const y = piece * tall;
    const at = (of: readonly number[]): number => of[piece] ?? 0;
    const perSecond = (at(numbers.lines) * 1000) / Math.max(1, at(numbers.milliseconds));
    const strength = 0.08 + 0.5 * Math.min(1, Math.log10(1 + perSecond) / Math.log10(1 + FASTEST));
    parts.push({ name: '--quiet', x: 0, y, w: half, h: tall, strength });
    // What is rare must be seen, however long the log is.
    const thick = Math.max(2, tall);
    if (at(numbers.warnings) > 0)
      parts.push({ name: '--wait', x: half, y, w: width - half, h: thick, strength: 0.7 });
    if (at(numbers.marks) > 0) parts.push({ name: '--accent', x: 0, y, w: half, h: 2, strength: 1 });
    if (at(numbers.errors) > 0)
      parts.push({ name: '--bad', x: half, y, w: width - half, h: thick, strength: 1 });
    if (at(numbers.quotes) > 0)
      parts.push({ name: '--bad', x: 0, y, w: width, h: Math.max(3, tall), strength: 1 });
  }
  if (view.total > view.visible) {
    const y = Math.min(height - 4, (view.first / view.total) * height);
    const h = Math.max(4, (view.visible / view.total) * height);
    const side = { name: '--text', strength: 0.8 } as const;
    parts.push({ ...side, x: 0, y, w: width, h: 1 }, { ...side, x: 0, y: y + h - 1, w: width, h: 1 });
    parts.push({ ...side, x: 0, y, w: 1, h }, { ...side, x: width - 1, y, w: 1, h });
  }
  return parts;
}
