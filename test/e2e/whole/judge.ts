import type { Fault } from './faults.ts';
import { eventOf, type Letter, outcomeOf, type Told } from './fleet.ts';

/** A fault that was in force on a host while a bring-up ran. */
export type Struck = { readonly fault: Fault; readonly host: Letter };

/** Launches of one bring-up that no fault explains more of. */
const MOST_ATTEMPTS = 3;

/**
 * Why the end of a bring-up is wrong, or undefined: it must serve, or end by a finding that names a fault that was
 * there, and its host. Whoever is reached through the head may be named for a fault on the head.
 */
export function wrongEnd(told: Told, struck: readonly Struck[]): string | undefined {
  if (told.overdue) return 'it did not end';
  if (told.code === 3 || told.text.includes('our mistake')) return 'it ended by a mistake of its own';
  if (attempts(told) > MOST_ATTEMPTS) return `it launched ${attempts(told)} times`;
  const outcome = String(outcomeOf(told));
  if (outcome === 'serving' || outcome === 'nothing-to-do') return undefined;
  if (told.code !== 1 && told.code !== 2) return `it ended ${outcome} with exit ${told.code}`;
  if (struck.every(({ fault }) => fault.harmless)) return `it ended ${outcome} without a fault`;
  const cause = causeOf(told);
  if (cause === undefined) return `it ended ${outcome} without a finding`;
  const node = eventOf(told, 'finding')?.['node'];
  const right = struck.some(
    ({ fault, host }) => fault.causes.includes(cause) && (host === 'a' || node === `spark-${host}`),
  );
  return right ? undefined : `it named ${cause} on ${String(node)}`;
}

/** The cause that a bring-up named last. */
export function causeOf(told: Told): string | undefined {
  const cause = eventOf(told, 'finding')?.['cause'];
  return typeof cause === 'string' ? cause : undefined;
}

function attempts(told: Told): number {
  return new Set(
    told.events.filter((event) => event['type'] === 'rank-started').map((event) => event['attempt']),
  ).size;
}
