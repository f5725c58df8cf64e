import type { Event } from '../../domain/event.ts';
import { blank, fold, type RunState } from '../../domain/run-state.ts';
import type { Live } from '../../operations/world.ts';
import { cleanAll, safeJson } from './clean.ts';
import type { LiveView } from './live-screen.ts';
import { plainLine, quietLine, signOfLife } from './plain.ts';
import type { SecretInput } from './secret.ts';
import { finish, type Style } from './style.ts';

/** Where progress goes while an operation works: JSON lines, plain lines, or the live view. */
export type Progress = {
  /** Whether it draws over itself, so that nothing else may write there. */
  readonly draws: boolean;
  readonly event: (event: Event) => void;
  readonly live: (update: Live) => void;
  /** State of every run seen, in the order they began. */
  readonly states: () => readonly RunState[];
  /** Reads keys of this terminal while it draws; the others have no keys. */
  readonly listen: (input: SecretInput, interrupt: () => void) => void;
  /** Takes the drawing off the screen while a question stands there; the result brings it back. */
  readonly pause: () => () => void;
  /** Ctrl-C was pressed once. */
  readonly interrupted: () => void;
  readonly stop: () => void;
};

const SIGN_MILLISECONDS = 30_000;

/** Keeps the fold of every run that is told, so that the end can be summed up. */
function newStates(): {
  readonly take: (event: Event) => { readonly before: RunState; readonly after: RunState };
  readonly all: () => readonly RunState[];
} {
  const states = new Map<string, RunState>();
  return {
    take(event) {
      // A lab's journal may count its runs from 1 as ours does; a new run-started is a new run.
      const before = event.type === 'run-started' ? blank : (states.get(event.run) ?? blank);
      const after = fold(before, event);
      if (event.type === 'run-started') states.delete(event.run);
      states.set(event.run, after);
      return { before, after };
    },
    all: () => [...states.values()],
  };
}

/** One event as one JSON line on stdout, as it comes. */
export function jsonProgress(write: (text: string) => void): Progress {
  const states = newStates();
  return {
    draws: false,
    event: (event) => {
      states.take(event);
      write(`${safeJson(event)}\n`);
    },
    live: () => {},
    states: states.all,
    listen: () => {},
    pause: () => () => {},
    interrupted: () => {},
    stop: () => {},
  };
}

/** Lines on stderr, nothing drawn over; a sign of life when nothing was said for 30 s. */
export function plainProgress(
  write: (text: string) => void,
  style: Style,
  options: { readonly now: () => number; readonly every?: number },
): Progress {
  const states = newStates();
  let latest: RunState | undefined;
  let saidAt = options.now();
  const every = options.every ?? SIGN_MILLISECONDS;
  const timer = setInterval(
    () => {
      const now = options.now();
      const line = latest && now - saidAt >= every ? signOfLife(latest, now) : undefined;
      if (line === undefined) return;
      saidAt = now;
      write(finish([line], style));
    },
    Math.min(every, 1000),
  );
  timer.unref();
  return {
    draws: false,
    event: (raw) => {
      const event = cleanAll(raw);
      const { before, after } = states.take(event);
      latest = after;
      const line = plainLine(event, before);
      if (line === undefined) return;
      saidAt = options.now();
      write(finish([line], style));
    },
    live: (raw) => {
      const update = cleanAll(raw);
      if (update.kind !== 'quiet') return;
      saidAt = options.now();
      write(finish([quietLine(update.host, saidAt)], style));
    },
    states: states.all,
    listen: () => {},
    pause: () => () => {},
    interrupted: () => {},
    stop: () => clearInterval(timer),
  };
}

/** The live view, and above it what is final. */
export function liveProgress(view: LiveView): Progress {
  const states = newStates();
  return {
    draws: true,
    event: (raw) => {
      const event = cleanAll(raw);
      const { before, after } = states.take(event);
      view.event(event, before, after);
    },
    live: (update) => view.live(cleanAll(update)),
    states: states.all,
    listen: view.listen,
    pause: () => view.pause(),
    interrupted: () => view.interrupted(),
    stop: () => view.stop(),
  };
}
