import type { Event } from '../../domain/event.ts';
import { blank, type RunState } from '../../domain/run-state.ts';
import type { Live } from '../../operations/world.ts';
import { drawsColor } from './color.ts';
import { finalLines } from './final-lines.ts';
import { inForeground } from './foreground.ts';
import { drawsUnicode, plainAscii } from './glyphs.ts';
import { controlJob, type JobControl } from './job-control.ts';
import { type KeyInput, keyInput } from './key-input.ts';
import type { KeyPress } from './keys.ts';
import { keepLines } from './live-lines.ts';
import { type LiveState, noLive } from './live-state.ts';
import { frame, lastTop } from './live-view.ts';
import { roomToDraw } from './may-draw.ts';
import { plainLine, signOfLife } from './plain.ts';
import type { SecretInput } from './secret.ts';
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
  /** Reads keys of this terminal while it draws, and goes with the shell's job control; no terminal: no keys. */
  readonly listen: (input: SecretInput, interrupt: () => void) => void;
  /** Takes the drawing away until the result is called: for questions. The terminal is in line mode meanwhile. */
  readonly pause: () => () => void;
  /** Takes the drawing away for good, shows the cursor and leaves the terminal as it was found. */
  readonly stop: () => void;
};

const LEAST_MILLISECONDS = 100;
const CLOCK_MILLISECONDS = 1000;
const SIGN_MILLISECONDS = 30_000;
const KEPT_LINES = 200;
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
  /** The shell has the terminal. */
  let away = false;
  let front = true;
  let stopped = false;
  let lastPaint = 0;
  let saidAt = clock.now();
  let timer: NodeJS.Timeout | undefined;
  let keys: KeyInput | undefined;
  let job: JobControl | undefined;

  const size = () => ({ columns: Math.max(20, screen.columns || 80), rows: Math.max(6, screen.rows || 24) });
  const options = () => ({ ...size(), now: clock.now(), color, unicode });
  /** Too small a window, or in the background: lines as in plain mode, nothing drawn over. */
  const plain = () => !front || !roomToDraw(size());

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
    if (stopped || paused > 0 || away) return;
    lastPaint = clock.now();
    if (job !== undefined) front = inForeground();
    if (front) keys?.on();
    if (plain()) paintPlain();
    else paintFrame();
    schedule(CLOCK_MILLISECONDS);
  };

  const paintFrame = (): void => {
    const shown = { ...live, keys: keys?.reads() === true };
    const lines = state.startedAt === undefined ? [] : frame(state, shown, options());
    screen.write(`${BEGIN}${over([...above, ...lines])}${END}`);
    above = [];
    drawn = lines;
  };

  const paintPlain = (): void => {
    const silent = above.length === 0 && lastPaint - saidAt >= SIGN_MILLISECONDS;
    const sign = silent ? signOfLife(state, lastPaint) : undefined;
    if (sign !== undefined) above.push(unicode ? sign : plainAscii(sign));
    if (above.length > 0) saidAt = lastPaint;
    if (drawn.length > 0) erase();
    else if (above.length > 0) screen.write(`${above.join('\n')}\n`);
    above = [];
  };

  const schedule = (milliseconds: number): void => {
    if (stopped || paused > 0 || away) return;
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

  const leave = (): void => {
    if (stopped || away) return;
    away = true;
    keys?.off();
    if (paused === 0) erase();
  };

  const back = (): void => {
    if (stopped) return;
    // What stands on the screen now is the shell's.
    drawn = [];
    away = false;
    keys?.off();
    soon();
  };

  const press = (pressed: KeyPress, interrupt: () => void): void => {
    switch (pressed.kind) {
      case 'interrupt':
        interrupt();
        return;
      case 'suspend':
        job?.suspend();
        return;
      case 'quit':
        job?.quit();
        return;
      case 'panel':
        live = { ...live, panel: live.panel === pressed.panel ? undefined : pressed.panel, top: 0 };
        break;
      case 'close':
        live = { ...live, panel: undefined, top: 0 };
        break;
      case 'move': {
        const top = Math.min((live.top ?? 0) + pressed.rows, lastTop(state, live, options()));
        live = { ...live, top: Math.max(0, top) };
        break;
      }
      case 'redraw':
        break;
    }
    soon();
  };

  const resize = (): void => soon();
  screen.on('resize', resize);

  return {
    event: (event, before, after) => {
      state = after;
      if (event.type === 'looked') live = { ...live, beats: new Map(), beatAt: new Map() };
      if (
        event.type === 'run-started' ||
        (event.type === 'rank-started' && before.attempts !== after.attempts && event.rank === 0)
      ) {
        live = { ...live, lines: [] };
      }
      if (plain()) {
        const line = plainLine(event, before);
        if (line !== undefined) above.push(unicode ? line : plainAscii(line));
      } else above.push(...finalLines(event, { columns: size().columns, color, unicode }));
      soon();
    },
    live: (update) => {
      if (update.kind === 'beat') {
        if (update.availableBytes === undefined) return;
        live = {
          ...live,
          beats: new Map(live.beats).set(update.node, update.availableBytes),
          beatAt: new Map(live.beatAt).set(update.node, clock.now()),
        };
      } else if (update.kind === 'lines') {
        const { rank, lines } = update;
        live = { ...live, lines: keepLines(live.lines, { rank, lines, at: clock.now() }, KEPT_LINES) };
      }
      if (timer === undefined || clock.now() - lastPaint >= LEAST_MILLISECONDS) soon();
    },
    interrupted: () => {
      live = { ...live, interrupted: true };
      soon();
    },
    listen: (input, interrupt) => {
      keys = keyInput(input, (pressed) => press(pressed, interrupt));
      job = controlJob({ leave, back });
      front = inForeground();
      if (front) keys.on();
    },
    pause: () => {
      keys?.off();
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
      job?.dispose();
      keys?.off();
      erase();
      stopped = true;
      screen.removeListener('resize', resize);
    },
  };
}
