import type { Event, EventBody } from '../domain/event.ts';
import { blank, fold, type RunState } from '../domain/run-state.ts';
import type { World } from './world.ts';

/** One run as it is written: every event goes through here, and the state is its fold. */
export type Recorder = {
  readonly run: string;
  emit(body: EventBody): Event;
  /** Folds in an event that another face wrote into this run. */
  take(event: Event): void;
  state(): RunState;
};

/** Opens a new run in the journal. */
export function newRecorder(world: World): Recorder {
  const run = world.journal.newRun();
  let state = blank;
  return {
    run,
    emit(body) {
      const event = world.journal.append(run, scrub(body, world.secrets.all()));
      state = fold(state, event);
      return event;
    },
    take(event) {
      state = fold(state, event);
    },
    state: () => state,
  };
}

/** Replaces every known secret value in whatever is about to be written. */
function scrub(body: EventBody, secrets: readonly string[]): EventBody {
  const longEnough = secrets.filter((secret) => secret.length >= 4);
  if (longEnough.length === 0) return body;
  let text = JSON.stringify(body);
  let found = false;
  for (const secret of longEnough) {
    const escaped = JSON.stringify(secret).slice(1, -1);
    if (!text.includes(escaped)) continue;
    found = true;
    text = text.replaceAll(escaped, '•••');
  }
  return found ? JSON.parse(text) : body;
}
