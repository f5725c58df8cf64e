import { railStops, type Stop, type StopState } from '../../domain/rail.ts';
import type { RunState } from '../../domain/run-state.ts';
import { stopwatch } from '../../domain/units.ts';
import type { Pen } from './pen.ts';
import { width } from './width.ts';

/** "✓ look 0:03   ✓ plan   ◔ clear 0:41   ○ launch   ○ follow   ○ prove" */
export function rail(state: RunState, pen: Pen): string {
  const partsOf = (timed: boolean): readonly string[] =>
    railStops(state).map(({ stop, state: stood }) => {
      const began = stood !== 'never' && stood !== 'ahead';
      const took = timed && began ? spent(stop, state, pen.now) : undefined;
      return `${sign(stood, pen)} ${took === undefined ? stop : `${stop} ${took}`}`;
    });
  const [timed, bare] = [partsOf(true), partsOf(false)];
  const lines = [timed.join('   '), timed.join(' '), bare.join('  ')];
  return lines.find((line) => width(line) <= pen.columns) ?? bare.join(' ');
}

function sign(stood: StopState, { glyphs, paint }: Pen): string {
  if (stood === 'done') return paint.ok(glyphs.done);
  if (stood === 'working') return paint.working(glyphs.working);
  if (stood === 'waits') return paint.wait(glyphs.waits);
  if (stood === 'failed') return paint.bad(glyphs.failed);
  return stood === 'ahead' ? glyphs.ahead : glyphs.none;
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
