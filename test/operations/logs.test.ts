import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openJournal } from '../../src/journal/sqlite-journal.ts';
import { inputs } from '../../src/operations/inputs.ts';
import { logs } from '../../src/operations/logs.ts';
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
