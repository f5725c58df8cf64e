import { foldAll } from '../domain/run-state.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { findRun } from './past-run.ts';
import { provedBefore } from './proved-before.ts';

/** `firstlight runs`: past runs, newest first, each as a fold over its events. */
export const runs: Operation<typeof inputs.runs> = {
  name: 'runs',
  summary: 'list past runs',
  effect: 'reads',
  input: inputs.runs,
  async run(input, world) {
    const newest = [...world.journal.runs()].sort((a, b) => b.number - a.number).slice(0, input.limit);
    return {
      report: {
        kind: 'runs',
        ...(input.remedies ? { remedies: provedBefore(world) } : {}),
        runs: newest.map((summary) => {
          const state = foldAll(world.journal.read(summary.run));
          const from = Date.parse(state.startedAt ?? summary.startedAt);
          return {
            run: summary.run,
            operation: state.operation ?? 'unknown',
            recipe: state.recipe,
            startedAt: state.startedAt ?? summary.startedAt,
            seconds: state.ended ? (Date.parse(state.ended.at) - from) / 1000 : undefined,
            outcome: state.ended?.outcome ?? 'no end: running, or cut off',
          };
        }),
      },
      exit: 0,
    };
  },
};

/** `firstlight show [RUN]`: one past run, replayed from the journal. */
export const show: Operation<typeof inputs.show> = {
  name: 'show',
  summary: 'replay a past run',
  effect: 'reads',
  input: inputs.show,
  async run(input, world) {
    const found = findRun(world.journal, input.run);
    return { report: { kind: 'show', run: found.run, events: found.events }, exit: 0 };
  },
};
