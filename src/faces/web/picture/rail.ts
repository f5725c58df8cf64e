import type { RunPhase, RunState } from '../../../domain/run-state.ts';

const STOPS = ['look', 'plan', 'clear', 'launch', 'follow', 'prove'] as const;

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

export type StopState = 'done' | 'working' | 'waits' | 'ahead' | 'never';

/** The stops of a bring-up and how far it came; empty for runs that are none. */
export function railStops(state: RunState): readonly { readonly stop: string; readonly state: StopState }[] {
  if (state.operation !== 'up') return [];
  const here = AT[state.phase];
  const failed = state.ended !== undefined && state.ended.exit !== 0;
  const reached = state.serving ? 5 : state.attempts.length > 0 ? 4 : state.plan ? 2 : 1;
  return STOPS.map((stop, index) => {
    if (failed) return { stop, state: index < reached ? 'done' : 'never' };
    if (index < here) return { stop, state: 'done' };
    if (index > here) return { stop, state: 'ahead' };
    return { stop, state: state.phase === 'waiting' ? 'waits' : 'working' };
  });
}
