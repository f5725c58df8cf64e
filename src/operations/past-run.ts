import type { Event } from '../domain/event.ts';
import { UserError } from '../domain/user-error.ts';
import type { Journal } from '../journal/journal.ts';

/** The run a user names, or the latest that fits; a UserError when there is none. */
export function findRun(
  journal: Journal,
  run: string | undefined,
  fits: (events: readonly Event[]) => boolean = () => true,
): { readonly run: string; readonly events: readonly Event[] } {
  if (run !== undefined) {
    const events = journal.read(run);
    if (events.length === 0)
      throw new UserError(
        'no-such-run',
        `there is no run ${run} in ${journal.folder}`,
        'firstlight runs lists them',
      );
    return { run, events };
  }
  const summaries = [...journal.runs()].sort((a, b) => b.number - a.number);
  for (const summary of summaries) {
    const events = journal.read(summary.run);
    if (events.length > 0 && fits(events)) return { run: summary.run, events };
  }
  throw new UserError(
    'no-such-run',
    `there is no run yet in ${journal.folder}`,
    'bring a model up with firstlight up RECIPE',
  );
}

export function isUp(events: readonly Event[]): boolean {
  const first = events[0];
  return first?.type === 'run-started' && first.operation === 'up';
}

/** Runs that ranks' logs belong to. */
export function hasRanks(events: readonly Event[]): boolean {
  return isUp(events) || isAdoption(events);
}

export function isAdoption(events: readonly Event[]): boolean {
  const first = events[0];
  return first?.type === 'run-started' && first.operation === 'adopt';
}
