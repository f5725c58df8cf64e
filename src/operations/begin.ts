import { setMaxListeners } from 'node:events';
import type { z } from 'zod';
import type { Journal } from '../journal/journal.ts';
import type { Answer, Operation } from './operation.ts';
import type { Live, World } from './world.ts';

/** What one request changes in the World it works in. */
export type Aside = {
  readonly signal: AbortSignal;
  readonly face: string;
  readonly live?: (update: Live) => void;
  readonly journal?: Journal;
};

/** The same World for one request of a face that serves many: its own signal and listener, the same hosts and journal. */
export function aside(world: World, { signal, face, live = () => {}, journal }: Aside): World {
  const both = AbortSignal.any([world.signal, signal]);
  // Every command on every host listens to it.
  setMaxListeners(0, both);
  return Object.create(world, {
    signal: { value: both },
    face: { value: face },
    live: { value: live },
    ...(journal === undefined ? {} : { journal: { value: journal } }),
  });
}

export type Begun = {
  /** The run that it opened, as soon as that stands in the journal; undefined where it ended without one. */
  readonly run: Promise<string | undefined>;
  readonly done: Promise<Answer>;
};

/** Starts an operation and tells which run it opened, so that a face can answer before its end. */
export function begin<Schema extends z.ZodType>(
  world: World,
  operation: Operation<Schema>,
  input: z.output<Schema>,
  options: Omit<Aside, 'journal'>,
): Begun {
  let opened: (run: string | undefined) => void = () => {};
  const run = new Promise<string | undefined>((resolve) => {
    opened = resolve;
  });
  const journal = watched(world.journal, (id) => opened(id));
  const done = operation.run(input, aside(world, { ...options, journal })).finally(() => opened(undefined));
  return { run, done };
}

/** The journal, telling of each run that is started through it. */
function watched(journal: Journal, started: (run: string) => void): Journal {
  return {
    folder: journal.folder,
    newRun: () => journal.newRun(),
    append(run, body) {
      const event = journal.append(run, body);
      if (body.type === 'run-started') started(run);
      return event;
    },
    read: (run, afterSeq, limit) => journal.read(run, afterSeq, limit),
    runs: () => journal.runs(),
    newest: (type, most) => journal.newest(type, most),
    latest: () => journal.latest(),
    lastSeq: (run) => journal.lastSeq(run),
    subscribe: (listener) => journal.subscribe(listener),
    logFile: (run, attempt, rank) => journal.logFile(run, attempt, rank),
    appendLog: (run, attempt, rank, lines) => journal.appendLog(run, attempt, rank, lines),
    readLog: (run, attempt, rank) => journal.readLog(run, attempt, rank),
    readLogBytes: (run, attempt, rank, from, most) => journal.readLogBytes(run, attempt, rank, from, most),
    close: () => {},
  };
}
