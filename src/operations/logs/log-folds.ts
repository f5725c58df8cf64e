import type { FoldKind, Level } from '../../domain/log-rows.ts';
import { messageOf } from '../../knowledge/engines/log-line.ts';
import { Numbers } from './log-numbers.ts';
import { shapeOf } from './log-shape.ts';

const KINDS = ['line', 'bar', 'frames'] as const;

/** Where a line belongs; fold 0 is none: it is always seen. */
export type Folded = { readonly fold: number; readonly level: Level };

type Seen = { readonly fold: number; line: number; percent: number };
type Source = { line: number; readonly seen: Map<number, Seen>; readonly tracebacks: Map<string, number> };

/** A shape repeats where it comes again within so many lines of its log; a bar is written over among others. */
const REACH = 8;
const BAR_REACH = 64;
/** A bar that falls back by more than this is another bar: those of several processes overtake each other a little. */
const BAR_FALLS = 25;
const MOST_SHAPES = 64;
const MOST_TRACEBACKS = 32;
/** Of warnings; one whose shape is not remembered any more counts as new, and is seen. */
const MOST_WARNINGS = 20_000;

const TRACEBACK = /Traceback \(most recent call last\):\s*$/;
const PROCESS = /^(?:\([^()]*\bpid=\d+[^()]*\)\s*)+/;

/**
 * Deals the lines of several logs into folds, each line as it comes: a shape that repeats, a progress bar, the frames
 * of a traceback between its first and its last line. Errors, and warnings of a shape that was not seen before, are in
 * none. Lines of two logs are never in one fold, and a fold's lines keep their order. Holds a bounded number of shapes
 * and twelve bytes a fold.
 */
export class LogFolds {
  private readonly sources: Source[] = [];
  private readonly warned = new Set<number>();
  private readonly firsts = new Numbers();
  private readonly kinds = new Numbers();
  private readonly sizes = new Numbers();
  private readonly frames = new Map<number, number>();
  private folds = 0;

  /** The next line of that log, by the log's number; `id` is what the caller knows the line by. */
  take(source: number, id: number, text: string, level: Level): Folded {
    const folded = this.deal(source, id, text, level);
    if (folded.fold !== 0) this.sizes.set(folded.fold, this.sizes.at(folded.fold) + 1);
    return folded;
  }

  private deal(source: number, id: number, text: string, level: Level): Folded {
    this.sources[source] ??= { line: 0, seen: new Map(), tracebacks: new Map() };
    const here = this.sources[source];
    here.line++;
    const framed = this.framed(here, id, text);
    if (framed !== undefined) return framed;
    if (level === 'error') return { fold: 0, level };
    const { hash, percent } = shapeOf(text);
    if (hash === 0) return { fold: 0, level };
    if (level === 'warning' && !this.warned.has(hash)) {
      if (this.warned.size < MOST_WARNINGS) this.warned.add(hash);
      return { fold: 0, level };
    }
    return { fold: this.repeated(here, id, hash, percent), level };
  }

  /** The id of the fold's first line. */
  firstOf(fold: number): number {
    return this.firsts.at(fold);
  }

  linesOf(fold: number): number {
    return this.sizes.at(fold);
  }

  kindOf(fold: number): FoldKind {
    return KINDS[this.kinds.at(fold)] ?? 'line';
  }

  /** Frames of a traceback: fewer than its lines, since most are followed by the source they stand in. */
  framesOf(fold: number): number {
    return this.frames.get(fold) ?? 0;
  }

  private repeated(here: Source, id: number, hash: number, percent: number | undefined): number {
    const before = here.seen.get(hash);
    here.seen.delete(hash);
    const reach = percent === undefined ? REACH : BAR_REACH;
    const goesOn =
      before !== undefined &&
      here.line - before.line <= reach &&
      (percent === undefined || percent >= before.percent - BAR_FALLS);
    const seen = goesOn
      ? before
      : { fold: this.open(id, percent === undefined ? 0 : 1), line: 0, percent: 0 };
    seen.line = here.line;
    seen.percent = percent ?? 0;
    here.seen.set(hash, seen);
    trim(here.seen, MOST_SHAPES);
    return seen.fold;
  }

  /** A line of a traceback: its first, one between, or its last; undefined for any other line. */
  private framed(here: Source, id: number, text: string): Folded | undefined {
    const begins = text.includes('Traceback (most') && TRACEBACK.test(text);
    if (!begins && here.tracebacks.size === 0) return undefined;
    const who = PROCESS.exec(text)?.[0].trim() ?? '';
    if (begins) {
      here.tracebacks.delete(who);
      here.tracebacks.set(who, 0);
      trim(here.tracebacks, MOST_TRACEBACKS);
      return { fold: 0, level: 'error' };
    }
    const fold = here.tracebacks.get(who);
    if (fold === undefined) return undefined;
    const message = messageOf(text);
    if (!/^\s/.test(message)) {
      here.tracebacks.delete(who);
      return { fold: 0, level: 'error' };
    }
    const own = fold === 0 ? this.open(id, 2) : fold;
    here.tracebacks.set(who, own);
    if (/^\s+(?:\| )*File "/.test(message)) this.frames.set(own, (this.frames.get(own) ?? 0) + 1);
    return { fold: own, level: '' };
  }

  private open(id: number, kind: number): number {
    this.folds++;
    this.firsts.set(this.folds, id);
    this.kinds.set(this.folds, kind);
    return this.folds;
  }
}

function trim(map: Map<unknown, unknown>, most: number): void {
  if (map.size <= most) return;
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}
