import { expect, it } from 'vitest';
import { fileLines } from '../../src/diagnosis/file-lines.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

it('a line without an end does not fill the memory, and keeps its number', () => {
  const file = fileLines();
  expect(file.take(bytes('first\n'), 0)).toMatchObject([{ line: 1, text: 'first' }]);
  const bar = bytes(`${' 50%|#### |'.repeat(5)}\r`.repeat(40_000));
  const told = file.take(bar, 0);
  expect(told.length).toBeGreaterThan(30_000);
  expect(new Set(told.map(({ line }) => line))).toEqual(new Set([2]));
  expect(file.take(bytes('100%\nlast\n'), 0)).toMatchObject([
    { line: 2, text: '100%' },
    { line: 3, text: 'last' },
  ]);
});

it('takes more lines at once than a call has arguments', () => {
  expect(fileLines().take(bytes(`${'.\r'.repeat(300_000)}\n`), 0).length).toBeGreaterThan(200_000);
});
