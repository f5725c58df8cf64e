import type { Stage } from './finding.ts';

/** How bad a line of a log says it is. */
export type Level = 'error' | 'warning' | '';

/** Where a line stands: attempt, rank, and the line of that rank's log, from 1. */
export type LogPlace = { readonly attempt: number; readonly rank: number; readonly line: number };

/** A place as addresses and queries write it: "1-0-1204". */
export function placeText({ attempt, rank, line }: LogPlace): string {
  return `${attempt}-${rank}-${line}`;
}

/** The places of a list such as "1-0-1204,1-1-88"; what is none is passed over. */
export function placesOf(text: string): readonly LogPlace[] {
  return [...text.matchAll(/(?<=^|,)(\d{1,4})-(\d{1,4})-(\d{1,9})(?=,|$)/g)].map(([, ...numbers]) => {
    const [attempt = 0, rank = 0, line = 0] = numbers.map(Number);
    return { attempt, rank, line };
  });
}

/** Why lines lie in one fold: they are one progress bar, lines of one shape, or the frames of a traceback. */
export type FoldKind = 'bar' | 'line' | 'frames';

export type LogFold = {
  /** Where its first line stands. */
  readonly place: LogPlace;
  readonly kind: FoldKind;
  /** Lines that are folded away beside this one; of a traceback, its frames. */
  readonly count: number;
  readonly open: boolean;
};

export type LogRow = LogPlace & {
  readonly node: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly stage: Stage;
  readonly level: Level;
  /** Of a closed fold its latest line. */
  readonly text: string;
  /** So many characters at its beginning are the engine's own stamp and rank. */
  readonly prefix: number;
  /** What ranks moved on to just before it. */
  readonly marks?: readonly string[] | undefined;
  /** On the one row of a closed fold, and on the first row of an open one. */
  readonly fold?: LogFold | undefined;
};

/** Which lines of a log are rows. */
export type LogFilter = {
  /** Empty: all. */
  readonly ranks: readonly number[];
  readonly attempt: number | undefined;
  readonly stage: Stage | undefined;
  readonly level: Exclude<Level, ''> | undefined;
  /** Found anywhere in the text, large and small letters alike; what is found is in no closed fold. */
  readonly q: string;
  /** Without: every line is a row. */
  readonly fold: boolean;
  /** Folds that lie open, by a line in each. */
  readonly open: readonly LogPlace[];
};

/** One window of a run's merged log under a filter. */
export type LogWindow = {
  /** Rows under the filter. */
  readonly total: number;
  /** Lines under the filter: more than rows where some are folded away. */
  readonly lines: number;
  readonly from: number;
  readonly rows: readonly LogRow[];
  readonly warnings: number;
  readonly errors: number;
  /** The fold that was opened since the line that was asked for is in it. */
  readonly opened?: LogPlace | undefined;
};

/** A log from its first row to its last, in pieces of as many rows each: one number of each list a piece. */
export type LogStrip = {
  /** Rows under the filter. */
  readonly total: number;
  /** Lines that the rows stand for. */
  readonly lines: readonly number[];
  /** From a piece's first line to the next one's. */
  readonly milliseconds: readonly number[];
  readonly warnings: readonly number[];
  readonly errors: readonly number[];
  /** Lines that a finding quotes. */
  readonly quotes: readonly number[];
  /** How often a rank entered a stage, or ended. */
  readonly marks: readonly number[];
  /** Quoted lines, and the lines at which ranks moved on, in their order; the first 500. */
  readonly stops: readonly (LogPlace & { readonly row: number })[];
};
