import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { blank, fold, foldAll } from '../../../src/domain/run-state.ts';
import { inForeground } from '../../../src/faces/cli/foreground.ts';
import { keysLine, pressesIn } from '../../../src/faces/cli/keys.ts';
import { createLiveView } from '../../../src/faces/cli/live-screen.ts';
import { type LiveState, noLive } from '../../../src/faces/cli/live-state.ts';
import { frame, lastTop } from '../../../src/faces/cli/live-view.ts';
import { width } from '../../../src/faces/cli/width.ts';
import { storyEvents, storyTime, storyUntil } from '../../pretend/story-events.ts';
import { golden } from '../golden.ts';
import { operation, run, Terminal } from '../run-cli.ts';

const LINES = Array.from({ length: 60 }, (_, index) => ({
  rank: index % 2,
  at: storyTime(150) + index * 300,
  text: `line ${index}`,
}));
const SIZE = { columns: 80, rows: 24, color: false, unicode: true };

function shown(seconds: number, live: Partial<LiveState>, size: Partial<typeof SIZE> = {}) {
  const options = { ...SIZE, ...size, now: storyTime(seconds) };
  return frame(foldAll(storyUntil(seconds)), { ...noLive, keys: true, ...live }, options);
}

test('each key opens its part, an arrow is no letter, and pasted text presses nothing', () => {
  expect(pressesIn('lmp?')).toEqual([
    { kind: 'panel', panel: 'log' },
    { kind: 'panel', panel: 'memory' },
    { kind: 'panel', panel: 'plan' },
    { kind: 'panel', panel: 'keys' },
  ]);
  expect(pressesIn('\x03')).toEqual([{ kind: 'interrupt' }]);
  expect(pressesIn('\x1b')).toEqual([{ kind: 'close' }]);
  expect(pressesIn('\x1b[B\x1bOA\x1b[6~')).toEqual([
    { kind: 'move', rows: 1 },
    { kind: 'move', rows: -1 },
    { kind: 'move', rows: 10 },
  ]);
  expect(pressesIn('\x1b[1;5l\x1bm\x1bOl\x1b[200~mlp\x03\x1b[201~x1y\r')).toEqual([]);
});

for (const panel of ['log', 'memory', 'plan', 'keys'] as const) {
  test(`${panel} is opened at 80 by 24 as read`, () => {
    golden(`live-80x24-open-${panel}`, `${shown(172, { panel, lines: LINES }).join('\n')}\n`);
  });
}

test('the last row names the keys where they are read, and what Ctrl-C does in every case', () => {
  const last = (seconds: number, live: Partial<LiveState>, columns: number) =>
    shown(seconds, live, { columns }).at(-1) ?? '';
  expect(last(172, {}, 80)).toBe(
    'l log   m memory   p plan   ? keys             Ctrl-C detaches, the ranks run on',
  );
  expect(last(172, { keys: false }, 80).trimStart()).toBe('Ctrl-C detaches, the ranks run on');
  expect(last(172, {}, 60)).toMatch(/^\? keys +Ctrl-C detaches, the ranks run on$/);
  expect(last(172, { panel: 'memory' }, 60)).toMatch(/^m back +Ctrl-C detaches, the ranks run on$/);
  expect(last(40, {}, 60)).toMatch(/^ *Ctrl-C ends after this step; firstlight restore gives back$/);
  expect(keysLine('log', 40)).toBe('l back   m memory   p plan   ? keys');
});

test('what does not fit of an open part can be moved to, as far as its end', () => {
  const size = { columns: 80, rows: 16 };
  const first = shown(5, { panel: 'plan' }, size);
  expect(first.find((line) => line.includes('more below'))).toBeDefined();
  const options = { ...SIZE, ...size, now: storyTime(5) };
  const top = lastTop(foldAll(storyUntil(5)), { ...noLive, panel: 'plan' }, options);
  expect(top).toBeGreaterThan(0);
  const end = shown(5, { panel: 'plan', top: 99 }, size);
  expect(end).toEqual(shown(5, { panel: 'plan', top }, size));
  expect(end.at(-2)).toContain('error bar');
  expect(end.find((line) => line.includes('more'))).toContain(`${top} more above`);
});

test('no open part is wider or higher than the terminal', () => {
  for (let count = 1; count <= storyEvents.length; count += 3) {
    const state = foldAll(storyEvents.slice(0, count));
    const now = Date.parse(state.lastAt ?? '') + 1000;
    for (const panel of ['log', 'memory', 'plan', 'keys'] as const) {
      for (const [columns, rows] of [
        [60, 16],
        [80, 40],
        [120, 30],
      ] as const) {
        const lines = frame(
          state,
          { ...noLive, keys: true, panel, lines: LINES },
          { columns, rows, now, color: true, unicode: count % 2 === 0 },
        );
        expect(lines.length).toBeLessThan(rows);
        for (const line of lines) expect(width(line), line).toBeLessThanOrEqual(columns);
        expect(lines.at(-1)).toContain('Ctrl-C');
      }
    }
  }
});

/** A view over a screen that keeps what is written, with the story told up to its 30th event. */
function drawing(columns: number, rows: number) {
  const writes: string[] = [];
  const listeners: (() => void)[] = [];
  const screen = {
    columns,
    rows,
    write: (text: string) => writes.push(text),
    on: (_: 'resize', listener: () => void) => listeners.push(listener),
    removeListener: () => undefined,
  };
  const view = createLiveView(screen, { LANG: 'C.UTF-8', NO_COLOR: '1' }, { now: Date.now });
  let state = blank;
  const tell = (from: number, to: number): void => {
    for (const event of storyEvents.slice(from, to)) {
      const before = state;
      state = fold(state, event);
      view.event(event, before, state);
    }
  };
  tell(0, 30);
  return { screen, view, tell, writes, resize: () => listeners.forEach((listener) => void listener()) };
}

async function until(holds: () => boolean): Promise<void> {
  for (let turns = 0; !holds() && turns < 300; turns += 1) await new Promise((done) => setTimeout(done, 10));
  expect(holds()).toBe(true);
}

test('keys are read in raw mode while it draws, not while a question stands, and never after the end', async () => {
  const { view, writes } = drawing(80, 24);
  const input = new Terminal();
  let interrupts = 0;
  view.listen(input, () => {
    interrupts += 1;
  });
  await until(() => /l log +m memory/.test(writes.join('')));
  input.write('m');
  await until(() => writes.at(-1)?.includes('m back') === true);
  input.write('\x03');
  await until(() => interrupts === 1);
  const resume = view.pause();
  expect(input.isRaw).toBe(false);
  expect(input.listenerCount('data')).toBe(0);
  resume();
  await until(() => input.isRaw);
  view.stop();
  expect(input.isRaw).toBe(false);
  expect(input.listenerCount('data')).toBe(0);
  expect(writes.at(-1)?.endsWith('\x1b[?25h')).toBe(true);
});

test('what is no terminal is not read, and the last row names no keys', async () => {
  const { view, writes } = drawing(80, 24);
  const input = new PassThrough();
  input.write('m');
  view.listen(input, () => {});
  await until(() => writes.join('').includes('Ctrl-C'));
  expect(input.listenerCount('data')).toBe(0);
  expect(input.readableLength).toBe(1);
  expect(writes.join('')).not.toContain('m memory');
  view.stop();
});

test('a terminal that was closed ends the keys, not the run', async () => {
  const { view, writes } = drawing(80, 24);
  const input = new Terminal();
  view.listen(input, () => {});
  await until(() => input.isRaw);
  input.emit('error', Object.assign(new Error('read EIO'), { code: 'EIO' }));
  expect(input.listenerCount('data')).toBe(0);
  const count = writes.length;
  await until(() => writes.length > count);
  view.stop();
});

test('a window that is made too small gets plain lines, and the drawing again once it is large enough', async () => {
  const { screen, view, tell, writes, resize } = drawing(80, 24);
  await until(() => writes.join('').includes('Ctrl-C'));
  screen.columns = 50;
  resize();
  const erased = writes.length;
  await until(() => writes.length > erased);
  tell(30, 34);
  await until(() => /^\d\d:\d\d:\d\d {2}\w/.test(writes.at(-1) ?? ''));
  expect(writes.at(-1)).not.toContain('Ctrl-C');
  expect(writes.at(-1)).not.toContain('\x1b');
  screen.columns = 80;
  resize();
  await until(() => writes.at(-1)?.includes('Ctrl-C') === true);
  view.stop();
});

test('whether a process is in front is read from its line in /proc, whatever its name', () => {
  const stat = (group: number, front: number) => () =>
    `77 (a (b) 9 c) S 70 ${group} 60 34816 ${front} 4194304 1`;
  expect(inForeground(stat(77, 77))).toBe(true);
  expect(inForeground(stat(77, 60))).toBe(false);
  expect(inForeground(stat(77, -1))).toBe(true);
  expect(
    inForeground(() => {
      throw new Error('no /proc');
    }),
  ).toBe(true);
});

test('in raw mode Ctrl-C is heard by the face: the first stops the work, the second leaves, in line mode again', async () => {
  const stdin = new Terminal();
  const stderr = new Terminal();
  const stubborn = operation('up', async (_input, world) => {
    const id = world.journal.newRun();
    for (const event of storyUntil(88)) {
      const { v: _v, seq: _seq, run: _run, at: _at, ...body } = event;
      world.journal.append(id, body);
    }
    await until(() => stdin.isRaw);
    stdin.write('\x03');
    await until(() => world.signal.aborted);
    stdin.write('\x03');
    await until(() => !stdin.isRaw);
    return { report: { kind: 'runs', runs: [] }, exit: 0 };
  });
  expect((await run(['up', 'r.yaml'], [stubborn], { stdin, stderr })).left).toEqual([130]);
});
