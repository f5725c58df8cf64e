import { getLog, type LogQuery, type LogRow, type LogWindow, placeText } from '../data/api.ts';
import { newRow, type RowLook, writeRow } from './log-row.ts';
import { LogScroll, ROW } from './log-scroll.ts';

const WINDOW = 500;
const KEPT = 5000;
/** So long a line that was asked for is still gone to when the filter changes. */
const WISH_MILLISECONDS = 1500;
const REFRESH_MILLISECONDS = 500;
/** Folds that may lie open at once; the first ones close. */
const MOST_OPEN = 50;

export type PoolNews = {
  /** Rows, and the lines that they stand for. */
  readonly total: number;
  readonly lines: number;
  readonly warnings: number;
  readonly errors: number;
  readonly following: boolean;
  /** Lines that came since following stopped. */
  readonly unread: number;
  /** The line that a person chose. */
  readonly selected: LogRow | undefined;
};

export type LogFilter = Omit<LogQuery, 'from' | 'count' | 'around' | 'open'>;

/**
 * The rows of a log that are in view, written into a fixed pool of elements. The page never holds the log: windows of
 * 500 rows are asked for by index, and 5,000 rows at most are kept.
 */
export class LogPool {
  private readonly scroll: LogScroll;
  private readonly inner: HTMLElement;
  private readonly pool: HTMLElement[] = [];
  private readonly rows = new Map<number, LogRow>();
  private readonly asked = new Set<number>();
  private readonly news: (news: PoolNews) => void;
  private filter: LogFilter | undefined;
  private open: readonly string[] = [];
  private total = 0;
  private lines = 0;
  private warnings = 0;
  private errors = 0;
  private following = true;
  private seen = 0;
  private frame = 0;
  private generation = 0;
  private refreshed = 0;
  private selected: { readonly index: number; readonly row: LogRow } | undefined;
  private wish: { readonly place: string; readonly until: number } | undefined;
  private look: RowLook = {
    started: 0,
    quoted: new Map(),
    raw: false,
    selected: undefined,
    flashed: undefined,
  };

  constructor(box: HTMLElement, inner: HTMLElement, news: (news: PoolNews) => void) {
    this.scroll = new LogScroll(box, inner);
    this.inner = inner;
    this.news = news;
    box.addEventListener('scroll', () => this.scrolled(), { passive: true });
  }

  /** Another run or another filter: what is shown is asked for anew. */
  show(filter: LogFilter, look: Pick<RowLook, 'started' | 'quoted' | 'raw'>): void {
    const quotes = look.quoted.size !== this.look.quoted.size;
    this.look = { ...this.look, ...look };
    if (JSON.stringify(filter) === JSON.stringify(this.filter)) {
      // What is quoted comes out of its fold.
      if (quotes) void this.reload();
      this.later();
      return;
    }
    if (filter.run !== this.filter?.run) this.open = [];
    this.filter = filter;
    this.generation++;
    this.rows.clear();
    this.asked.clear();
    this.total = 0;
    this.lines = 0;
    this.select(undefined);
    if (this.wish !== undefined && performance.now() < this.wish.until) {
      void this.seek(this.wish.place);
      return;
    }
    this.following = true;
    void this.tail();
  }

  /** The log grew. Without a filter its end came with the news; under one it is asked for. */
  grew(end: LogWindow): void {
    const { filter } = this;
    if (filter === undefined) return;
    const all =
      filter.ranks.length === 0 &&
      filter.stage === undefined &&
      filter.attempt === undefined &&
      filter.level === undefined &&
      filter.q === '' &&
      this.open.length === 0;
    if (!all) {
      void this.tail();
      return;
    }
    this.take(end);
    if (this.following) this.toEnd();
    else this.refresh(end.from);
    this.tell();
    this.later();
  }

  follow(): void {
    this.following = true;
    this.wish = undefined;
    this.toEnd();
    this.tell();
  }

  /** Goes to that line, a third from the top; a fold that it is in opens. */
  async reveal(place: string): Promise<void> {
    this.wish = { place, until: performance.now() + WISH_MILLISECONDS };
    await this.seek(place);
  }

  /** Chooses the row that stands for that line, or the next one from the chosen one. */
  choose(place: string | number): void {
    const step = typeof place === 'number';
    const first =
      this.selected?.index ?? (step && place < 0 ? this.scroll.first() + 1 : this.scroll.first() - 1);
    const index = step
      ? Math.min(this.total - 1, Math.max(0, first + place))
      : [...this.rows].find(([, row]) => placeText(row) === place)?.[0];
    const row = index === undefined ? undefined : this.rows.get(index);
    if (index === undefined || row === undefined) return;
    this.following = false;
    this.select({ index, row });
    const top = this.scroll.first();
    if (index < top) this.scroll.to(index);
    else if (index > top + this.scroll.visible() - 2) this.scroll.to(index - this.scroll.visible() + 2);
  }

  /** Opens the fold of that row, or closes it; without a place that of the chosen one. */
  toggle(place = this.selected === undefined ? undefined : placeText(this.selected.row)): void {
    const fold = [...this.rows.values()].find((row) => placeText(row) === place)?.fold;
    if (fold === undefined) return;
    const key = placeText(fold.place);
    const others = this.open.filter((one) => one !== key);
    this.open = fold.open ? others : [...others, key].slice(-MOST_OPEN);
    this.following = false;
    void this.reload();
  }

  /** Lines as the engines wrote them, of the rows from one element to another. */
  rawOf(holds: (row: HTMLElement) => boolean): string {
    return this.pool
      .filter((element) => !element.hidden && holds(element))
      .map((element) => Number(element.getAttribute('aria-rowindex')) - 1)
      .sort((a, b) => a - b)
      .flatMap((index) => this.rows.get(index) ?? [])
      .map((row) => row.text)
      .join('\n');
  }

  private select(selected: { readonly index: number; readonly row: LogRow } | undefined): void {
    this.selected = selected;
    this.look = { ...this.look, selected: selected === undefined ? undefined : placeText(selected.row) };
    this.tell();
    this.later();
  }

  private async seek(place: string): Promise<void> {
    if (this.filter === undefined) return;
    this.following = false;
    const { generation } = this;
    const answer = await this.ask({ count: 1, around: place });
    const row = answer?.rows[0];
    if (answer === undefined || row === undefined || generation !== this.generation) return;
    if (answer.opened !== undefined) {
      this.open = [...this.open, placeText(answer.opened)].slice(-MOST_OPEN);
      this.generation++;
      this.asked.clear();
      this.rows.clear();
    }
    this.take(answer);
    this.look = { ...this.look, flashed: place };
    if (placeText(row) === place) this.select({ index: answer.from, row });
    this.scroll.to(Math.max(0, answer.from - Math.floor(this.scroll.visible() / 3)));
    this.tell();
    this.later();
  }

  /** Asks anew for what is in view: the rows are others. Those before stand until the answer is there. */
  private async reload(): Promise<void> {
    this.generation++;
    this.asked.clear();
    const { generation } = this;
    const from = Math.floor(this.scroll.first() / WINDOW) * WINDOW;
    const answer = await this.ask({ from, count: WINDOW });
    if (answer === undefined || generation !== this.generation) return;
    this.rows.clear();
    this.take(answer);
    this.choseAgain();
    this.tell();
    this.later();
  }

  /** The chosen line may stand elsewhere now, or in the row of its fold. */
  private choseAgain(): void {
    const { selected } = this;
    if (selected === undefined) return;
    const fold = selected.row.fold?.place;
    const same = ([, row]: readonly [number, LogRow]): boolean =>
      placeText(row) === placeText(selected.row) ||
      (fold !== undefined && row.fold !== undefined && placeText(row.fold.place) === placeText(fold));
    const found = [...this.rows].find(same);
    this.select(found === undefined ? undefined : { index: found[0], row: found[1] });
  }

  private ask(part: { readonly from?: number; readonly count: number; readonly around?: string }) {
    const { filter, open } = this;
    return filter === undefined
      ? Promise.resolve(undefined)
      : getLog({ ...filter, ...part, open }).catch(() => undefined);
  }

  /** Of a closed fold in view the latest line is another now and then, though the row stays. */
  private refresh(before: number): void {
    const top = this.scroll.first();
    const stale = [...Array(this.scroll.visible()).keys()].some(
      (slot) => top + slot < before && this.rows.get(top + slot)?.fold?.open === false,
    );
    if (!stale || performance.now() - this.refreshed < REFRESH_MILLISECONDS) return;
    this.refreshed = performance.now();
    void this.fetch(top);
  }

  private async tail(): Promise<void> {
    const { generation } = this;
    if (this.asked.has(-1)) return;
    this.asked.add(-1);
    const answer = await this.ask({ count: 200 });
    if (generation !== this.generation) return;
    this.asked.delete(-1);
    if (answer === undefined) return;
    this.take(answer);
    if (this.following) this.toEnd();
    else this.refresh(answer.from);
    this.tell();
    this.later();
  }

  private take(window: LogWindow): void {
    this.total = window.total;
    this.lines = window.lines;
    this.warnings = window.warnings;
    this.errors = window.errors;
    for (const [index, row] of window.rows.entries()) this.rows.set(window.from + index, row);
    for (const key of this.rows.keys()) {
      if (this.rows.size <= KEPT) break;
      this.rows.delete(key);
    }
    this.scroll.resize(this.total);
  }

  private scrolled(): void {
    const end = this.scroll.atEnd();
    if (end !== this.following) {
      this.following = end;
      this.seen = this.lines;
      this.tell();
    }
    this.later();
  }

  private toEnd(): void {
    this.scroll.toEnd();
    this.seen = this.lines;
  }

  private tell(): void {
    this.news({
      total: this.total,
      lines: this.lines,
      warnings: this.warnings,
      errors: this.errors,
      following: this.following,
      unread: this.following ? 0 : Math.max(0, this.lines - this.seen),
      selected: this.selected?.row,
    });
  }

  private later(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const count = Math.min(this.total, this.scroll.visible() + 2);
    const first = this.scroll.first();
    while (this.pool.length < count) {
      const row = newRow();
      this.pool.push(row);
      this.inner.append(row);
    }
    const top = this.scroll.top(first);
    let missing: number | undefined;
    for (const [slot, element] of this.pool.entries()) {
      const index = first + slot;
      const row = slot < count ? this.rows.get(index) : undefined;
      element.hidden = slot >= count || index >= this.total;
      if (element.hidden) continue;
      element.style.transform = `translateY(${top + slot * ROW}px)`;
      element.setAttribute('aria-rowindex', String(index + 1));
      if (row === undefined) missing ??= index;
      writeRow(element, row, this.look);
    }
    if (missing !== undefined) void this.fetch(missing);
  }

  private async fetch(index: number): Promise<void> {
    const from = Math.max(0, Math.floor(index / WINDOW) * WINDOW);
    const { generation } = this;
    if (this.asked.has(from)) return;
    this.asked.add(from);
    const answer = await this.ask({ from, count: WINDOW });
    if (generation !== this.generation) return;
    this.asked.delete(from);
    if (answer === undefined) return;
    this.take(answer);
    this.tell();
    this.later();
  }
}
