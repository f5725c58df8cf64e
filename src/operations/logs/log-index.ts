import type { Level } from '../../domain/log-rows.ts';
import type { Journal } from '../../journal/journal.ts';
import { LogFolds } from './log-folds.ts';
import { levelOf } from './log-level.ts';
import { Numbers } from './log-numbers.ts';
import { LogSearch } from './log-search.ts';
import { LogView, type ViewFilter } from './log-view.ts';

/** Whose log file it is. */
export type LogSource = { readonly attempt: number; readonly rank: number; readonly node: string };

const LEVELS = ['', 'warning', 'error'] as const;

/** A row without its text; `id` names it in this index. */
export type IndexedRow = LogSource & {
  readonly id: number;
  readonly line: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: Level;
};

type Source = LogSource & { bytes: number; lines: number; last: number; readonly ids: number[] };

const CHUNK = 4 * 2 ** 20;
/** Read before others have their turn: some milliseconds' work, for a page that opens meanwhile asks several times. */
const SLICE = 2 ** 18;
/** Rows of one source that lie closer together than this are read at once. */
const SPAN = 8 * 2 ** 20;
const SEARCHES = 4;
const VIEWS = 4;
/** What of a line is read to tell its level and its shape. */
const READ = 400;

/**
 * The merged log of one run: where each line lies, when it came, how bad it is, which fold it is in; about 50 bytes
 * a line. Files are read once, as they grow; between two slices others have their turn.
 */
export class LogIndex {
  private readonly journal: Pick<Journal, 'readLogBytes'>;
  private readonly run: string;
  private readonly sources: Source[] = [];
  private rows = 0;
  private at = new Float64Array(1024);
  private offset = new Float64Array(1024);
  private length = new Uint32Array(1024);
  private line = new Uint32Array(1024);
  private owner = new Uint16Array(1024);
  private level = new Uint8Array(1024);
  private readonly fold = new Numbers();
  readonly folds = new LogFolds();
  /** Ids in the order of time. */
  private order: number[] = [];
  private reading: Promise<void> = Promise.resolve();
  private readonly searches = new Map<string, LogSearch>();
  private readonly views = new Map<string, LogView>();

  constructor(journal: Pick<Journal, 'readLogBytes'>, run: string) {
    this.journal = journal;
    this.run = run;
  }

  /** Takes in what the files of these sources have grown by. */
  update(sources: readonly LogSource[]): Promise<void> {
    this.reading = this.reading.then(() => this.read(sources));
    return this.reading;
  }

  /** Ids of all rows, earliest first; not to be changed. */
  all(): readonly number[] {
    return this.order;
  }

  row(id: number): IndexedRow {
    const source = this.sources[this.owner[id] ?? 0];
    if (source === undefined || id >= this.rows) throw new Error(`the log index has no row ${id}`);
    const { attempt, rank, node } = source;
    const line = this.line[id] ?? 0;
    return { id, attempt, rank, node, line, at: this.at[id] ?? 0, level: this.levelOf(id) };
  }

  levelOf(id: number): Level {
    return LEVELS[this.level[id] ?? 0] ?? '';
  }

  /** The fold that the line is in; 0: none. */
  foldOf(id: number): number {
    return this.fold.at(id);
  }

  /** The row of that line; undefined while it is not read. Lines count from 1. */
  idOf({ attempt, rank }: Omit<LogSource, 'node'>, line: number): number | undefined {
    return this.sources.find((one) => one.attempt === attempt && one.rank === rank)?.ids[line - 1];
  }

  /** What this log shows under that filter, as far as it is read; `key` says all that the filter depends on. */
  view(key: string, filter: () => ViewFilter): LogView {
    const view = this.views.get(key) ?? new LogView(this, filter());
    keepLast(this.views, key, view, VIEWS);
    view.catchUp(this.order);
    return view;
  }

  /** Where in these rows, which stand in this log's order, the first one lies that is not before that line. */
  placeOf(id: number, rows: readonly number[]): number {
    let low = 0;
    for (let high = rows.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (this.compare(rows[middle] ?? 0, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The texts of these rows, in their order. */
  texts(ids: readonly number[]): readonly string[] {
    const found = new Map<number, string>();
    for (const [owner, source] of this.sources.entries()) {
      const sorted = ids.filter((id) => this.owner[id] === owner).toSorted((a, b) => a - b);
      for (const group of close(sorted, (id) => this.offset[id] ?? 0)) this.readTexts(source, group, found);
    }
    return ids.map((id) => found.get(id) ?? '');
  }

  /** The search for that text; the last few are kept. */
  search(wanted: string): LogSearch {
    const search = this.searches.get(wanted) ?? new LogSearch(this, wanted);
    keepLast(this.searches, wanted, search, SEARCHES);
    return search;
  }

  files(): number {
    return this.sources.length;
  }

  linesOf(file: number): number {
    return this.sources[file]?.ids.length ?? 0;
  }

  piecesOf(file: number, from: number): readonly (readonly number[])[] {
    return close(this.sources[file]?.ids.slice(from) ?? [], (id) => this.offset[id] ?? 0, CHUNK);
  }

  textsOf(file: number, ids: readonly number[]): ReadonlyMap<number, string> {
    const texts = new Map<number, string>();
    const source = this.sources[file];
    if (source !== undefined) this.readTexts(source, ids, texts);
    return texts;
  }

  private async read(sources: readonly LogSource[]): Promise<void> {
    let open = sources.map((wanted) => this.sourceOf(wanted));
    for (;;) {
      // Whose lines are furthest back in time comes first: so each slice goes to the end of the order, or near it.
      const [source] = open.toSorted((a, b) => a.last - b.last);
      if (source === undefined) return;
      if (this.readSlice(source)) await turn();
      else open = open.filter((one) => one !== source);
    }
  }

  private sourceOf(wanted: LogSource): Source {
    const known = this.sources.find((one) => one.attempt === wanted.attempt && one.rank === wanted.rank);
    if (known !== undefined) return known;
    const made = { ...wanted, bytes: 0, lines: 0, last: 0, ids: [] };
    this.sources.push(made);
    return made;
  }

  /** Takes in the next whole lines of that file; false where it has no more. */
  private readSlice(source: Source): boolean {
    const { attempt, rank, bytes } = source;
    const from = (most: number): Buffer => this.journal.readLogBytes(this.run, attempt, rank, bytes, most);
    let asked = SLICE;
    let slice = from(asked);
    if (slice.length === asked && !slice.includes(0x0a)) {
      asked = CHUNK;
      slice = from(asked);
    }
    const end = slice.lastIndexOf(0x0a) + 1;
    // A line still without its end waits for it; one longer than a chunk is cut.
    const whole = end === 0 && slice.length === CHUNK ? slice.length : end;
    if (whole === 0) return false;
    const fresh: number[] = [];
    this.take(source, slice.subarray(0, whole), fresh);
    source.bytes += whole;
    this.merge(fresh);
    return slice.length === asked;
  }

  private take(source: Source, bytes: Buffer, fresh: number[]): void {
    const owner = this.sources.indexOf(source);
    for (let from = 0; from < bytes.length; ) {
      const newline = bytes.indexOf(0x0a, from);
      const to = newline === -1 ? bytes.length : newline;
      const tab = bytes.indexOf(0x09, from);
      const stamped = tab !== -1 && tab < to && tab - from < 20;
      const begin = stamped ? tab + 1 : from;
      const id = this.rows++;
      if (id >= this.at.length) this.grow();
      source.lines++;
      source.ids.push(id);
      // A clock that was set back does not change the order of a rank's lines.
      source.last = Math.max(source.last, stamped ? Number(bytes.toString('latin1', from, tab)) || 0 : 0);
      this.at[id] = source.last;
      this.offset[id] = source.bytes + begin;
      this.length[id] = to - begin;
      this.line[id] = source.lines;
      this.owner[id] = owner;
      const text = bytes.toString('latin1', begin, Math.min(to, begin + READ));
      const { fold, level } = this.folds.take(owner, id, text, levelOf(text));
      this.level[id] = LEVELS.indexOf(level);
      this.fold.set(id, fold);
      fresh.push(id);
      from = to + 1;
    }
  }

  /** Within a rank the order of lines never changes; between ranks time decides. */
  private merge(fresh: number[]): void {
    if (fresh.length === 0) return;
    const before = (a: number, b: number): number => this.compare(a, b);
    fresh.sort(before);
    const first = fresh[0] ?? 0;
    let from = this.order.length;
    while (from > 0 && before(this.order[from - 1] ?? 0, first) > 0) from--;
    const tail = this.order.splice(from);
    for (const view of this.views.values()) view.cut(from, tail);
    let left = 0;
    for (const id of fresh) {
      while (left < tail.length && before(tail[left] ?? 0, id) < 0) this.order.push(tail[left++] ?? 0);
      this.order.push(id);
    }
    while (left < tail.length) this.order.push(tail[left++] ?? 0);
  }

  private compare(a: number, b: number): number {
    return (this.at[a] ?? 0) - (this.at[b] ?? 0) || (this.owner[a] ?? 0) - (this.owner[b] ?? 0) || a - b;
  }

  private readTexts(source: Source, ids: readonly number[], into: Map<number, string>): void {
    const first = ids[0];
    const last = ids.at(-1);
    if (first === undefined || last === undefined) return;
    const start = this.offset[first] ?? 0;
    const end = (this.offset[last] ?? 0) + (this.length[last] ?? 0);
    const bytes = this.journal.readLogBytes(this.run, source.attempt, source.rank, start, end - start);
    for (const id of ids) {
      const at = (this.offset[id] ?? 0) - start;
      into.set(id, bytes.toString('utf8', at, at + (this.length[id] ?? 0)));
    }
  }

  private grow(): void {
    const size = this.at.length * 2;
    const wider = <T extends { set(from: T): void }>(make: T, from: T): T => {
      make.set(from);
      return make;
    };
    this.at = wider(new Float64Array(size), this.at);
    this.offset = wider(new Float64Array(size), this.offset);
    this.length = wider(new Uint32Array(size), this.length);
    this.line = wider(new Uint32Array(size), this.line);
    this.owner = wider(new Uint16Array(size), this.owner);
    this.level = wider(new Uint8Array(size), this.level);
  }
}

/** Sets it as the newest; the oldest goes where there are more than so many. */
export function keepLast<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next().value;
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

/** Runs of ids whose places lie within `span` bytes of each other's first. */
function close(
  ids: readonly number[],
  place: (id: number) => number,
  span = SPAN,
): readonly (readonly number[])[] {
  const groups: number[][] = [];
  for (const id of ids) {
    const group = groups.at(-1);
    const first = group?.[0];
    if (group === undefined || first === undefined || place(id) - place(first) > span) groups.push([id]);
    else group.push(id);
  }
  return groups;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
