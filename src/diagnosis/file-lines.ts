import type { LogLine } from '../domain/evidence.ts';
import { MAY_BE_WRAPPED, stampOf, unwrapped } from './envelope.ts';
import { endLog, splitLog } from './stages.ts';

/** Reads a log file piece by piece. Line numbers are the file's: a progress bar that redraws itself is one line. */
export type FileLines = {
  /** Whole lines that this piece completes; `fallback` is the time, ms, of lines before the first stamp. */
  take(chunk: Uint8Array, fallback: number): readonly LogLine[];
  /** The last line, where the file has no line end. */
  end(fallback: number): readonly LogLine[];
  /** How many lines the file has so far. */
  readonly count: number;
  /** The line as it stands in the file: with what its keeper put around it, colours and carriage returns, less its line end. */
  raw(line: LogLine): string;
};

/** What is not a line's own text: control characters, and bytes beyond ASCII. */
const ALTERED = /[\x00-\x08\x0b-\x1f\x7f-\xff]/;
const LONGEST_PLAIN = 16_000;
const NEWLINE = 10;
const RETURN = 13;
/** A line that goes on for longer is told in parts, under one number: a progress bar may redraw itself for hours. */
const LONGEST_BYTES = 2 ** 20;
/** Of a line that is longer only the piece is quoted. */
const LONGEST_RAW = 2 ** 16;

export function fileLines(): FileLines {
  const altered = new WeakMap<LogLine, string>();
  let rest: Uint8Array = new Uint8Array();
  let count = 0;
  let at: number | undefined;
  let within = false;

  /** A line without anything to be taken out of it: nearly all of them. */
  const plain = (text: string, fallback: number): LogLine => {
    count += 1;
    at = timeOf(text, fallback) ?? at ?? fallback;
    return { line: count, at, text };
  };
  const physical = (bytes: Uint8Array, fallback: number): readonly LogLine[] => {
    if (!within) count += 1;
    within = bytes.at(-1) !== NEWLINE;
    const split = splitLog('', bytes);
    const pieces = [...split.lines, ...endLog(split.carry)];
    const whole = wholeOf(bytes);
    return (pieces.length === 0 ? [''] : pieces).map((piece) => {
      at = timeOf(stampOf(piece), fallback) ?? at ?? fallback;
      const text = unwrapped(piece);
      const line = { line: count, at, text };
      if (whole.length !== text.length || whole.toString('latin1') !== text)
        altered.set(line, whole.length > LONGEST_RAW ? piece : whole.toString('utf8'));
      return line;
    });
  };
  return {
    take(chunk, fallback) {
      const bytes = rest.length === 0 ? bufferOf(chunk) : Buffer.concat([rest, chunk]);
      const lines: LogLine[] = [];
      let from = 0;
      for (let to = bytes.indexOf(NEWLINE); to !== -1; to = bytes.indexOf(NEWLINE, from)) {
        const text = within || to - from > LONGEST_PLAIN ? '' : bytes.toString('latin1', from, to);
        if (text !== '' && !ALTERED.test(text) && !MAY_BE_WRAPPED.test(text))
          lines.push(plain(text, fallback));
        // With its end, so that a \r before it is part of the end.
        else for (const line of physical(bytes.subarray(from, to + 1), fallback)) lines.push(line);
        from = to + 1;
      }
      rest = bytes.slice(from);
      if (rest.length > LONGEST_BYTES) {
        for (const line of physical(rest, fallback)) lines.push(line);
        rest = new Uint8Array();
      }
      return lines;
    },
    end(fallback) {
      const last = rest;
      rest = new Uint8Array();
      return last.length === 0 ? [] : physical(last, fallback);
    },
    get count() {
      return count;
    },
    raw: (line) => altered.get(line) ?? line.text,
  };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A line's bytes without its line end. */
function wholeOf(bytes: Uint8Array): Buffer {
  let end = bytes.length;
  if (bytes[end - 1] === NEWLINE) end -= 1;
  if (bytes[end - 1] === RETURN) end -= 1;
  return Buffer.from(bytes.buffer, bytes.byteOffset, end);
}

/**
 * The time that a line names, ms; engines' own stamps have no zone and often no year, so it is good for the order
 * of lines of hosts in one zone and for nothing else. What a stamp leaves out is taken from `near`.
 */
function timeOf(text: string, near: number): number | undefined {
  // Most lines have no clock or the same one as the line before.
  const clock = text.indexOf(':');
  if (clock < 2 || clock > 100) return undefined;
  const match = STAMP.exec(text.length > 100 ? text.slice(0, 100) : text);
  if (match === null) return undefined;
  const [, year, month, day, hours, minutes, seconds, parts = '0'] = match;
  const then = month === undefined || year === undefined ? new Date(near) : undefined;
  const midnight = midnightOf(
    year ?? String(then?.getUTCFullYear()),
    month ?? String((then?.getUTCMonth() ?? 0) + 1),
    day ?? String(then?.getUTCDate()),
  );
  return (
    midnight +
    ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 +
    Number(parts.padEnd(3, '0'))
  );
}

const STAMP = /(?:^|[[ (T])(?:(?:(\d{4})-)?(\d\d)-(\d\d)[ T])?(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3}))?/;

const midnights = new Map<string, number>();

/** Date.UTC, remembered: a log has few days and many lines. */
function midnightOf(year: string, month: string, day: string): number {
  const key = `${year}-${month}-${day}`;
  const known = midnights.get(key);
  if (known !== undefined) return known;
  if (midnights.size > 1000) midnights.clear();
  const time = Date.UTC(Number(year), Number(month) - 1, Number(day));
  midnights.set(key, time);
  return time;
}
