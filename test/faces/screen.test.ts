import { expect, test } from 'vitest';
import { blank, fold } from '../../src/domain/run-state.ts';
import { createLiveView } from '../../src/faces/cli/live-screen.ts';
import { storyEvents } from '../pretend/story-events.ts';
import './golden.ts';

/**
 * As much of a terminal as the view uses: cursor up, erase below, erase a row, newline at the bottom scrolls. As in
 * tmux, what is erased from the first row of the screen on stays in the history.
 */
function terminal(columns: number, rows: number) {
  const lines: string[] = [''];
  let row = 0;
  let resize: (() => void) | undefined;
  const writes: string[] = [];
  const screen = {
    columns,
    rows,
    write(text: string) {
      writes.push(text);
      for (const [, up, other, plain] of text.matchAll(
        /\x1b\[(\d+)A|(\x1b\[[?\d;]*[a-zA-Z]|\r)|([^\x1b\r]+)/g,
      )) {
        if (up !== undefined) row = Math.max(0, lines.length - screen.rows, row - Number(up));
        else if (other === '\x1b[J') {
          if (row > 0 && row === lines.length - screen.rows) row = lines.push('') - 1;
          lines.splice(row, lines.length, '');
        } else if (other === '\x1b[2K') lines[row] = '';
        else if (plain !== undefined) {
          for (const [index, part] of plain.split('\n').entries()) {
            if (index > 0) {
              row += 1;
              lines[row] ??= '';
            }
            lines[row] = (lines[row] ?? '') + part;
          }
        }
      }
      return true;
    },
    on: (_: 'resize', listener: () => void) => {
      resize = listener;
    },
    removeListener: () => {
      resize = undefined;
    },
  };
  return { screen, lines, writes, resized: () => resize?.(), listens: () => resize !== undefined };
}

async function turn(milliseconds = 0): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

test('each repaint is one write over the last, what is final stays above, and the end leaves no drawing', async () => {
  const { screen, lines, writes, listens } = terminal(80, 24);
  let now = 0;
  const view = createLiveView(screen, { LANG: 'C.UTF-8', NO_COLOR: '1' }, { now: () => now });
  let state = blank;
  let painted = 0;
  for (const event of storyEvents.slice(0, -1)) {
    const before = state;
    state = fold(state, event);
    now = Date.parse(event.at) + painted * 200;
    view.event(event, before, state);
    const count = writes.length;
    await turn(1);
    expect(writes.length - count).toBeLessThanOrEqual(1);
    painted += 1;
  }
  now += 1000;
  await turn(110);
  expect(lines.filter((line) => line.includes('firstlight up qwen3.5-122b'))).toHaveLength(1);
  expect(lines.filter((line) => line.includes('Ctrl-C'))).toHaveLength(1);
  expect(lines.filter((line) => line.includes('✓ spark-b  stop ollama.service'))).toHaveLength(1);
  view.stop();
  expect(lines.join('\n')).not.toContain('Ctrl-C');
  expect(lines.join('\n')).toContain('✓ remedy proved: network: engine → auto');
  expect(writes.at(-1)?.endsWith('\x1b[?25h')).toBe(true);
  expect(listens()).toBe(false);
});

test('repaints are at most ten a second however many events and lines come', async () => {
  const { screen, writes } = terminal(80, 24);
  const view = createLiveView(screen, { LANG: 'C.UTF-8' }, { now: Date.now });
  let state = blank;
  for (const event of storyEvents.slice(0, 30)) {
    const before = state;
    state = fold(state, event);
    view.event(event, before, state);
  }
  const from = Date.now();
  // A machine that stands still for a moment gets its third repaint later.
  while (Date.now() - from < 350 || writes.length < 3) {
    view.live({ kind: 'lines', rank: 0, node: 'spark-a', lines: ['x'] });
    await turn(1);
  }
  const most = Math.ceil((Date.now() - from) / 100) + 2;
  view.stop();
  expect(writes.length).toBeLessThanOrEqual(most);
});

test('a question takes the drawing away until it is answered', async () => {
  const { screen, lines, writes } = terminal(80, 24);
  const view = createLiveView(screen, { LANG: 'C.UTF-8' }, { now: Date.now });
  let state = blank;
  for (const event of storyEvents.slice(0, 4)) {
    const before = state;
    state = fold(state, event);
    view.event(event, before, state);
  }
  await turn(5);
  const resume = view.pause();
  const count = writes.length;
  expect(lines.join('\n')).not.toContain('Ctrl-C');
  view.live({ kind: 'lines', rank: 0, node: 'spark-a', lines: ['x'] });
  await turn(120);
  expect(writes).toHaveLength(count);
  resume();
  await turn(120);
  expect(lines.join('\n')).toContain('Ctrl-C');
  view.stop();
});

test('after a resize the drawing is made anew at the new width', async () => {
  const { screen, lines, resized } = terminal(120, 24);
  const view = createLiveView(screen, { LANG: 'C.UTF-8', NO_COLOR: '1' }, { now: Date.now });
  let state = blank;
  for (const event of storyEvents.slice(0, 30)) {
    const before = state;
    state = fold(state, event);
    view.event(event, before, state);
  }
  await turn(5);
  screen.columns = 70;
  resized();
  await turn(120);
  const last = lines.findLastIndex((line) => line.includes('Ctrl-C'));
  expect(lines[last]?.length).toBeLessThanOrEqual(70);
  view.stop();
});

test('a drawing as high as the screen leaves no copies of itself in the history', async () => {
  const { screen, lines } = terminal(80, 16);
  let now = 0;
  const view = createLiveView(screen, { LANG: 'C.UTF-8', NO_COLOR: '1' }, { now: () => now });
  let state = blank;
  for (const event of storyEvents.slice(0, -1)) {
    const before = state;
    state = fold(state, event);
    now += 1000;
    view.event(event, before, state);
    view.live({ kind: 'lines', rank: 0, node: 'spark-a', lines: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] });
    await turn(1);
  }
  await turn(5);
  expect(lines.filter((line) => line.includes('Ctrl-C'))).toHaveLength(1);
  view.stop();
  expect(lines.join('\n')).not.toContain('Ctrl-C');
});
