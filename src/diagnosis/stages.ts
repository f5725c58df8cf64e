import type { LogLine } from '../domain/evidence.ts';
import { STAGES, type Stage } from '../domain/finding.ts';
import type { Engine } from '../knowledge/engines/engine.ts';

/** Longest line that is kept, in bytes; the rest of a longer one is dropped. */
const LINE_BYTES = 16_384;

/** `2026-11-29T15:00:32.123456789Z `, as `docker logs --timestamps` writes before each line. */
const DOCKER_STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ?/;
/** CSI, OSC (ended by BEL or ST) and two-character escapes; then every control character but the tab. */
const ESCAPES =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]/g;
/** Bidirectional marks and line separators go too: a log must not rearrange the screen it is shown on. */
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** `carry` after an empty piece that ended in \r: an empty line if \n follows, else the beginning of a bar. */
const BLANK_RETURN = '\r\r';

/**
 * Bytes of a log → whole lines, split at \r\n, \n and \r, without escape sequences and control characters, 16 KiB
 * each at most; bytes that are no UTF-8 become U+FFFD. `carry` is the unfinished rest, as one character per byte:
 * give it to the next call, and to `endLog` at the log's end. With `stamped`, docker's leading time stamps go.
 */
export function splitLog(
  carry: string,
  chunk: Uint8Array | string,
  stamped = false,
): { readonly lines: readonly string[]; readonly carry: string } {
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : chunk;
  let text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  const lines: string[] = [];
  if (carry.startsWith('\r')) {
    // The line before was ended by this \r already; its \n, if it had one, comes first in this chunk.
    if (text === '') return { lines, carry };
    if (text.startsWith('\n')) {
      text = text.slice(1);
      if (carry === BLANK_RETURN) lines.push('');
    }
  } else text = carry + text;
  let end = 0;
  let returned = '';
  // What comes after the last line end is not looked through from each of its characters.
  const ended = text.slice(0, Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1);
  for (const [whole, piece = '', sign] of ended.matchAll(/([^\r\n]*)(\r\n|\n|\r)/g)) {
    end += whole.length;
    const line = cleanLine(piece, stamped);
    returned = sign === '\r' && end === text.length ? (line === '' ? BLANK_RETURN : '\r') : '';
    // A bar begins with \r to write over the one before it: that is no line of its own.
    if (sign !== '\r' || line !== '') lines.push(line);
  }
  return { lines, carry: returned === '' ? text.slice(end).slice(0, LINE_BYTES) : returned };
}

/** What is left at a log's end: the last line, if it had no line end. */
export function endLog(carry: string, stamped = false): readonly string[] {
  return carry === '' || carry.startsWith('\r') ? [] : [cleanLine(carry, stamped)];
}

function cleanLine(piece: string, stamped: boolean): string {
  const cut = piece.length > LINE_BYTES ? piece.slice(0, LINE_BYTES) : piece;
  const text = /[\u0080-\u00ff]/.test(cut) ? Buffer.from(cut, 'latin1').toString('utf8') : cut;
  const unstamped = stamped ? text.replace(DOCKER_STAMP, '') : text;
  return unstamped.replace(ESCAPES, '').replace(CONTROLS, '');
}

type TrackedStage = {
  readonly stage: Stage;
  readonly percent: number | undefined;
  /** When the stage or its percent last moved, ms. */
  readonly movedAt: number;
};

type Track = { stage: Stage; percent: number | undefined; movedAt: number; last: string };

/** Where each rank stands; `trackLine` moves it on. The only thing here that remembers. */
export type Tracker = {
  readonly engine: Engine;
  readonly tracks: Map<number, Track>;
  /** Rank by the address of its node, for lines that stand in another rank's log. */
  readonly addresses: ReadonlyMap<string, number>;
  of(rank: number): TrackedStage;
};

/** A tracker at stage `start` for each rank; `at` is now, ms. */
export function newTracker(
  engine: Engine,
  ranks: readonly { readonly rank: number; readonly address?: string | undefined }[],
  at: number,
): Tracker {
  const tracks = new Map<number, Track>(
    ranks.map(({ rank }) => [rank, { stage: 'start', percent: undefined, movedAt: at, last: '' }]),
  );
  return {
    engine,
    tracks,
    addresses: new Map(
      ranks.flatMap(({ rank, address }) => (address === undefined ? [] : [[address, rank] as const])),
    ),
    of(rank) {
      const track = trackOf(tracks, rank);
      return { stage: track.stage, percent: track.percent, movedAt: track.movedAt };
    },
  };
}

/**
 * Takes one line of one rank's log; gives back which rank moved (another one where the line is known to come from
 * its node), and where it stands now, if its stage or percent moved. Stages only go forward, and so does the percent
 * within one; any new landmark counts as a sign of life for `movedAt`.
 */
export function trackLine(
  tracker: Tracker,
  rank: number,
  line: Pick<LogLine, 'at' | 'text'>,
): { readonly rank: number; readonly stage: Stage; readonly percent: number | undefined } | undefined {
  const landmark = tracker.engine.landmark(line.text);
  if (landmark === undefined) return undefined;
  const whose = (landmark.from === undefined ? undefined : tracker.addresses.get(landmark.from)) ?? rank;
  const track = trackOf(tracker.tracks, whose);
  if (track.last !== line.text) track.movedAt = Math.max(track.movedAt, line.at);
  track.last = line.text;
  const step = STAGES.indexOf(landmark.stage) - STAGES.indexOf(track.stage);
  if (step < 0) return undefined;
  // A second progress bar of the same stage begins at nought again; what is shown does not go back.
  const percent = step > 0 ? landmark.percent : largest(track.percent, landmark.percent);
  if (step === 0 && percent === track.percent) return undefined;
  track.stage = landmark.stage;
  track.percent = percent;
  return { rank: whose, stage: track.stage, percent };
}

function largest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.max(a, b);
}

function trackOf(tracks: ReadonlyMap<number, Track>, rank: number): Track {
  const track = tracks.get(rank);
  if (track === undefined) throw new Error(`no rank ${rank} is tracked`);
  return track;
}
