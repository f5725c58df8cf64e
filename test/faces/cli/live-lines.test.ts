import { expect, test } from 'vitest';
import { keepLines, type LiveLine } from '../../../src/faces/cli/live-lines.ts';

const bar = (percent: number): string =>
  `Loading safetensors checkpoint shards:  ${percent}% Completed | ${Math.round(percent * 0.39)}/39 [01:07<00:38,  2.71s/it]`;

function kept(batches: readonly (readonly [number, readonly string[]])[], most = 200): readonly LiveLine[] {
  return batches.reduce<readonly LiveLine[]>(
    (lines, [rank, fresh], at) => keepLines(lines, { rank, at, lines: fresh }, most),
    [],
  );
}

test('a bar of each rank stands once, as it was last, also between lines of the other rank', () => {
  const lines = kept([
    [0, ['begin', bar(10), bar(21)]],
    [1, [bar(5)]],
    [0, [bar(38), bar(64)]],
    [1, [bar(52)]],
  ]);
  expect(lines.map(({ rank, text }) => `${rank} ${text.slice(0, 45)}`)).toEqual([
    '0 begin',
    '0 Loading safetensors checkpoint shards:  64% C',
    '1 Loading safetensors checkpoint shards:  52% C',
  ]);
});

test('another bar, and a bar after another line, is a line of its own', () => {
  const graphs = 'Capturing batches (bs=8 avail_mem=50.20 GB):  10%|#    | 5/52 [00:01<00:09]';
  expect(kept([[0, [bar(100), graphs, 'a word', bar(10)]]])).toHaveLength(4);
});

test('the engine’s own stamp and rank are cut off, and empty lines and stamps alone with them', () => {
  const lines = kept([
    [0, ['[2026-11-29 23:39:28 TP0] Init torch distributed begin.', '', ' ', '[W1129 not a stamp] x']],
  ]);
  expect(lines.map(({ text }) => text)).toEqual(['Init torch distributed begin.', '[W1129 not a stamp] x']);
});

test('ten thousand lines at once leave the last ones', () => {
  const lines = kept([[0, Array.from({ length: 10_000 }, (_, index) => `line ${index}`)]], 40);
  expect(lines).toHaveLength(40);
  expect(lines.at(-1)?.text).toBe('line 9999');
});
