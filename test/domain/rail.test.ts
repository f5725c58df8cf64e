import { expect, it } from 'vitest';
import { railStops } from '../../src/domain/rail.ts';
import { blank, type RunPhase, type RunState } from '../../src/domain/run-state.ts';

const up = { ...blank, operation: 'up' } as const;
const states = (state: RunState): string =>
  railStops(state)
    .map((one) => one.state)
    .join(' ');
const ended = (exit: number): RunState['ended'] => ({ outcome: 'serving', why: '', exit, at: '', owed: [] });

it.each<readonly [RunPhase, string]>([
  ['looking', 'working ahead ahead ahead ahead ahead'],
  ['planned', 'done working ahead ahead ahead ahead'],
  ['waiting', 'done done waits ahead ahead ahead'],
  ['clearing', 'done done working ahead ahead ahead'],
  ['launching', 'done done done working ahead ahead'],
  ['following', 'done done done done working ahead'],
  ['proving', 'done done done done done working'],
])('a bring-up that is %s stands at that stop', (phase, wanted) => {
  expect(states({ ...up, phase })).toBe(wanted);
});

it('a bring-up that ended well has been at all stops, one that failed shows where, and what it never came to', () => {
  expect(states({ ...up, phase: 'ended', ended: ended(0) })).toBe('done done done done done done');
  expect(states({ ...up, phase: 'ended', ended: ended(1) })).toBe('done failed never never never never');
  const attempt = {
    attempt: 1,
    engine: 'vllm',
    startedAt: '',
    ranks: [],
    finding: undefined,
    remedy: undefined,
  } as const;
  expect(states({ ...up, phase: 'ended', ended: ended(1), attempts: [attempt] })).toBe(
    'done done done done failed never',
  );
});

it('a run that is no bring-up has no stops', () => {
  expect(railStops({ ...blank, operation: 'down' })).toEqual([]);
  expect(railStops({ ...blank, operation: 'restore' })).toEqual([]);
});
