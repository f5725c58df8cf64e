import { expect, test } from 'vitest';
import { unknown } from '../../src/domain/facts.ts';
import { NOW_CHARACTERS, nowLine, unreadLine } from '../../src/domain/now-line.ts';
import { blank, foldAll, type RunState } from '../../src/domain/run-state.ts';
import {
  clearPlan,
  downEvents,
  failedEvents,
  storyEvents,
  storyTime,
  storyUntil,
} from '../pretend/story-events.ts';
import { golden } from './golden.ts';

function at(seconds: number, change: (state: RunState) => RunState = (state) => state): string {
  const line = nowLine(change(foldAll(storyUntil(seconds))), storyTime(seconds));
  return `${line.glyph} ${line.sentence}`.trim();
}

test('before any run it says what to type', () => {
  expect(nowLine(blank, 0).sentence).toBe('No run yet. Bring a model up with `firstlight up RECIPE`');
});

test('a run that could not be read says so, and where the runs are listed', () => {
  expect(unreadLine('999', '/runs')).toEqual({
    glyph: '?',
    sentence: 'Run 999 cannot be shown',
    next: 'All runs: /runs',
  });
  expect(unreadLine('9'.repeat(90), '/runs').sentence).toHaveLength(NOW_CHARACTERS);
});

test('a plan says whether it fits, with how much to spare, and how many steps ask', () => {
  expect(at(88)).toBe('◔ Fits on both nodes with 16.5 GiB to spare; 2 steps, none asks you');
  expect(at(4)).toBe('◔ Fits on both nodes with 16.5 GiB to spare; 6 steps, 3 ask you');
});

test('a plan that does not fit says how much is missing', () => {
  const short = at(88, (state) => ({
    ...state,
    plan: {
      ...clearPlan,
      memory: clearPlan.memory.map((node) => ({
        ...node,
        canGetAfterClearingBytes: node.sumBytes - 4.4 * 2 ** 30,
        verdict: 'does-not-fit',
      })),
    },
  }));
  expect(short).toBe('◔ Does not fit on spark-a, 4.4 GiB short; 2 steps, none asks you');
});

test('a question names how many things, where and how much they hold', () => {
  expect(at(8)).toBe('◐ Waiting for you: 3 things on spark-b hold 74.7 GiB');
});

test('clearing names the step that runs', () => {
  expect(at(40)).toBe('◔ On spark-b: end python train.py (48122)');
});

test('weights show the percent of every node', () => {
  expect(at(172)).toBe('◔ Loading weights: 64 % on spark-a, 52 % on spark-b');
});

test('weights of many nodes are said as a range', () => {
  const many = at(172, (state) => ({
    ...state,
    attempts: state.attempts.map((attempt) => ({
      ...attempt,
      ranks: Array.from({ length: 8 }, (_, rank) => ({
        ...(attempt.ranks[0] ?? expect.fail('a rank')),
        rank,
        node: `a-rather-long-name-${rank}`,
        percent: 52 + rank,
      })),
    })),
  }));
  expect(many).toBe('◔ Loading weights: 52 to 59 % on 8 nodes');
});

test('a rank that stands still is named with its limit', () => {
  expect(at(213.9)).toBe('! spark-b has shown no progress for 0:47; at 2:00 this is a finding');
});

test('a failure with a remedy under way says both', () => {
  expect(at(133)).toBe('✕ spark-b advertised a loopback address; trying again');
});

test('a failure in two engines says so at the end', () => {
  const state = foldAll(failedEvents);
  const line = nowLine(state, storyTime(500));
  expect(`${line.glyph} ${line.sentence}`).toBe(
    '✕ Not serving: spark-b advertised a loopback address, in both engines',
  );
});

test('a node out of sight is unknown, with what answers and what does not', () => {
  const lost = at(3, (state) => ({
    ...state,
    facts: [
      {
        node: 'spark-b',
        at: '2026-11-12T10:02:44.000Z',
        reached: false,
        failure: {
          kind: 'unreachable',
          why: 'timeout-banner',
          sentence: 'spark-b takes the connection and says nothing.',
          remedy: 'look at its console',
          text: '',
        },
      },
    ],
  }));
  expect(lost).toBe('? spark-b does not answer: TCP connects, no SSH banner');
});

test('serving says since when', () => {
  expect(at(270)).toBe('✓ Serving qwen3.5-122b since 10:07:02');
});

test('after down it says what is owed', () => {
  const line = nowLine(foldAll(downEvents), storyTime(2000));
  expect(`${line.glyph}${line.sentence}`).toBe('Stopped. 2 things on spark-b are not given back yet');
});

test('after down that gives back too it says that it will, not that it has not yet', () => {
  const ends = (more: { readonly givesBack?: true }) =>
    nowLine(
      foldAll(downEvents.map((event) => (event.type === 'run-ended' ? { ...event, ...more } : event))),
      storyTime(2000),
    );
  expect(ends({ givesBack: true })).toEqual({
    glyph: '',
    sentence: 'Stopped. 2 things on spark-b are given back next',
    next: '',
  });
  expect(ends({}).next).toBe('Give back with: firstlight restore');
});

test('a fact that is unknown makes the verdict unknown, not fine', () => {
  const unsure = at(88, (state) => ({
    ...state,
    facts: state.facts.map((facts) => (facts.reached ? { ...facts, memory: unknown('no answer') } : facts)),
    plan: {
      ...clearPlan,
      memory: clearPlan.memory.map((node) => ({ ...node, verdict: 'unknown' })),
    },
  }));
  expect(unsure).toBe('◔ Whether it fits on spark-a is unknown; 2 steps, none asks you');
});

test('no sentence of the story is longer than the line', () => {
  const lines = storyEvents.map((event) => {
    const seconds = (Date.parse(event.at) - storyTime(0)) / 1000;
    const line = nowLine(foldAll(storyUntil(seconds)), storyTime(seconds) + 900);
    expect([...line.sentence].length).toBeLessThanOrEqual(NOW_CHARACTERS);
    return `${String(seconds).padStart(4)}  ${line.glyph || ' '} ${line.sentence}\n${' '.repeat(8)}${line.next}\n`;
  });
  golden('now-line', lines.join(''));
});

test('a run that gives back says so between its steps too, and one that was ended begins as a sentence', () => {
  const events = storyUntil(40).map((event) =>
    event.type === 'run-started' ? { ...event, operation: 'restore' as const } : event,
  );
  const steps = foldAll(events);
  const between = { ...steps, steps: steps.steps.filter((step) => step.result !== 'running') };
  expect(nowLine(between, storyTime(40)).sentence).toBe('Giving back what was stopped');
  const ended: RunState = {
    ...blank,
    startedAt: '2026-11-12T10:02:41.000Z',
    ended: {
      at: '2026-11-12T10:02:50.000Z',
      outcome: 'cancelled',
      why: 'ended by you before anything was changed',
      exit: 1,
      owed: [],
    },
  };
  expect(nowLine(ended, 0).sentence).toBe('Ended by you before anything was changed');
});

test('a down or a restore that missed a node does not say that all is done', () => {
  const end = (operation: 'down' | 'restore') =>
    nowLine(
      {
        ...blank,
        operation,
        startedAt: '2026-11-12T10:02:41.000Z',
        ended: {
          at: '2026-11-12T10:02:50.000Z',
          outcome: 'not-serving',
          why: 'spark-b was not reached: it refuses.',
          exit: 1,
          owed: [],
        },
      },
      0,
    ).sentence;
  expect(end('down')).toBe('Not all is stopped: spark-b was not reached: it refuses');
  expect(end('restore')).toBe('Not all is given back: spark-b was not reached: it refuses');
});
