import type { RunPhase, RunState } from './run-state.ts';

/** The stops of a bring-up, in order. */
const STOPS = ['look', 'plan', 'clear', 'launch', 'follow', 'prove'] as const;
export type Stop = (typeof STOPS)[number];

export type StopState = 'done' | 'working' | 'waits' | 'ahead' | 'failed' | 'never';

const AT: Readonly<Record<RunPhase, number>> = {
  starting: 0,
  looking: 0,
  planned: 1,
  waiting: 2,
  clearing: 2,
  launching: 3,
  following: 4,
  proving: 5,
  ended: 6,
};

/** How far a bring-up came, stop by stop; empty for runs that are none. */
export function railStops(state: RunState): readonly { readonly stop: Stop; readonly state: StopState }[] {
  const { operation, phase, ended } = state;
  if (operation !== undefined && operation !== 'up') return [];
  const failed = ended !== undefined && ended.exit !== 0;
  const here = failed ? reached(state) : AT[phase];
  return STOPS.map((stop, index) => {
    if (index < here) return { stop, state: 'done' };
    if (index > here) return { stop, state: failed ? 'never' : 'ahead' };
    return { stop, state: failed ? 'failed' : phase === 'waiting' ? 'waits' : 'working' };
  });
}

/** Where a run that failed had come to. */
function reached(state: RunState): number {
  if (state.serving) return AT.proving;
  if (state.attempts.length > 0) return AT.following;
  return state.plan ? AT.clearing : AT.planned;
}
