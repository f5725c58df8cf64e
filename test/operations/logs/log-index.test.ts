import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Journal } from '../../../src/journal/journal.ts';
import { openJournal } from '../../../src/journal/sqlite-journal.ts';
import { LogIndex } from '../../../src/operations/logs/log-index.ts';

const SOURCES = [0, 1].map((rank) => ({ attempt: 1, rank, node: `spark-${rank}` }));

let folder: string;
let journal: Journal;
let run: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fl-index-'));
  journal = openJournal(folder);
  run = journal.newRun();
});
afterEach(() => {
  journal.close();
  rmSync(folder, { recursive: true, force: true });
});

/** So many lines of a rank, one each `every` milliseconds. */
function write(rank: number, count: number, every: number): void {
  const lines = Array.from({ length: count }, (_, at) => ({
    at: at * every,
    text: `rank ${rank} says ${at} ${'and goes on '.repeat(8)}`,
  }));
  journal.appendLog(run, 1, rank, lines);
}

test('long logs of two ranks, one fast and one slow, are one in the order of time', async () => {
  write(0, 20_000, 1);
  write(1, 5000, 7);
  const index = new LogIndex(journal, run);
  await index.update(SOURCES);
  const rows = index.all().map((id) => index.row(id));
  expect(rows).toHaveLength(25_000);
  const sorted = rows.toSorted((a, b) => a.at - b.at || a.rank - b.rank || a.line - b.line);
  expect(rows.map(({ rank, line }) => [rank, line])).toEqual(sorted.map(({ rank, line }) => [rank, line]));
});

test('while a long log is read others have their turn, many times', async () => {
  write(0, 30_000, 1);
  const index = new LogIndex(journal, run);
  let turns = 0;
  let reading = true;
  const other = (): void => {
    turns++;
    if (reading) setImmediate(other);
  };
  setImmediate(other);
  await index.update(SOURCES);
  reading = false;
  // Three megabytes.
  expect(index.all()).toHaveLength(30_000);
  expect(turns).toBeGreaterThan(8);
});

test('a line longer than what is read at once is one line still', async () => {
  write(0, 3, 1);
  const long = `${'x'.repeat(700_000)} end`;
  journal.appendLog(run, 1, 0, [
    { at: 10, text: long },
    { at: 11, text: 'after it' },
  ]);
  const index = new LogIndex(journal, run);
  await index.update(SOURCES);
  expect(index.texts(index.all()).slice(3)).toEqual([long, 'after it']);
});
