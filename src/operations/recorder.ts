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
  /** A log line as it may be shown and kept: known secret values are gone. */
  clean(text: string): string;
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
      // Who watches this process gets it from here: the journal tells only of what is written here.
      world.told(event);
    },
    state: () => state,
    clean: (text) => clean(text, world.secrets.all()),
  };
}

/** The text without any known secret value; a value under four characters would take ordinary words with it. */
function clean(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => (secret.length < 4 ? rest : rest.replaceAll(secret, '•••')), text);
}

/** The same for every text in what is about to be written; its type is a word of ours and stays. */
function scrub(body: EventBody, secrets: readonly string[]): EventBody {
  if (secrets.length === 0) return body;
  const scrubbed: EventBody = JSON.parse(JSON.stringify(body), (key, value: unknown) =>
    typeof value === 'string' && key !== 'type' ? clean(value, secrets) : value,
  );
  return scrubbed;
}
