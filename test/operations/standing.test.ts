import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openJournal } from '../../src/journal/sqlite-journal.ts';
import { lockHeld, standing } from '../../src/operations/standing.ts';
import { storyEvents, storyTime, storyUntil } from '../pretend/story-events.ts';

const journal = openJournal(mkdtempSync(join(tmpdir(), 'firstlight-standing-')));
afterAll(() => journal.close());
const clock = { now: () => storyTime(8), wait: async () => {} };
const [started] = storyEvents;
if (started?.type !== 'run-started') expect.fail('the story begins a run');
const { user, host, pid } = started.controller;

/** A run of the story up to that second, and the lock that it holds. */
function working(seconds: number) {
  const run = journal.newRun();
  for (const { v: _v, seq: _seq, run: _run, at: _at, ...body } of storyUntil(seconds))
    journal.append(run, body);
  return {
    owner: `${user}@${host} (pid ${pid})`,
    run,
    since: '2026-11-12T10:02:41.000Z',
    ageSeconds: 2,
    host,
    pid,
  };
}

test('a run that waits for consent tells its steps with their ids', () => {
  expect(standing({ journal, clock }, working(8))).toMatchObject({
    now: { glyph: '◐' },
    asks: [
      { id: '7f3a', node: 'spark-b' },
      { id: 'c21e', node: 'spark-b' },
      { id: '90b4', node: 'spark-b' },
    ],
  });
  expect(standing({ journal, clock }, working(172)).asks).toBeUndefined();
});

test('what of them is allowed is asked no more', () => {
  const lock = working(8);
  journal.append(lock.run, { type: 'consent-given', steps: ['c21e'], refused: [], by: 'aurora' });
  expect(standing({ journal, clock }, lock).asks?.map(({ id }) => id)).toEqual(['7f3a', '90b4']);
});

test('another controller’s run of the same number tells nothing of this one', () => {
  const lock = { ...working(8), owner: 'aurora@elsewhere (pid 7)' };
  expect(standing({ journal, clock }, lock)).toEqual({});
  expect(lockHeld({ journal }, 'spark-a', lock).message).not.toContain('consent');
});

test('who is refused because another run waits for consent is told so, and both ways to answer', () => {
  const lock = working(8);
  const error = lockHeld({ journal }, 'spark-a', lock);
  expect(error.code).toBe('lock-held');
  expect(error.message).toContain(
    `works on spark-a since ${lock.since} (run ${lock.run}), and waits for consent to 7f3a (`,
  );
  expect(error.hint).toBe(
    `answer it there, or here: firstlight consent ${lock.run} 7f3a c21e 90b4 allows all, firstlight consent ${lock.run} --refuse allows none and ends it`,
  );
});

test('who is refused because another run works is told to wait', () => {
  const lock = working(172);
  expect(lockHeld({ journal }, 'spark-a', lock)).toMatchObject({
    message: `${lock.owner} works on spark-a since ${lock.since} (run ${lock.run})`,
    hint: 'wait until it ends, or end it there; firstlight status shows what it does',
  });
});
