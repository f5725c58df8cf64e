import { describe, expect, test } from 'vitest';
import type { Event } from '../../../src/domain/event.ts';
import { foldAll } from '../../../src/domain/run-state.ts';
import { readAddress, writeAddress } from '../../../src/faces/web/data/address.ts';
import { memoryPicture } from '../../../src/faces/web/picture/memory.ts';
import { attemptPicture } from '../../../src/faces/web/picture/timeline.ts';
import { wiring } from '../../../src/faces/web/picture/wiring.ts';
import { storyFacts } from '../../pretend/facts.ts';

const GIB = 2 ** 30;
const facts = storyFacts();

describe('the memory bar', () => {
  const input = {
    node: 'spark-b',
    facts: facts.find((one) => one.node === 'spark-b'),
    plan: undefined,
    reserveBytes: 6 * GIB,
    going: [],
    planned: true,
  };

  test('lays what cannot move left and what is free right, and the parts make the whole', () => {
    const picture = memoryPicture(input);
    if (!picture.seen) throw new Error(picture.why);
    const kinds = picture.segments.map((one) => one.kind);
    expect(kinds.at(-1)).toBe('free');
    expect(kinds.indexOf('other')).toBeLessThan(kinds.indexOf('cache'));
    const sum = picture.segments.reduce((bytes, one) => bytes + one.bytes, 0);
    expect(Math.abs(sum - picture.totalBytes)).toBeLessThan(GIB / 10);
    const [largest, next] = picture.segments.filter((one) => one.kind === 'other');
    expect(largest?.bytes).toBeGreaterThan(next?.bytes ?? 0);
    expect(picture.sentence).toContain('spark-b');
  });

  test('moves the plan to where it would begin once what is chosen is gone', () => {
    const plan = {
      node: 'spark-b',
      weightsBytes: 60 * GIB,
      kvBytes: 20 * GIB,
      engineBytes: 5 * GIB,
      graphsBytes: 3 * GIB,
      sumBytes: 88 * GIB,
      errorBytes: 2 * GIB,
      canGetBytes: 30 * GIB,
      canGetAfterClearingBytes: 100 * GIB,
      verdict: 'fits' as const,
      rules: [],
    };
    const before = memoryPicture({ ...input, plan });
    const holders = input.facts?.reached && input.facts.holders.known ? input.facts.holders.value : [];
    const going = holders.filter((one) => one.owner.kind !== 'rank').map((one) => one.identity);
    const after = memoryPicture({ ...input, plan, going });
    if (!before.seen || !after.seen) throw new Error('not seen');
    expect(after.segments.some((one) => one.going)).toBe(true);
    expect(after.track?.from).toBeLessThan(before.track?.from ?? 0);
    expect(after.track?.verdict).toBe('fits');
  });

  test('says why there is no bar for a node that nobody saw', () => {
    expect(memoryPicture({ ...input, facts: undefined })).toMatchObject({
      seen: false,
      why: 'not looked at yet',
    });
  });
});

test('the wiring seats the head first, and tells who is reached through whom', () => {
  const hosts = [
    { name: 'spark-a', ssh: '10.1.230.180' },
    { name: 'spark-b', ssh: '192.168.200.13', jump: 'spark-a' },
  ];
  const seats = wiring(hosts, foldAll([]), facts);
  expect(seats.map((seat) => [seat.name, seat.role, seat.ssh])).toEqual([
    ['spark-a', 'head', 'direct'],
    ['spark-b', 'worker', 'through'],
  ]);
  expect(seats[0]?.link.state).toBe('up');
});

test('a rank stands in one column: what it passed is done with its time, what it did not reach is to come', () => {
  const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
  const head = { v: 1, run: '1' } as const;
  const events: readonly Event[] = [
    {
      ...head,
      seq: 1,
      at: at(0),
      type: 'rank-started',
      attempt: 1,
      node: 'spark-a',
      rank: 0,
      role: 'head',
      engine: 'vllm',
      name: 'r0',
      log: '',
      followed: false,
      limits: { weights: 60 },
    },
    ...(['rendezvous', 'weights'] as const).map((stage, index) => ({
      ...head,
      seq: 2 + index,
      at: at(1 + index * 4),
      type: 'rank-stage' as const,
      attempt: 1,
      node: 'spark-a',
      rank: 0,
      stage,
      percent: stage === 'weights' ? 52 : undefined,
      line: 1,
    })),
  ];
  const attempt = foldAll(events).attempts[0];
  if (!attempt) throw new Error('no attempt');
  const cells = (now: number) => attemptPicture(attempt, now * 1000, undefined).rows[0]?.cells ?? [];
  expect(cells(8).map((cell) => cell.state)).toEqual(['done', 'working', 'ahead', 'ahead', 'ahead', 'ahead']);
  expect(cells(8)[0]?.text).toBe('0:05');
  expect(cells(8)[1]).toMatchObject({ strong: '52 %', percent: 52 });
  // Silence beyond a share of its limit is shown, with the limit.
  expect(cells(50)[1]).toMatchObject({ state: 'still', text: 'no progress for 0:45, limit 1:00' });
});

test('an address shows the same again', () => {
  for (const address of [
    '/',
    '/runs',
    '/run/14',
    '/run/14?at=1732',
    '/run/3?ranks=1&stage=weights&level=error&q=gloo',
    '/run/3?ranks=0,1&q=a%2Bb%25&open=1-0-61,2-1-1204',
  ]) {
    const [path = '', query = ''] = address.split('?');
    expect(writeAddress(readAddress(path, query))).toBe(address);
  }
  expect(readAddress('/run/../etc', '')).toMatchObject({ run: undefined });
  expect(readAddress('/', 'at=x&ranks=,,')).toMatchObject({ at: undefined, ranks: [] });
  expect(readAddress('/', 'open=1-0-61,,x,1-2,-1-0-3,01-0-7').open).toEqual(['1-0-61', '1-0-7']);
  const many = Array.from({ length: 60 }, (_, line) => `1-0-${line}`);
  expect(readAddress('/', `open=${many.join(',')}`).open).toEqual(many.slice(-50));
});
