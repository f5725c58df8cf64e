import { expect, it } from 'vitest';
import { stripPicture } from '../../../src/faces/web/picture/strip.ts';

const numbers = {
  lines: [1, 1000, 1000, 0],
  milliseconds: [1000, 1000, 100, 0],
  warnings: [1, 0, 0, 0],
  errors: [0, 0, 1, 0],
  quotes: [0, 0, 1, 0],
  marks: [0, 1, 0, 0],
};

it('is darker where lines came faster, and as light as it gets where none came', () => {
  const dark = stripPicture(numbers, { first: 0, visible: 10, total: 10 }, 10, 100)
    .filter(({ name }) => name === '--quiet')
    .map(({ strength }) => strength);
  expect(dark).toHaveLength(4);
  const [slow = 0, fast = 0, fastest = 0, still = 0] = dark;
  expect([...dark].sort((a, b) => a - b)).toEqual([still, slow, fast, fastest]);
  expect(fastest).toBeLessThanOrEqual(0.6);
});

it('shows warnings, errors, quotes and marks where they are, each thick enough to be seen', () => {
  const parts = stripPicture(numbers, { first: 0, visible: 10, total: 10 }, 10, 100);
  const of = (name: string): readonly (readonly number[])[] =>
    parts.filter((part) => part.name === name).map(({ x, y, w }) => [x, y, w]);
  expect(of('--wait')).toEqual([[5, 0, 5]]);
  expect(of('--bad')).toEqual([
    [5, 50, 5],
    [0, 50, 10],
  ]);
  expect(of('--accent')).toEqual([[0, 25, 5]]);
  const long = { ...numbers, lines: Array.from({ length: 1000 }, () => 1), errors: [1] };
  const error = stripPicture(long, { first: 0, visible: 10, total: 1000 }, 10, 100).find(
    ({ name }) => name === '--bad',
  );
  expect(error?.h).toBeGreaterThanOrEqual(2);
});

it('outlines what is in view, within its own bounds, and nothing where all is in view', () => {
  const frame = (first: number, total: number) =>
    stripPicture(undefined, { first, visible: 20, total }, 10, 100).filter(({ name }) => name === '--text');
  expect(frame(0, 20)).toEqual([]);
  for (const first of [0, 500, 999_980]) {
    const sides = frame(first, 1_000_000);
    expect(Math.min(...sides.map(({ y }) => y))).toBeGreaterThanOrEqual(0);
    expect(Math.max(...sides.map(({ y, h }) => y + h))).toBeLessThanOrEqual(100);
  }
  expect(frame(50, 100).find(({ w }) => w === 10)).toMatchObject({ y: 50 });
});
