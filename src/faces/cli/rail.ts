import type { RunPhase, RunState } from '../../domain/run-state.ts';
import { stopwatch } from '../../domain/units.ts';
import type { Pen } from './pen.ts';
import { width } from './width.ts';

const STOPS = ['look', 'plan', 'clear', 'launch', 'follow', 'prove'] as const;
type Stop = (typeof STOPS)[number];

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

/** "✓ look 0:03   ✓ plan   ◔ clear 0:41   ○ launch   ○ follow   ○ prove" */
export function rail(state: RunState, pen: Pen): string {
  const { glyphs, paint } = pen;
  if (state.operation === 'down' || state.operation === 'restore') return '';
  const here = AT[state.phase];
  const failed = state.ended !== undefined && state.ended.exit !== 0;
  const parts = STOPS.map((stop, index) => {
    const took = spent(stop, state, pen.now);
    const text = took === undefined ? stop : `${stop} ${took}`;
    if (index < here && !(failed && index > reached(state))) return `${paint.ok(glyphs.done)} ${text}`;
    if (failed && index >= reached(state)) return `${glyphs.none} ${stop}`;
    if (index > here) return `${glyphs.ahead} ${stop}`;
    return state.phase === 'waiting'
      ? `${paint.wait(glyphs.waits)} ${text}`
      : `${paint.working(glyphs.working)} ${text}`;
  });
  const wide = parts.join('   ');
  return width(wide) <= pen.columns ? wide : parts.join(' ');
}

function reached(state: RunState): number {
  if (state.serving) return 5;
  if (state.attempts.length > 0) return 4;
  return state.plan ? 2 : 1;
}

/** Time spent at a stop, where the events tell it. */
function spent(stop: Stop, state: RunState, now: number): string | undefined {
  if (stop === 'look') {
    const ms = Math.max(0, ...state.facts.map((facts) => (facts.reached ? facts.milliseconds : 0)));
    return ms === 0 ? undefined : stopwatch(Math.max(1000, ms));
  }
  if (stop === 'clear' || stop === 'launch') {
    const phases: readonly string[] = stop === 'clear' ? ['clear', 'supply'] : ['launch'];
    const steps = state.steps.filter((step) => phases.includes(step.phase));
    if (steps.length === 0) return undefined;
    const ms = steps.reduce(
      (sum, step) => sum + (step.milliseconds ?? Math.max(0, now - Date.parse(step.startedAt))),
      0,
    );
    return stopwatch(ms);
  }
  return undefined;
}
