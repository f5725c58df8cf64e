import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Event } from '../../../src/domain/event.ts';
import { foldAll, type RunState } from '../../../src/domain/run-state.ts';
import { openJournal } from '../../../src/journal/sqlite-journal.ts';
import { type LogQuery, logWindow } from '../../../src/operations/logs/log-window.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-window-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ALL: LogQuery = {
  from: undefined,
  count: 10,
  ranks: [],
  attempt: undefined,
  stage: undefined,
  level: undefined,
  q: '',
  fold: false,
  open: [],
};

function state(run: string): RunState {
  const head = { v: 1, run } as const;
  const started = (seq: number, rank: number): Event => ({
    ...head,
    seq,
    at: '1970-01-01T00:00:01.000Z',
    type: 'rank-started',
    attempt: 1,
    node: `spark-${rank}`,
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'vllm',
    name: `r${rank}`,
    log: '',
    followed: false,
  });
  const stage: Event = {
    ...head,
    seq: 4,
    at: '1970-01-01T00:00:02.500Z',
    type: 'rank-stage',
    attempt: 1,
    node: 'spark-0',
    rank: 0,
    stage: 'weights',
    percent: undefined,
    line: 2,
  };
  return foldAll([started(2, 0), started(3, 1), stage]);
}

test('a window merges the ranks by time, filters, searches, finds a line, and goes on as the files grow', async () => {
  const journal = openJournal(folder);
  const run = journal.newRun();
  journal.append(run, {
    type: 'run-started',
    operation: 'up',
    cluster: 'c',
    recipe: 'r',
    recipeDigest: undefined,
    nodes: [],
    controller: { host: 'h', user: 'u', pid: 1 },
    version: '0',
  });
  journal.appendLog(run, 1, 0, [
    { at: 1000, text: 'head one' },
    { at: 3000, text: 'ERROR head two: größer' },
    // Its clock went back: the order within a rank stays.
    { at: 2000, text: 'head three' },
  ]);
  journal.appendLog(run, 1, 1, [{ at: 1500, text: 'WARNING worker one' }]);
  const seen = { ...state(run), run };
  const world = { journal };
  const texts = async (query: Partial<LogQuery>): Promise<readonly string[]> =>
    (await logWindow(world, seen, { ...ALL, ...query })).rows.map((row) => row.text);

  expect(await texts({})).toEqual(['head one', 'WARNING worker one', 'ERROR head two: größer', 'head three']);
  const all = await logWindow(world, seen, ALL);
  expect(all).toMatchObject({ total: 4, from: 0, warnings: 1, errors: 1 });
  expect(all.rows[2]).toMatchObject({ rank: 0, node: 'spark-0', line: 2, level: 'error', stage: 'weights' });
  expect(await texts({ ranks: [1] })).toEqual(['WARNING worker one']);
  expect(await texts({ level: 'error' })).toEqual(['ERROR head two: größer']);
  expect(await texts({ stage: 'start' })).toEqual(['head one', 'WARNING worker one']);
  expect(await texts({ q: 'HEAD T' })).toEqual(['ERROR head two: größer', 'head three']);
  expect(await texts({ around: { attempt: 1, rank: 0, line: 2 }, count: 1 })).toEqual([
    'ERROR head two: größer',
  ]);

  journal.appendLog(run, 1, 1, [
    { at: 1700, text: 'worker two, late' },
    { at: 9000, text: 'worker head tail' },
  ]);
  expect(await texts({})).toEqual([
    'head one',
    'WARNING worker one',
    'worker two, late',
    'ERROR head two: größer',
    'head three',
    'worker head tail',
  ]);
  expect(await texts({ q: 'head t' })).toEqual(['ERROR head two: größer', 'head three', 'worker head tail']);
  for (const q of ['one', 'two', 'three', 'tail', 'late']) await texts({ q });
  journal.appendLog(run, 1, 1, [{ at: 9500, text: 'another head t' }]);
  expect(await texts({ q: 'head t' })).toHaveLength(4);
  expect(await texts({ q: 'another' })).toEqual(['another head t']);
  expect(await texts({ count: 2 })).toEqual(['worker head tail', 'another head t']);
  // Several who seek the same at once, while it grows, all find all of it.
  const asked = [texts({ q: 'ER' }), texts({ q: 'ER' })];
  journal.appendLog(run, 1, 0, [{ at: 9900, text: 'over' }]);
  asked.push(texts({ q: 'ER' }));
  await Promise.all(asked);
  expect((await texts({ q: 'ER' })).at(-1)).toBe('over');
  expect(await texts({ attempt: 2 })).toEqual([]);
  journal.close();
});
