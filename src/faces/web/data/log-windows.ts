import { type LogRow, type LogStrip, type LogWindow, placeText } from '../../../domain/log-rows.ts';
import { MOST_OPEN } from './address.ts';
import { getLog, getLogStrip, type RunLog } from './api.ts';

const WINDOW = 500;
const KEPT = 5000;
const TAIL = 200;

/** What is asked of a log, but for the folds that lie open, which this changes. */
export type WindowsFilter = Omit<RunLog, 'open'>;

type Sizes = Pick<LogWindow, 'total' | 'lines' | 'warnings' | 'errors'>;
/** The key of windows that nothing was asked of. */
export const NEVER = JSON.stringify([undefined, []]);
const NOTHING: Sizes = { total: 0, lines: 0, warnings: 0, errors: 0 };

/** The pieces of a log that the page holds: windows of 500 rows as they are asked for, 5,000 rows at most. */
export class LogWindows {
  sizes = NOTHING;
  private filter: WindowsFilter | undefined;
  /** Folds that lie open, as ATTEMPT-RANK-LINE. */
  open: readonly string[] = [];
  private readonly rows = new Map<number, LogRow>();
  private readonly asked = new Set<number>();
  /** Answers to what was asked before this moved are of other rows. */
  private generation = 0;

  /** Whether that is another filter than before, or other folds lie open: then nothing is held any more. */
  turnTo(filter: WindowsFilter, open: readonly string[]): boolean {
    if (JSON.stringify([filter, open]) === this.key) return false;
    this.filter = filter;
    this.open = open;
    this.sizes = NOTHING;
    this.rows.clear();
    this.turn();
    return true;
  }

  /** Whether these are the rows that the server tells the end of by itself. */
  get whole(): boolean {
    const { filter, open } = this;
    if (filter === undefined) return false;
    const { ranks, stage, attempt, level, q } = filter;
    const all = stage === undefined && attempt === undefined && level === undefined;
    return all && ranks.length === 0 && q === '' && open.length === 0;
  }

  /** Another word with any other rows. */
  get key(): string {
    return JSON.stringify([this.filter, this.open]);
  }

  row(index: number): LogRow | undefined {
    return this.rows.get(index);
  }

  /** Index of the first row held that is like that. */
  find(like: (row: LogRow) => boolean): number | undefined {
    for (const [index, row] of this.rows) if (like(row)) return index;
    return undefined;
  }

  take(window: LogWindow): void {
    const { total, lines, warnings, errors } = window;
    this.sizes = { total, lines, warnings, errors };
    for (const [index, row] of window.rows.entries()) this.rows.set(window.from + index, row);
    for (const key of this.rows.keys()) {
      if (this.rows.size <= KEPT) break;
      this.rows.delete(key);
    }
  }

  /** Asks for the window that the row is in; false where somebody did, or it is of no use any more. */
  async fetch(index: number): Promise<boolean> {
    const from = Math.max(0, Math.floor(index / WINDOW) * WINDOW);
    return this.once(from, { from, count: WINDOW });
  }

  /** Asks for the end; gives the index that it begins with. */
  async tail(): Promise<number | undefined> {
    return (await this.once(-1, { count: TAIL })) ? Math.max(0, this.sizes.total - TAIL) : undefined;
  }

  /** Opens the fold of that row, or closes it; what stood there goes once the rows around `index` are here. */
  async toggle(row: LogRow, index: number): Promise<boolean> {
    if (row.fold === undefined) return false;
    const key = placeText(row.fold.place);
    const others = this.open.filter((one) => one !== key);
    this.open = row.fold.open ? others : [...others, key].slice(-MOST_OPEN);
    return this.reload(index);
  }

  /** Asks anew for the rows around that one, since all may be others. */
  async reload(index: number): Promise<boolean> {
    this.turn();
    const { generation } = this;
    const answer = await this.ask({ from: Math.floor(index / WINDOW) * WINDOW, count: WINDOW });
    if (answer === undefined || generation !== this.generation) return false;
    this.rows.clear();
    this.take(answer);
    return true;
  }

  /** The row of that line, and its index; a fold that it is in opens. */
  async seek(place: string): Promise<{ readonly index: number; readonly row: LogRow } | undefined> {
    const { generation } = this;
    const answer = await this.ask({ count: 1, around: place });
    const row = answer?.rows[0];
    if (answer === undefined || row === undefined || generation !== this.generation) return undefined;
    if (answer.opened !== undefined) {
      this.open = [...this.open, placeText(answer.opened)].slice(-MOST_OPEN);
      this.rows.clear();
      this.turn();
    }
    this.take(answer);
    return { index: answer.from, row };
  }

  /** Where the first error of that attempt, or of all, stands under this filter. */
  async firstError(attempt: number | undefined): Promise<string | undefined> {
    const { filter } = this;
    if (filter === undefined) return undefined;
    const wanted = { ...filter, level: 'error', attempt: filter.attempt ?? attempt, open: [] } as const;
    const answer = await getLog({ ...wanted, from: 0, count: 1 }).catch(() => undefined);
    const row = answer?.rows[0];
    return row === undefined ? undefined : placeText(row);
  }

  async strip(pieces: number): Promise<LogStrip | undefined> {
    const { filter, open } = this;
    if (filter === undefined) return undefined;
    return getLogStrip({ ...filter, open }, pieces).catch(() => undefined);
  }

  private turn(): void {
    this.generation++;
    this.asked.clear();
  }

  private async once(mark: number, part: Parameters<LogWindows['ask']>[0]): Promise<boolean> {
    const { generation } = this;
    if (this.asked.has(mark)) return false;
    this.asked.add(mark);
    const answer = await this.ask(part);
    if (generation !== this.generation) return false;
    this.asked.delete(mark);
    if (answer === undefined) return false;
    this.take(answer);
    return true;
  }

  private async ask(part: {
    readonly from?: number;
    readonly count: number;
    readonly around?: string;
  }): Promise<LogWindow | undefined> {
    const { filter, open } = this;
    if (filter === undefined) return undefined;
    return getLog({ ...filter, ...part, open }).catch(() => undefined);
  }
}
