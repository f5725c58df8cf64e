import { stopwatch } from '../../../domain/units.ts';
import { getLog, type LogQuery, type LogRow, type LogWindow } from '../data/api.ts';

const ROW = 19;
const WINDOW = 500;
const KEPT = 5000;
/** Above this a pixel per row would outgrow what a browser lays out: position then maps to index. */
const MOST_PIXELS = 300_000 * ROW;

export type PoolNews = {
  readonly total: number;
  readonly warnings: number;
  readonly errors: number;
  readonly following: boolean;
  /** Rows that came since following stopped. */
  readonly unread: number;
};

type Filter = Omit<LogQuery, 'from' | 'count' | 'around'>;

/**
 * The rows of a log that are in view, written into a fixed pool of elements. The page never holds the log: windows of
 * 500 rows are asked for by index, and 5,000 rows at most are kept.
 */
export class LogPool {
  private readonly box: HTMLElement;
  private readonly inner: HTMLElement;
  private readonly pool: HTMLElement[] = [];
  private readonly rows = new Map<number, LogRow>();
  private readonly asked = new Set<number>();
  private readonly news: (news: PoolNews) => void;
  private filter: Filter | undefined;
  private total = 0;
  private warnings = 0;
  private errors = 0;
  private following = true;
  private seen = 0;
  private frame = 0;
  private generation = 0;
  private started = 0;
  private quoted: ReadonlyMap<string, number> = new Map();
  private flashed = '';

  constructor(box: HTMLElement, inner: HTMLElement, news: (news: PoolNews) => void) {
    this.box = box;
    this.inner = inner;
    this.news = news;
    box.addEventListener('scroll', () => this.scrolled(), { passive: true });
  }

  /** Another run or another filter: what is shown is asked for anew. */
  show(filter: Filter, startedAt: number, quoted: ReadonlyMap<string, number>): void {
    this.started = startedAt;
    this.quoted = quoted;
    if (JSON.stringify(filter) === JSON.stringify(this.filter)) {
      this.later();
      return;
    }
    this.filter = filter;
    this.generation++;
    this.rows.clear();
    this.asked.clear();
    this.total = 0;
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
      filter.q === '';
    if (!all) {
      void this.tail();
      return;
    }
    this.take(end);
    if (this.following) this.toEnd();
    this.tell();
    this.later();
  }

  follow(): void {
    this.following = true;
    this.toEnd();
    this.tell();
  }

  /** Goes to the first row that matches, a third from the top. */
  async reveal(attempt: number, rank: number, line: number): Promise<void> {
    if (this.filter === undefined) return;
    this.following = false;
    const answer = await getLog({ ...this.filter, count: 1, around: `${attempt}-${rank}-${line}` }).catch(
      () => undefined,
    );
    const index = answer?.from;
    if (index === undefined || answer === undefined) return;
    this.take(answer);
    this.flashed = `${attempt}-${rank}-${line}`;
    this.scrollTo(Math.max(0, index - Math.floor(this.visible() / 3)));
    this.later();
  }

  private async tail(): Promise<void> {
    const { filter, generation } = this;
    if (filter === undefined || this.asked.has(-1)) return;
    this.asked.add(-1);
    const answer = await getLog({ ...filter, count: 200 }).catch(() => undefined);
    this.asked.delete(-1);
    if (answer === undefined || generation !== this.generation) return;
    this.take(answer);
    if (this.following) this.toEnd();
    this.tell();
    this.later();
  }

  private take(window: LogWindow): void {
    this.total = window.total;
    this.warnings = window.warnings;
    this.errors = window.errors;
    for (const [index, row] of window.rows.entries()) this.rows.set(window.from + index, row);
    for (const key of this.rows.keys()) {
      if (this.rows.size <= KEPT) break;
      this.rows.delete(key);
    }
    this.inner.style.height = `${Math.min(MOST_PIXELS, this.total * ROW)}px`;
  }

  private scrolled(): void {
    const end = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - ROW;
    if (end !== this.following) {
      this.following = end;
      this.seen = this.total;
      this.tell();
    }
    this.later();
  }

  private toEnd(): void {
    this.box.scrollTop = this.box.scrollHeight;
    this.seen = this.total;
  }

  private visible(): number {
    return Math.max(1, Math.ceil(this.box.clientHeight / ROW));
  }

  /** Index of the first row in view. */
  private first(): number {
    const most = Math.max(0, this.total - this.visible());
    const range = Math.max(1, this.box.scrollHeight - this.box.clientHeight);
    if (this.total * ROW <= MOST_PIXELS) return Math.min(most, Math.floor(this.box.scrollTop / ROW));
    return Math.round((this.box.scrollTop / range) * most);
  }

  private scrollTo(index: number): void {
    const most = Math.max(1, this.total - this.visible());
    const range = this.box.scrollHeight - this.box.clientHeight;
    this.box.scrollTop = this.total * ROW <= MOST_PIXELS ? index * ROW : (index / most) * range;
  }

  private tell(): void {
    this.news({
      total: this.total,
      warnings: this.warnings,
      errors: this.errors,
      following: this.following,
      unread: this.following ? 0 : Math.max(0, this.total - this.seen),
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
    const count = Math.min(this.total, this.visible() + 2);
    const first = this.first();
    while (this.pool.length < count) {
      const row = document.createElement('div');
      row.className = 'row';
      row.setAttribute('role', 'row');
      row.innerHTML =
        '<span role="cell" class="t"></span><span role="cell" class="r"></span><span role="cell" class="x"></span>';
      this.pool.push(row);
      this.inner.append(row);
    }
    const top = this.total * ROW <= MOST_PIXELS ? first * ROW : this.box.scrollTop;
    let missing: number | undefined;
    for (const [slot, element] of this.pool.entries()) {
      const index = first + slot;
      const row = slot < count ? this.rows.get(index) : undefined;
      element.hidden = slot >= count || index >= this.total;
      if (element.hidden) continue;
      element.style.transform = `translateY(${top + slot * ROW}px)`;
      element.setAttribute('aria-rowindex', String(index + 1));
      if (row === undefined) missing ??= index;
      this.write(element, row);
    }
    if (missing !== undefined) void this.fetch(missing);
  }

  private write(element: HTMLElement, row: LogRow | undefined): void {
    const [time, rank, text] = [...element.children];
    if (!(time && rank && text)) return;
    if (row === undefined) {
      time.textContent = '';
      rank.textContent = '';
      text.textContent = '…';
      element.className = 'row';
      return;
    }
    const key = `${row.attempt}-${row.rank}-${row.line}`;
    const quote = this.quoted.get(key);
    time.textContent = `+${stopwatch(Math.max(0, row.at - this.started))}`;
    time.setAttribute('title', new Date(row.at).toISOString());
    rank.textContent = quote === undefined ? String(row.rank) : String(quote);
    rank.className =
      quote === undefined ? `r rank-${row.rank % 4}${row.rank > 3 ? ' dashed' : ''}` : 'r plate';
    text.textContent = row.text;
    text.setAttribute('title', row.text.length > 200 ? row.text.slice(0, 2000) : '');
    element.className = `row ${row.level}${quote === undefined ? '' : ' quoted'}${key === this.flashed ? ' shown' : ''}`;
    element.id = `log-${row.rank}-${row.line}`;
  }

  private async fetch(index: number): Promise<void> {
    const from = Math.max(0, Math.floor(index / WINDOW) * WINDOW);
    const { filter, generation } = this;
    if (filter === undefined || this.asked.has(from)) return;
    this.asked.add(from);
    const answer = await getLog({ ...filter, from, count: WINDOW }).catch(() => undefined);
    this.asked.delete(from);
    if (answer === undefined || generation !== this.generation) return;
    this.take(answer);
    this.tell();
    this.later();
  }
}
