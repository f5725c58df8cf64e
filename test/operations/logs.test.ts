import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { EventBody } from '../../src/domain/event.ts';
import { openJournal } from '../../src/journal/sqlite-journal.ts';
import { inputs } from '../../src/operations/inputs.ts';
import { logs } from '../../src/operations/logs.ts';
import type { Live } from '../../src/operations/world.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';
import { storyEvents } from '../pretend/story-events.ts';

const journal = openJournal(mkdtempSync(join(tmpdir(), 'firstlight-logs-')));
afterAll(() => journal.close());
const run = journal.newRun();
for (const { v: _v, seq: _seq, run: _run, at: _at, ...body } of storyEvents) journal.append(run, body);
const world = {
  ...pretendWorld({ signal: new AbortController().signal, live: () => {}, onEvent: () => {} }),
  journal,
};

test('a rank that the run does not have is named, with those it has', async () => {
  await expect(logs.run(inputs.logs.parse({ rank: 7 }), world)).rejects.toMatchObject({
    code: 'bad-input',
    message: `run ${run} has no rank 7`,
    hint: 'its ranks are: 0, 1',
  });
});

test('a tail of no lines, a line 0 and a rank below 0 are refused', () => {
  for (const input of [{ tail: 0 }, { tail: -1 }, { rank: 0, line: 0 }, { rank: -1 }, { attempt: 0 }])
    expect(inputs.logs.safeParse(input).success, JSON.stringify(input)).toBe(false);
});

test('a later run that was kept out by a lock hides nothing of the one that launched', async () => {
  const kept = journal.newRun();
  const [started] = storyEvents;
  if (started?.type !== 'run-started') expect.fail('the story begins a run');
  const { v: _v, seq: _seq, run: _run, at: _at, ...body } = started;
  journal.append(kept, body);
  const { report: during } = await logs.run(inputs.logs.parse({}), world);
  expect(during).toMatchObject({ kind: 'logs', run: kept });
  journal.append(kept, { type: 'run-ended', outcome: 'cancelled', why: 'locked', exit: 2, owed: [] });
  const { report } = await logs.run(inputs.logs.parse({}), world);
  expect(report).toMatchObject({ kind: 'logs', run });
});

test('following begins with the tail that was asked for, goes on into the next attempt, and misses no last line', async () => {
  const told: string[] = [];
  const followed = journal.newRun();
  const append = (body: EventBody) => journal.append(followed, body);
  const start = (attempt: number) => {
    const event = storyEvents.find((one) => one.type === 'rank-started' && one.rank === 0);
    if (event?.type !== 'rank-started') expect.fail('a rank of the story');
    const { v: _v, seq: _seq, run: _run, at: _at, ...body } = event;
    append({ ...body, attempt });
  };
  const write = (attempt: number, text: string) =>
    journal.appendLog(followed, attempt, 0, [{ at: Date.now(), text }]);
  const [begun] = storyEvents;
  if (begun?.type !== 'run-started') expect.fail('the story begins a run');
  const { v: _v, seq: _seq, run: _run, at: _at, ...opening } = begun;
  append(opening);
  start(1);
  for (const line of [1, 2, 3]) write(1, `first ${line}`);
  let waits = 0;
  const following = {
    ...world,
    live: (update: Live) => {
      if (update.kind === 'lines') told.push(...update.lines);
    },
    clock: {
      now: () => Date.now(),
      wait: async () => {
        waits += 1;
        if (waits === 1) {
          write(1, 'first 4');
          start(2);
          write(2, 'second 1');
        } else {
          write(2, 'the last');
          append({ type: 'run-ended', outcome: 'not-serving', why: 'it ended', exit: 1, owed: [] });
        }
      },
    },
  };
  await logs.run(inputs.logs.parse({ follow: true, tail: 1, run: followed }), following);
  expect(told).toEqual(['first 3', 'first 4', 'second 1', 'the last']);
});
