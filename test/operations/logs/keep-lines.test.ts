import { expect, it } from 'vitest';
import { keepLines } from '../../../src/operations/logs/keep-lines.ts';

it('a long log keeps its beginning and its end, however many lines come at once', () => {
  const kept: number[] = [];
  keepLines(kept, [0, 1, 2]);
  keepLines(
    kept,
    Array.from({ length: 300_000 }, (_, at) => at + 3),
  );
  expect(kept).toHaveLength(40_000);
  expect(kept.slice(0, 4)).toEqual([0, 1, 2, 3]);
  expect(kept.at(-1)).toBe(300_002);
});
