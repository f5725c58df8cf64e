import type { RunsReport } from '../../domain/report.ts';
import { blank, foldAll, type RunState } from '../../domain/run-state.ts';
import type { World } from '../../operations/world.ts';

const KEPT = 16;
const AT_ONCE = 2000;

/** States of runs, each folded on from where it was left: a run of a hundred thousand events is read once. */
export type RunStates = {
  /** Undefined for a run that the journal does not have. */
  of(run: string): Promise<RunState | undefined>;
  /** One line about a run, as lists show it. */
  row(summary: RunSummary): Promise<RunRow>;
};

type RunSummary = ReturnType<World['journal']['runs']>[number];
type RunRow = RunsReport['runs'][number];

/** Keeps the states of the runs that were asked for last. */
export function newRunStates(journal: () => World['journal']): RunStates {
  const states = new Map<string, RunState>();
  // A run that has ended stays as it is.
  const ended = new Map<string, RunRow>();
  const reading = new Map<string, Promise<RunState | undefined>>();
  return {
    async row(summary) {
      const known = ended.get(summary.run);
      if (known !== undefined) return known;
      const state = await this.of(summary.run);
      const startedAt = state?.startedAt ?? summary.startedAt;
      const row = {
        run: summary.run,
        operation: state?.operation ?? 'unknown',
        recipe: state?.recipe,
        startedAt,
        seconds: state?.ended ? (Date.parse(state.ended.at) - Date.parse(startedAt)) / 1000 : undefined,
        outcome: state?.ended?.outcome ?? 'no end: running, or cut off',
      };
      if (state?.ended) ended.set(summary.run, row);
      return row;
    },
    of(run) {
      // Those who ask at once share one reading; its last slice is read after each of them asked.
      const going = reading.get(run);
      if (going !== undefined) return going;
      const begun = Promise.resolve().then(() => readOn(run));
      reading.set(run, begun);
      return begun;
    },
  };

  async function readOn(run: string): Promise<RunState | undefined> {
    let state = states.get(run) ?? blank;
    try {
      for (;;) {
        const events = journal().read(run, state.lastSeq, AT_ONCE);
        state = foldAll(events, state);
        if (events.length < AT_ONCE) break;
        // Others are served between two slices.
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      reading.delete(run);
    }
    if (state.lastSeq === 0) return undefined;
    // The one that was asked for last stands last.
    states.delete(run);
    states.set(run, state);
    const [oldest] = states.keys();
    if (states.size > KEPT && oldest !== undefined) states.delete(oldest);
    return state;
  }
}
