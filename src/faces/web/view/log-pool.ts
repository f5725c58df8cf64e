import { type Move, markAt } from '../../../domain/log-marks.ts';
import { type LogRow, type LogWindow, placeText } from '../../../domain/log-rows.ts';
import { LogWindows, NEVER, type WindowsFilter } from '../data/log-windows.ts';
import { newRow, type RowLook, writeRow } from './log-row.ts';
import { LogScroll, ROW } from './log-scroll.ts';
import { type InView, StripCanvas } from './log-strip.ts';

/** So long a line that was asked for is still gone to when the filter changes. */
const WISH_MILLISECONDS = 1500;
const REFRESH_MILLISECONDS = 500;

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
  readonly selectedRow: number | undefined;
};

/** The elements that a log is drawn in: a box that scrolls, what is in it, and the strip beside. */
export type PoolPlace = {
  readonly box: HTMLElement;
  readonly inner: HTMLElement;
  readonly strip: HTMLCanvasElement;
  /** Where the stage of the first row in view stands. */
  readonly mark: HTMLElement;
};

/** What the pool tells: how it stands, and which folds lie open now. */
export type PoolEars = {
  readonly news: (news: PoolNews) => void;
  readonly opened: (open: readonly string[]) => void;
};

/** The rows of a log that are in view, written into a fixed pool of elements. The page never holds the log. */
export class LogPool {
  private readonly inner: HTMLElement;
  private readonly scroll: LogScroll;
  private readonly strip: StripCanvas;
  private readonly pool: HTMLElement[] = [];
  private readonly windows = new LogWindows();
  private readonly mark: HTMLElement;
  private readonly ears: PoolEars;
  private moves: readonly Move[] = [];
  private following = true;
  private seen = 0;
  private frame = 0;
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

  constructor({ box, inner, strip, mark }: PoolPlace, ears: PoolEars) {
    this.inner = inner;
    this.mark = mark;
    this.scroll = new LogScroll(box, inner);
    this.strip = new StripCanvas(
      strip,
      (pieces) => this.windows.strip(pieces),
      (row) => this.jump(row),
    );
    this.ears = ears;
    box.addEventListener('scroll', () => this.scrolled(), { passive: true });
  }

  /** Another run or another filter: what is shown is asked for anew. */
  async show(
    filter: WindowsFilter,
    open: readonly string[],
    { moves, ...look }: Pick<RowLook, 'started' | 'quoted' | 'raw'> & { readonly moves: readonly Move[] },
  ): Promise<void> {
    this.moves = moves;
    const quotes = look.quoted.size !== this.look.quoted.size;
    this.look = { ...this.look, ...look };
    const anew = this.windows.key === NEVER;
    if (!this.windows.turnTo(filter, open)) {
      // What is quoted comes out of its fold.
      if (quotes) void this.windows.reload(this.scroll.first()).then((made) => this.made(made));
      this.later();
      return;
    }
    this.select(undefined);
    if (this.wish !== undefined && performance.now() < this.wish.until) {
      await this.seek(this.wish.place);
      return;
    }
    const last = open.at(-1);
    // Whoever opened a fold and copied the address means what is in it.
    if (anew && last !== undefined && (await this.seek(last))) return;
    this.following = true;
    await this.tail();
  }

  /** The log grew. Without a filter its end came with the news; under one it is asked for. */
  grew(end: LogWindow): void {
    if (!this.windows.whole) {
      void this.tail();
      return;
    }
    this.windows.take(end);
    this.ended(end.from);
  }

  /** The row that a person chose. */
  get chosen(): LogRow | undefined {
    return this.selected?.row;
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

  /** Chooses the row that stands for that line, or one so many rows from the chosen one. */
  choose(wanted: string | number): void {
    const step = typeof wanted === 'number' ? wanted : undefined;
    const top = this.scroll.first();
    const last = this.windows.sizes.total - 1;
    const before = this.selected?.index ?? (step === -1 ? top + 1 : top - 1);
    const index =
      step === undefined
        ? this.windows.find((row) => placeText(row) === wanted)
        : Math.min(last, Math.max(0, before + step));
    const row = index === undefined ? undefined : this.windows.row(index);
    if (index === undefined || row === undefined) return;
    this.following = false;
    this.select({ index, row });
    const visible = this.scroll.visible();
    if (index < top) this.scroll.to(index);
    else if (index > top + visible - 2) this.scroll.to(index - visible + 2);
  }

  /** Opens the fold of the chosen row, or closes it. */
  toggle(): void {
    if (this.selected?.row.fold === undefined) return;
    this.following = false;
    void this.windows.toggle(this.selected.row, this.scroll.first()).then((made) => this.made(made));
    this.ears.opened(this.windows.open);
  }

  /** Goes to the mark or quoted line next to the chosen row, or to the first one in view. */
  async toStop(step: 1 | -1): Promise<void> {
    const here = this.selected?.index ?? (step > 0 ? this.scroll.first() - 1 : this.scroll.first());
    const stop = this.strip.stop(here, step);
    if (stop !== undefined) await this.reveal(placeText(stop));
  }

  /** Goes to the first line that is an error, of that attempt. */
  async toError(attempt: number | undefined): Promise<void> {
    const place = await this.windows.firstError(attempt);
    if (place !== undefined) await this.reveal(place);
  }

  /** Lines as the engines wrote them, of the rows in view that are like that. */
  rawOf(holds: (row: HTMLElement) => boolean): string {
    return this.pool
      .filter((element) => !element.hidden && holds(element))
      .map((element) => Number(element.getAttribute('aria-rowindex')) - 1)
      .sort((a, b) => a - b)
      .flatMap((index) => this.windows.row(index) ?? [])
      .map((row) => row.text)
      .join('\n');
  }

  /** Goes to that row: it is in the middle then. */
  private jump(index: number): void {
    this.wish = undefined;
    this.scroll.to(Math.max(0, index - Math.floor(this.scroll.visible() / 2)));
  }

  private select(selected: { readonly index: number; readonly row: LogRow } | undefined): void {
    this.selected = selected;
    this.look = { ...this.look, selected: selected === undefined ? undefined : placeText(selected.row) };
    this.tell();
    this.later();
  }

  /** Whether it is there under this filter. */
  private async seek(place: string): Promise<boolean> {
    this.following = false;
    const found = await this.windows.seek(place);
    this.ears.opened(this.windows.open);
    // Where the filter hides it there is nowhere to go.
    if (found === undefined || placeText(found.row) !== place) return false;
    this.scroll.resize(this.windows.sizes.total);
    this.look = { ...this.look, flashed: place };
    this.select(found);
    this.scroll.to(Math.max(0, found.index - Math.floor(this.scroll.visible() / 3)));
    this.tell();
    this.later();
    return true;
  }

  /** The rows are others now. The chosen line may stand elsewhere, or in the row of its fold. */
  private made(made: boolean): void {
    if (!made) return;
    this.scroll.resize(this.windows.sizes.total);
    const { selected, windows } = this;
    if (selected !== undefined) {
      const [place, fold] = [placeText(selected.row), selected.row.fold?.place];
      const index = windows.find(
        (row) =>
          placeText(row) === place ||
          (fold !== undefined && row.fold !== undefined && placeText(row.fold.place) === placeText(fold)),
      );
      const row = index === undefined ? undefined : windows.row(index);
      this.select(index === undefined || row === undefined ? undefined : { index, row });
    }
    this.tell();
    this.later();
  }

  private async tail(): Promise<void> {
    const from = await this.windows.tail();
    if (from !== undefined) this.ended(from);
  }

  /** The end is here, from that row on. */
  private ended(from: number): void {
    this.scroll.resize(this.windows.sizes.total);
    if (this.following) this.toEnd();
    else this.refresh(from);
    this.tell();
    this.later();
  }

  /** Of a closed fold in view the latest line is another now and then, though the row stays. */
  private refresh(before: number): void {
    const top = this.scroll.first();
    const stale = [...Array(this.scroll.visible()).keys()].some(
      (slot) => top + slot < before && this.windows.row(top + slot)?.fold?.open === false,
    );
    if (!stale || performance.now() - this.refreshed < REFRESH_MILLISECONDS) return;
    this.refreshed = performance.now();
    void this.fetch(top);
  }

  private async fetch(index: number): Promise<void> {
    if (!(await this.windows.fetch(index))) return;
    this.scroll.resize(this.windows.sizes.total);
    this.tell();
    this.later();
  }

  private scrolled(): void {
    const end = this.scroll.atEnd();
    if (end !== this.following) {
      this.following = end;
      this.seen = this.windows.sizes.lines;
      this.tell();
    }
    this.later();
  }

  private toEnd(): void {
    this.scroll.toEnd();
    this.seen = this.windows.sizes.lines;
  }

  private tell(): void {
    const { sizes } = this.windows;
    this.ears.news({
      ...sizes,
      following: this.following,
      unread: this.following ? 0 : Math.max(0, sizes.lines - this.seen),
      selected: this.selected?.row,
      selectedRow: this.selected?.index,
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
    const { total } = this.windows.sizes;
    const view: InView = { first: this.scroll.first(), visible: this.scroll.visible(), total };
    const count = Math.min(total, view.visible + 2);
    while (this.pool.length < count) {
      const row = newRow();
      this.pool.push(row);
      this.inner.append(row);
    }
    const top = this.scroll.top(view.first);
    let missing: number | undefined;
    for (const [slot, element] of this.pool.entries()) {
      const index = view.first + slot;
      const row = slot < count ? this.windows.row(index) : undefined;
      element.hidden = slot >= count || index >= total;
      if (element.hidden) continue;
      element.style.transform = `translateY(${top + slot * ROW}px)`;
      element.setAttribute('aria-rowindex', String(index + 1));
      if (row === undefined) missing ??= index;
      writeRow(element, row, this.look);
    }
    const first = this.windows.row(view.first);
    // Until its rows are here, what stood there stays.
    if (first !== undefined) this.mark.textContent = markAt(this.moves, first);
    if (missing !== undefined) void this.fetch(missing);
    this.strip.show(view, `${this.windows.key} ${this.look.quoted.size}`);
  }
}
