import type { Event, EventBody, EventType } from '../domain/event.ts';

export type RunSummary = {
  readonly run: string;
  readonly number: number;
  readonly startedAt: string;
  readonly events: number;
};

/** Append-only store of events; write, then publish. The only thing that knows SQLite is its implementation. */
export interface Journal {
  readonly folder: string;
  /** A new run's id: `<number>`, counted up per journal. */
  newRun(): string;
  append(run: string, body: EventBody): Event;
  /** Events after that one, in order; `limit` at most. */
  read(run: string, afterSeq?: number, limit?: number): readonly Event[];
  runs(): readonly RunSummary[];
  /** Events of one type over all runs, the newest first. */
  newest<Type extends EventType>(type: Type, most: number): readonly Extract<Event, { type: Type }>[];
  /** Number of the newest run; undefined before the first. */
  latest(): string | undefined;
  /** Number of a run's newest event; 0 where it has none. */
  lastSeq(run: string): number;
  /** Called for each event appended by this process, in order, after it is written. */
  subscribe(listener: (event: Event) => void): () => void;
  /** Absolute path of one rank's log of one attempt. */
  logFile(run: string, attempt: number, rank: number): string;
  /** Appends lines to that file, each as `<ms>\t<text>\n`. */
  appendLog(
    run: string,
    attempt: number,
    rank: number,
    lines: readonly { readonly at: number; readonly text: string }[],
  ): void;
  readLog(
    run: string,
    attempt: number,
    rank: number,
  ): readonly { readonly line: number; readonly at: number; readonly text: string }[];
  /** A piece of that file as it stands, from a byte on; short or empty at its end, and where there is no log. */
  readLogBytes(run: string, attempt: number, rank: number, fromByte: number, mostBytes: number): Buffer;
  close(): void;
}
