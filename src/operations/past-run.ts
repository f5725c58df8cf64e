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
    summaries.length === 0
      ? `there is no run yet in ${journal.folder}`
      : `none of the runs in ${journal.folder} got that far`,
    'bring a model up with firstlight up RECIPE',
  );
}

function isUp(events: readonly Event[]): boolean {
  const first = events[0];
  return first?.type === 'run-started' && first.operation === 'up';
}

/** Runs that ranks' logs belong to, or may yet: one that ended before it had any is none. */
export function hasRanks(events: readonly Event[]): boolean {
  const some = events.some((event) => event.type === 'rank-started') || events.at(-1)?.type !== 'run-ended';
  return isAdoption(events) || (isUp(events) && some);
}

/** Runs that had something to find: one that was kept out by another's lock saw no host. */
export function hasLooked(events: readonly Event[]): boolean {
  return isUp(events) && events.some((event) => event.type === 'looked');
}

export function isAdoption(events: readonly Event[]): boolean {
  const first = events[0];
  return first?.type === 'run-started' && first.operation === 'adopt';
}
