import type { Event } from '../../domain/event.ts';
import { blank, type RunState } from '../../domain/run-state.ts';
import type { Live } from '../../operations/world.ts';
import { drawsColor } from './color.ts';
import { finalLines } from './final-lines.ts';
import { drawsUnicode } from './glyphs.ts';
import { type LiveState, noLive } from './live-state.ts';
import { frame } from './live-view.ts';
import { width } from './width.ts';

/** A terminal that can be drawn on. */
export type Screen = {
  write(text: string): unknown;
  readonly columns?: number;
  readonly rows?: number;
  on(event: 'resize', listener: () => void): unknown;
  removeListener(event: 'resize', listener: () => void): unknown;
};

export type LiveView = {
  /** Folds an event in; what is final is printed above the drawing and stays. */
  readonly event: (event: Event, before: RunState, after: RunState) => void;
  readonly live: (update: Live) => void;
  /** From now on the last row says what a second Ctrl-C does. */
  readonly interrupted: () => void;
  /** Takes the drawing away until the result is called: for questions. */
  readonly pause: () => () => void;
  /** Takes the drawing away for good and shows the cursor again. */
  readonly stop: () => void;
};

const LEAST_MILLISECONDS = 100;
const CLOCK_MILLISECONDS = 1000;
const KEPT_LINES = 40;
const BEGIN = '\x1b[?2026h\x1b[?25l';
const END = '\x1b[?2026l';
const SHOW_CURSOR = '\x1b[?25h';

/** Draws at the end of the scrollback, at most ten times a second, with one write per repaint. */
export function createLiveView(
  screen: Screen,
  env: Readonly<Record<string, string | undefined>>,
  clock: { readonly now: () => number },
): LiveView {
  const color = drawsColor(env, true);
  const unicode = drawsUnicode(env);
  let state: RunState = blank;
  let live: LiveState = noLive;
  let above: string[] = [];
  let drawn: readonly string[] = [];
  let paused = 0;
  let stopped = false;
  let lastPaint = 0;
  let timer: NodeJS.Timeout | undefined;

  const size = () => ({ columns: Math.max(20, screen.columns || 80), rows: Math.max(6, screen.rows || 24) });

  /** Rows that the drawing takes, counting those that a narrower window has wrapped. */
  const drawnRows = (): number => {
    const { columns, rows } = size();
    const taken = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(width(line) / columns)), 0);
    return Math.min(taken, rows - 1);
  };

  /**
   * Moves to the first row of the drawing and writes over it, row by row. Erasing all below from there would be
   * shorter, but where that is the whole screen tmux keeps what it erases, once per repaint, in its history.
   */
  const over = (lines: readonly string[]): string => {
    const rows = drawnRows();
    const left = Math.max(0, rows - lines.length);
    return [
      rows === 0 ? '' : `\x1b[${rows}A\r`,
      ...lines.map((line) => `\x1b[2K${line}\n`),
      left === 0 ? '' : `${'\x1b[2K\n'.repeat(left)}\x1b[${left}A`,
    ].join('');
  };

  const paint = (): void => {
    timer = undefined;
    if (stopped || paused > 0) return;
    lastPaint = clock.now();
    const lines =
      state.startedAt === undefined ? [] : frame(state, live, { ...size(), now: lastPaint, color, unicode });
    screen.write(`${BEGIN}${over([...above, ...lines])}${END}`);
    above = [];
    drawn = lines;
    schedule(CLOCK_MILLISECONDS);
  };

  const schedule = (milliseconds: number): void => {
    if (stopped || paused > 0) return;
    if (timer !== undefined) clearTimeout(timer);
    timer = setTimeout(paint, milliseconds);
    timer.unref();
  };

  const soon = (): void => {
    const due = Math.max(0, LEAST_MILLISECONDS - (clock.now() - lastPaint));
    schedule(due);
  };

  const erase = (): void => {
    if (timer !== undefined) clearTimeout(timer);
    timer = undefined;
    screen.write(`${over(above)}${SHOW_CURSOR}`);
    above = [];
    drawn = [];
  };

  const resize = (): void => soon();
  screen.on('resize', resize);

  return {
    event: (event, before, after) => {
      state = after;
      if (event.type === 'looked') live = { ...live, beats: new Map() };
      if (
        event.type === 'run-started' ||
        (event.type === 'rank-started' && before.attempts !== after.attempts && event.rank === 0)
      ) {
        live = { ...live, lines: [] };
      }
      above.push(...finalLines(event, { columns: size().columns, color, unicode }));
      soon();
    },
    live: (update) => {
      if (update.kind === 'beat') {
        if (update.availableBytes === undefined) return;
        live = { ...live, beats: new Map(live.beats).set(update.node, update.availableBytes) };
      } else if (update.kind === 'lines') {
        const at = clock.now();
        const fresh = update.lines.slice(-KEPT_LINES).map((text) => ({ rank: update.rank, at, text }));
        live = { ...live, lines: [...live.lines, ...fresh].slice(-KEPT_LINES) };
      }
      if (timer === undefined || clock.now() - lastPaint >= LEAST_MILLISECONDS) soon();
    },
    interrupted: () => {
      live = { ...live, interrupted: true };
      soon();
    },
    pause: () => {
      erase();
      paused += 1;
      let resumed = false;
      return () => {
        if (resumed) return;
        resumed = true;
        paused -= 1;
        soon();
      };
    },
    stop: () => {
      if (stopped) return;
      erase();
      stopped = true;
      screen.removeListener('resize', resize);
    },
  };
}
