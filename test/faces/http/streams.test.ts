import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseEvent } from '../../../src/domain/event.ts';
import { openStream, type Stream } from './read-stream.ts';
import { openRig, type Rig, started } from './rig.ts';

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterAll(() => rig.close());

const stream = (run: string, more = '', headers: Readonly<Record<string, string>> = {}): Promise<Stream> =>
  openStream(rig.port, `/api/runs/${run}/events${more}`, {
    Authorization: `Bearer ${rig.addresses.read}`,
    ...headers,
  });

function note(run: string, text: string): void {
  rig.journal.append(run, { type: 'note', level: 'info', node: undefined, text });
}

function newRun(): string {
  const run = rig.journal.newRun();
  rig.journal.append(run, started);
  return run;
}

function end(run: string): void {
  rig.journal.append(run, { type: 'run-ended', outcome: 'serving', why: 'it answers', exit: 0, owed: [] });
}

describe('a stream of events', () => {
  it('has what another process writes, each once and in order, and ends after run-ended', async () => {
    const run = newRun();
    note(run, 'before');
    const one = await stream(run);
    await one.until((messages) => messages.length === 2);
    note(run, 'while it is open');
    end(run);
    await one.ended;
    expect(one.messages.map(({ id }) => id)).toEqual(['1', '2', '3', '4']);
    const events = one.messages.map(({ data }) => parseEvent(data));
    expect(events).toEqual(rig.journal.read(run));
    expect(events.at(-1)?.type).toBe('run-ended');
  });

  it('goes on from Last-Event-ID, and tells a browser that comes back to an ended run that there is no more', async () => {
    const run = newRun();
    for (let at = 0; at < 5; at += 1) note(run, `${at}`);
    const one = await stream(run, '', { 'Last-Event-ID': '4' });
    await one.until((messages) => messages.length === 2);
    expect(one.messages.map(({ id }) => id)).toEqual(['5', '6']);
    end(run);
    await one.ended;
    expect((await stream(run, '', { 'Last-Event-ID': '7' })).status).toBe(204);
    const after = await stream(run, '?after=6');
    await after.ended;
    expect(after.messages.map(({ id }) => id)).toEqual(['7']);
  });

  it('stays open where the page asked for other channels, and tells of a newer run', async () => {
    const run = newRun();
    end(run);
    const one = await stream(run, '?with=log');
    await one.until((messages) => messages.some(({ event }) => event === 'runs'));
    const next = newRun();
    await one.until((messages) =>
      messages.some(({ event, data }) => event === 'runs' && data.includes(`"newest":"${next}"`)),
    );
    expect(one.messages.filter(({ event }) => event === 'event').map(({ id }) => id)).toEqual(['1', '2']);
    one.close();
  });

  it('shows the log of ranks as it grows, by its newest state', async () => {
    const run = newRun();
    rig.journal.append(run, {
      type: 'rank-started',
      attempt: 1,
      node: 'spark-a',
      rank: 0,
      role: 'head',
      engine: 'vllm',
      name: 'tiny-r0',
      log: '/log',
      followed: false,
    });
    const one = await stream(run, '?with=log');
    await one.until((messages) => messages.length > 1);
    rig.journal.appendLog(run, 1, 0, [
      { at: 1000, text: 'first' },
      { at: 2000, text: 'ERROR second' },
    ]);
    await one.until((messages) =>
      messages.some(({ event, data }) => event === 'log' && JSON.parse(data).value.total === 2),
    );
    const last = one.messages.findLast(({ event }) => event === 'log');
    expect(JSON.parse(last?.data ?? '{}').value).toMatchObject({
      total: 2,
      errors: 1,
      rows: [{ text: 'first' }, { text: 'ERROR second', level: 'error', node: 'spark-a' }],
    });
    one.close();
  });

  it('refuses a channel that is none, and a run that is none', async () => {
    expect((await stream('999999')).status).toBe(404);
    expect((await stream(newRun(), '?with=ledger,secrets')).status).toBe(422);
  });

  it('is not slowed by a reader that takes nothing; what it did not take waits in the journal', async () => {
    const run = newRun();
    const slow = await stream(run);
    await slow.until((messages) => messages.length === 1);
    slow.pause();
    const fast = await stream(run);
    const text = 'x'.repeat(200_000);
    // 30 MB that the slow reader has not taken.
    for (let at = 0; at < 150; at += 1) {
      note(run, `${at} ${text}`);
      if (at % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await fast.until((messages) => messages.length === 151, 30_000);
    slow.resume();
    end(run);
    await slow.ended;
    await fast.ended;
    // What it had not taken was kept for it in the journal.
    expect(slow.messages.map(({ id }) => Number(id))).toEqual(Array.from({ length: 152 }, (_, at) => at + 1));
    expect(fast.messages).toHaveLength(152);
  }, 60_000);
});

it('a server that ends lets no stream read on in a journal that is closed', async () => {
  const ending = await openRig();
  const run = ending.journal.newRun();
  for (let at = 0; at < 600; at += 1)
    ending.journal.append(run, { type: 'note', level: 'info', node: undefined, text: `${at}` });
  const one = await openStream(ending.port, `/api/runs/${run}/events`, {
    Authorization: `Bearer ${ending.addresses.read}`,
  });
  await one.until((messages) => messages.length > 10);
  // A read after this would throw where nobody catches it.
  await ending.close();
  await one.ended;
  expect(one.messages.length).toBeLessThan(600);
});
