import type { Level } from '../../domain/log-rows.ts';
import { Numbers } from './log-numbers.ts';

/** What a view asks of the log that it is of. */
export type Viewed = {
  levelOf(id: number): Level;
  foldOf(id: number): number;
};

export type ViewFilter = {
  /** Lines that it counts at all. */
  readonly admits: (id: number) => boolean;
  /** Of those, lines of this level alone have rows. */
  readonly level: Exclude<Level, ''> | undefined;
  /** Without, every line is a row. */
  readonly folds: boolean;
  /** Folds that lie open. */
  readonly open: ReadonlySet<number>;
  /** Lines that are seen whatever fold they are in. */
  readonly always: ReadonlySet<number>;
};

/**
 * The rows of a log under a filter: a line each, but for a closed fold, which is one row where its first line stands.
 * So a row stays where it is while its fold grows. Follows the log as it grows, and as lines come in late.
 */
export class LogView {
  /** The line that each row stands for, in the log's order: of a closed fold its first. */
  readonly rows: number[] = [];
  lines = 0;
  warnings = 0;
  errors = 0;
  private done = 0;
  private readonly counts = new Numbers();
  private readonly lasts = new Numbers();
  private readonly of: Viewed;
  private readonly filter: ViewFilter;

  constructor(of: Viewed, filter: ViewFilter) {
    this.of = of;
    this.filter = filter;
  }

  /** Takes in the lines that `order` has more than before. */
  catchUp(order: readonly number[]): void {
    for (; this.done < order.length; this.done++) this.add(order[this.done] ?? 0);
  }

  /** Forgets the lines from that place in the order on: `tail`, which may stand otherwise from now on. */
  cut(place: number, tail: readonly number[]): void {
    for (let at = this.done - place - 1; at >= 0; at--) this.drop(tail[at] ?? 0);
    this.done = Math.min(this.done, place);
  }

  /** The fold that closes over this line; 0: the line has a row of its own. */
  closedOver(id: number): number {
    const fold = this.closed(id);
    return fold !== 0 && this.counts.at(fold) > 1 ? fold : 0;
  }

  /** Lines of a closed fold that are under this filter. */
  linesIn(fold: number): number {
    return this.counts.at(fold);
  }

  /** The last of them. */
  lastIn(fold: number): number {
    return this.lasts.at(fold);
  }

  get open(): ReadonlySet<number> {
    return this.filter.open;
  }

  private add(id: number): void {
    if (!this.counted(id, 1)) return;
    this.lines++;
    const fold = this.closed(id);
    if (fold !== 0) {
      const count = this.counts.at(fold);
      this.counts.set(fold, count + 1);
      this.lasts.set(fold, id);
      if (count > 0) return;
    }
    this.rows.push(id);
  }

  private drop(id: number): void {
    if (!this.counted(id, -1)) return;
    this.lines--;
    const fold = this.closed(id);
    if (fold !== 0) {
      const count = this.counts.at(fold);
      // Its last line is among those that come again.
      this.counts.set(fold, count - 1);
      if (count > 1) return;
    }
    this.rows.pop();
  }

  private counted(id: number, by: number): boolean {
    if (!this.filter.admits(id)) return false;
    const level = this.of.levelOf(id);
    if (level === 'warning') this.warnings += by;
    else if (level === 'error') this.errors += by;
    return this.filter.level === undefined || level === this.filter.level;
  }

  private closed(id: number): number {
    const { folds, open, always } = this.filter;
    const fold = folds ? this.of.foldOf(id) : 0;
    return fold === 0 || open.has(fold) || always.has(id) ? 0 : fold;
  }
}
