import { setTimeout as wait } from 'node:timers/promises';
import type { Event } from '../domain/event.ts';
import type { Journal } from './journal.ts';

export type FollowOptions = {
  readonly afterSeq?: number;
  readonly signal: AbortSignal;
  /** How often the journal is looked at. */
  readonly everyMilliseconds?: number;
};

/**
 * The events of a run in order, those of other processes too, as they are written. Ends after `run-ended`, or
 * quietly when the signal aborts.
 */
export async function* follow(
  journal: Journal,
  run: string,
  { afterSeq = 0, signal, everyMilliseconds = 200 }: FollowOptions,
): AsyncGenerator<Event, void, undefined> {
  let seq = afterSeq;
  while (!signal.aborted) {
    for (const event of journal.read(run, seq)) {
      seq = event.seq;
      yield event;
      if (event.type === 'run-ended') return;
    }
    await pause(everyMilliseconds, signal);
  }
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await wait(milliseconds, undefined, { signal });
  } catch (error) {
    // The wait rejects when the signal aborts; the loop then ends.
    if (!signal.aborted) throw error;
  }
}
