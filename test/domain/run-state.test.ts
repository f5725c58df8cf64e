import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Event, type EventBody, parseEvent } from '../../src/domain/event.ts';
import { blank, fold, foldAll } from '../../src/domain/run-state.ts';

function events(...bodies: readonly EventBody[]): readonly Event[] {
  return bodies.map((body, index) => ({
    v: 1,
    seq: index + 1,
    run: '7',
    at: new Date(Date.UTC(2026, 10, 29, 12, 0, index)).toISOString(),
    ...body,
  }));
}

function at(second: number): string {
  return new Date(Date.UTC(2026, 10, 29, 12, 0, second)).toISOString();
}

const started: EventBody = {
  type: 'run-started',
  operation: 'up',
  cluster: 'sparks',
  recipe: 'qwen',
  recipeDigest: 'abc',
  nodes: ['spark-a', 'spark-b'],
  controller: { host: 'desk', user: 'me', pid: 1 },
  version: '0.1.0',
};

const step = { id: 's1', node: 'spark-b', title: 'stop vllm.service', kind: 'stop-unit' };
const stepStarted: EventBody = { type: 'step-started', ...step, phase: 'clear', undo: 'command' };
const stepEnded: EventBody = { type: 'step-ended', ...step, result: 'done', text: '', milliseconds: 900 };

function rankStarted(rank: number, attempt = 1): EventBody {
  return {
    type: 'rank-started',
    attempt,
    node: rank === 0 ? 'spark-a' : 'spark-b',
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'sglang',
    name: `qwen-${rank}`,
    log: `logs/7/a${attempt}-r${rank}.log`,
    followed: false,
  };
}

function stage(rank: number, name: 'rendezvous' | 'weights', percent?: number, attempt = 1): EventBody {
  return { type: 'rank-stage', attempt, node: 'x', rank, stage: name, percent, line: 3 };
}

const finding: EventBody = {
  type: 'finding',
  attempt: 1,
  cause: 'loopback-address-advertised',
  node: 'spark-a',
  rank: 0,
  role: 'head',
  stage: 'rendezvous',
  final: true,
  confidence: 1,
  title: 'spark-a told the others that it is 127.0.1.1',
  why: '',
  quotes: [],
  consequences: [],
  advice: [],
  values: {},
};

const applied: EventBody = {
  type: 'remedy-applied',
  attempt: 1,
  cause: 'loopback-address-advertised',
  node: 'spark-a',
  remedy: 'give-addresses',
  title: 'give each rank its own address',
  edits: [{ path: 'network', from: 'engine', to: 'auto' }],
  why: '',
};

const ended: EventBody = { type: 'run-ended', outcome: 'serving', why: 'it answers', exit: 0, owed: [] };

test('no events are a blank state', () => {
  expect(foldAll([])).toEqual(blank);
});

test('a run that begins is known by its names, and is looking', () => {
  expect(foldAll(events(started))).toMatchObject({
    run: '7',
    operation: 'up',
    cluster: 'sparks',
    recipe: 'qwen',
    nodes: ['spark-a', 'spark-b'],
    phase: 'looking',
    startedAt: at(0),
    lastAt: at(0),
    lastSeq: 1,
  });
});

test('a step runs until it has ended, and keeps its phase and its start', () => {
  const running = foldAll(events(started, stepStarted));
  expect(running.phase).toBe('clearing');
  expect(running.steps).toMatchObject([
    { id: 's1', result: 'running', startedAt: at(1), milliseconds: undefined },
  ]);
  expect(foldAll(events(started, stepStarted, stepEnded)).steps).toMatchObject([
    { id: 's1', phase: 'clear', result: 'done', startedAt: at(1), milliseconds: 900 },
  ]);
});

test('a step that is done twice is two steps, and an end without a begin is kept', () => {
  expect(foldAll(events(stepStarted, stepEnded, stepStarted, stepEnded)).steps).toHaveLength(2);
  expect(foldAll(events(stepEnded)).steps).toMatchObject([{ id: 's1', result: 'done', phase: '' }]);
});

test('launch steps are the launching phase', () => {
  expect(foldAll(events(started, { ...stepStarted, phase: 'launch' })).phase).toBe('launching');
});

test('a question waits until it was answered, and the answers add up', () => {
  const asked: EventBody = { type: 'consent-asked', plan: 'abc', steps: [] };
  const waiting = foldAll(events(started, asked));
  expect(waiting.phase).toBe('waiting');
  expect(waiting.asked).toMatchObject(asked);
  const given = foldAll(
    events(started, asked, { type: 'consent-given', steps: ['s1'], refused: [], by: 'me' }, asked, {
      type: 'consent-given',
      steps: ['s2'],
      refused: ['s3'],
      by: 'me',
    }),
  );
  expect(given).toMatchObject({
    phase: 'clearing',
    asked: undefined,
    consented: ['s1', 's2'],
    refused: ['s3'],
  });
});

test('who allows one of two steps leaves the other one asked; who refuses one ends the asking', () => {
  const step = (id: string) => ({
    id,
    node: 'spark-b',
    title: 'Stop it',
    target: {
      identity: id,
      name: id,
      what: 'process',
      kind: 'process',
      user: 'lab',
      pid: 1,
      bytes: 0,
      listens: [],
    } as const,
    undo: { kind: 'irreversible', why: 'it was started with --rm' } as const,
    how: 'kill',
  });
  const both: EventBody = { type: 'consent-asked', plan: 'abc', steps: [step('s1'), step('s2')] };
  const one: EventBody = { type: 'consent-given', steps: ['s1'], refused: [], by: 'me' };
  expect(foldAll(events(started, both, one))).toMatchObject({
    phase: 'waiting',
    asked: { steps: [{ id: 's2' }] },
  });
  expect(foldAll(events(started, both, one, { ...one, steps: ['s2'] })).asked).toBeUndefined();
  expect(foldAll(events(started, both, { ...one, steps: [], refused: ['s1'] }))).toMatchObject({
    phase: 'clearing',
    asked: undefined,
  });
});

test('ranks stand in their order, whichever started first', () => {
  const [attempt] = foldAll(events(started, rankStarted(1), rankStarted(0))).attempts;
  expect(attempt).toMatchObject({ attempt: 1, engine: 'sglang', startedAt: at(1) });
  expect(attempt?.ranks.map((rank) => rank.rank)).toEqual([0, 1]);
});

test('a rank knows when it entered each stage first', () => {
  const state = foldAll(
    events(
      rankStarted(0),
      rankStarted(1),
      stage(1, 'rendezvous'),
      stage(1, 'weights', 10),
      stage(1, 'weights', 50),
    ),
  );
  const [head, worker] = state.attempts[0]?.ranks ?? [];
  expect(head).toMatchObject({ stage: 'start', entered: { start: at(0) } });
  expect(worker).toMatchObject({
    stage: 'weights',
    percent: 50,
    entered: { start: at(1), rendezvous: at(2), weights: at(3) },
  });
});

test('a rank that ended says how, in its own attempt only', () => {
  const end: EventBody = {
    type: 'rank-ended',
    attempt: 2,
    node: 'spark-a',
    rank: 0,
    code: 1,
    requested: false,
  };
  const [first, second] = foldAll(events(rankStarted(0), rankStarted(0, 2), end)).attempts;
  expect(first?.ranks[0]?.ended).toBeUndefined();
  expect(second?.ranks[0]?.ended).toEqual({ code: 1, requested: false, at: at(2) });
});

test('a finding and its remedy stay with the attempt that they are about', () => {
  const proved: EventBody = { ...applied, type: 'remedy-proved', why: 'it got past the rendezvous' };
  const before = foldAll(events(rankStarted(0), finding, applied));
  expect(before.attempts[0]).toMatchObject({
    finding: { cause: 'loopback-address-advertised' },
    remedy: { remedy: 'give-addresses', state: 'applied' },
  });
  const after = foldAll(events(rankStarted(0), finding, applied, rankStarted(0, 2), proved));
  expect(after.attempts).toMatchObject([
    { attempt: 1, remedy: { state: 'proved', why: 'it got past the rendezvous' } },
    { attempt: 2, finding: undefined, remedy: undefined },
  ]);
  expect(
    foldAll(events(rankStarted(0), finding, { ...applied, type: 'remedy-failed' })).attempts,
  ).toMatchObject([{ remedy: { state: 'failed' } }]);
});

test('an ended run asks nothing any more and says why', () => {
  const state = foldAll(events(started, { type: 'consent-asked', plan: 'abc', steps: [] }, ended));
  expect(state).toMatchObject({
    phase: 'ended',
    asked: undefined,
    ended: { outcome: 'serving', why: 'it answers', exit: 0, at: at(2) },
  });
});

test('an event of a type from the future moves the clock and nothing else', () => {
  const json = JSON.stringify({ v: 1, seq: 9, run: '7', at: at(9), type: 'copied-model', bytes: 1 });
  const state = foldAll(events(started));
  expect(fold(state, parseEvent(json))).toEqual({ ...state, lastSeq: 9, lastAt: at(9) });
});

test('what was stored folds to the same state as what happened', () => {
  const all = events(
    started,
    stepStarted,
    stepEnded,
    rankStarted(1),
    stage(1, 'weights', 3),
    finding,
    applied,
    ended,
  );
  expect(foldAll(all.map((event) => parseEvent(JSON.stringify(event))))).toEqual(foldAll(all));
});

test('what is no event is not read as one', () => {
  expect(() => parseEvent('{"v":2,"seq":1,"run":"1","at":"x","type":"note"}')).toThrow();
  expect(() => parseEvent('not json')).toThrow();
});

test('many moves of ranks at once are the same as one after the other', () => {
  const bodies = fc.oneof(
    fc
      .record({
        rank: fc.nat(2),
        name: fc.constantFrom('rendezvous', 'weights'),
        percent: fc.constantFrom(undefined, 1, 2),
        attempt: fc.integer({ min: 1, max: 2 }),
      })
      .map(({ rank, name, percent, attempt }) => stage(rank, name, percent, attempt)),
    fc.constantFrom(rankStarted(0), rankStarted(1), rankStarted(1, 2), finding),
  );
  fc.assert(
    fc.property(fc.array(bodies, { maxLength: 40 }), fc.nat(40), (some, cut) => {
      const all = events(rankStarted(0), ...some);
      const one = all.reduce(fold, blank);
      expect(foldAll(all)).toEqual(one);
      expect(foldAll(all.slice(cut), foldAll(all.slice(0, cut)))).toEqual(one);
    }),
  );
});

test('the fold takes events in any order, and changes no state that it was given', () => {
  const all = events(
    started,
    stepStarted,
    stepEnded,
    rankStarted(1),
    stage(1, 'weights', 3),
    finding,
    applied,
    ended,
  );
  fc.assert(
    fc.property(fc.shuffledSubarray([...all]), (some) => {
      let state = blank;
      for (const event of some) {
        const frozen = JSON.stringify(state);
        const next = fold(state, event);
        expect(JSON.stringify(state)).toBe(frozen);
        state = next;
      }
      expect(state).toEqual(foldAll(some));
    }),
    { numRuns: 100 },
  );
});
