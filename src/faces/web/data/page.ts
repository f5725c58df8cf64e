import type { ClusterInfo } from '../../../domain/cluster.ts';
import type { Event } from '../../../domain/event.ts';
import type { NodeFacts } from '../../../domain/facts.ts';
import type { LogWindow } from '../../../domain/log-rows.ts';
import { blank, fold, foldAll, type RunState } from '../../../domain/run-state.ts';
import { type Address, readAddress, writeAddress } from './address.ts';
import { getCluster, getEvents, getLook, getRun, getRuns, Refused, type RunSummary } from './api.ts';
import { follow } from './stream.ts';

/** All that the page shows; a new object for each change. */
export type Page = {
  readonly address: Address;
  readonly cluster: ClusterInfo | undefined;
  readonly runs: readonly RunSummary[];
  /** The run that is shown, as it is now. */
  readonly live: RunState;
  /** All its events, once somebody wants to go back in it. */
  readonly events: readonly Event[] | undefined;
  /** The run as of `address.at`; the live one otherwise. */
  readonly shown: RunState;
  /** The end of its whole log; a new one whenever that grew. */
  readonly logEnd: LogWindow | undefined;
  /** The newest look, the run's own apart. */
  readonly look: { readonly at: string; readonly facts: readonly NodeFacts[] } | undefined;
  readonly connection: { readonly state: 'connecting' | 'live' | 'lost'; readonly since: number };
  readonly refused: { readonly message: string; readonly hint: string } | undefined;
  /** ms; moves each second, and with each event. */
  readonly now: number;
  /** Ids of steps chosen in the consent card, before anything is sent. */
  readonly chosen: ReadonlySet<string>;
  /** Reading for the first time. */
  readonly reading: boolean;
};

/** Whether this client may change anything: the server may only show, or its token may. */
export function mayChange({ cluster }: Page): boolean {
  return cluster !== undefined && !cluster.readOnly && cluster.scope === 'write';
}

/** Every so many events the state is kept, so that the slider need not fold from the start. */
const SNAPSHOT = 2000;

/** The page's memory: one object, changed by what the server tells and what a person does. */
export class PageStore {
  page: Page;
  private readonly draw: (page: Page) => void;
  private frame = 0;
  private queue: Event[] = [];
  private unfollow: (() => void) | undefined;
  private opened = 0;
  /** States of the shown run after each SNAPSHOT events. */
  private snapshots: RunState[] = [];

  constructor(draw: (page: Page) => void) {
    this.draw = draw;
    this.page = {
      address: readAddress(location.pathname, location.search),
      cluster: undefined,
      runs: [],
      live: blank,
      events: undefined,
      shown: blank,
      logEnd: undefined,
      look: undefined,
      connection: { state: 'connecting', since: Date.now() },
      refused: undefined,
      now: Date.now(),
      chosen: new Set(),
      reading: true,
    };
  }

  async start(): Promise<void> {
    addEventListener('popstate', () => void this.open(readAddress(location.pathname, location.search)));
    setInterval(() => this.change({ now: Date.now() }), 1000);
    setInterval(() => void this.readRuns(), 5000);
    this.change({});
    const cluster = this.attempt(async () => this.change({ cluster: await getCluster() }), false);
    // It names the newest run, where the address names none; the list of runs may take longer than that run.
    if (this.page.address.run === undefined) await cluster;
    await this.open(this.page.address);
    void this.lookNow(false);
    await this.readRuns(false);
  }

  /** What a person goes to; written into the address bar. */
  go(address: Address): void {
    history.pushState(null, '', writeAddress(address));
    void this.open(address);
  }

  /** As `go`, but without a new entry to go back to (filters, the slider). */
  refine(change: Partial<Address>): void {
    const address = { ...this.page.address, ...change };
    history.replaceState(null, '', writeAddress(address));
    void this.open(address);
  }

  change(part: Partial<Page>): void {
    this.page = { ...this.page, ...part };
    if (this.frame === 0) this.frame = this.later(() => this.paint());
  }

  async lookNow(fresh: boolean): Promise<void> {
    await this.attempt(async () => this.change({ look: await getLook(fresh) }));
  }

  /** Runs it; a refusal is shown in its own card, not thrown. Without `clears` a success leaves one before it there. */
  async attempt(work: () => Promise<unknown>, clears = true): Promise<boolean> {
    try {
      await work();
      if (clears && this.page.refused) this.change({ refused: undefined });
      return true;
    } catch (error) {
      if (error instanceof Refused) this.change({ refused: { message: error.message, hint: error.hint } });
      return false;
    }
  }

  private later(work: () => void): number {
    // A hidden tab gets no animation frames; it folds and paints nothing anybody sees, once a second.
    return document.hidden ? window.setTimeout(work, 1000) : requestAnimationFrame(work);
  }

  private paint(): void {
    this.frame = 0;
    if (this.queue.length > 0) {
      const events = this.queue;
      this.queue = [];
      let live = this.page.live;
      for (const event of events) if (event.seq > live.lastSeq) live = fold(live, event);
      const kept = this.page.events === undefined ? undefined : [...this.page.events, ...events];
      const shown = this.page.address.at === undefined ? live : this.page.shown;
      this.page = { ...this.page, live, shown, events: kept, now: Date.now() };
    }
    this.draw(this.page);
  }

  private async readRuns(clears = true): Promise<void> {
    await this.attempt(async () => {
      const runs = await getRuns();
      if (runs.length !== this.page.runs.length || runs[0]?.outcome !== this.page.runs[0]?.outcome)
        this.change({ runs });
      const { address } = this.page;
      const newest = runs[0]?.run;
      if (
        address.view === 'run' &&
        address.run === undefined &&
        newest !== undefined &&
        newest !== this.page.live.run
      )
        if (this.page.live.run === '')
          // Folds that lie open are of the run before, where there was one.
          await this.open(address);
        else this.refine({ open: [] });
    }, clears);
  }

  private async open(address: Address): Promise<void> {
    const token = ++this.opened;
    this.change({ address });
    if (address.view === 'runs') return;
    const run = address.run ?? this.page.runs[0]?.run ?? this.page.cluster?.newestRun;
    if (run === undefined) {
      this.change({ reading: false, connection: { state: 'live', since: Date.now() } });
      return;
    }
    if (run !== this.page.live.run) {
      this.unfollow?.();
      this.queue = [];
      this.snapshots = [];
      const read = await this.attempt(async () => {
        const live = await getRun(run);
        if (token !== this.opened) return;
        this.change({
          live,
          shown: live,
          events: undefined,
          chosen: new Set(),
          reading: false,
          logEnd: undefined,
        });
        this.unfollow = follow(run, live.lastSeq, {
          event: (event) => {
            this.queue.push(event);
            this.change({});
          },
          ledger: (look) => this.change({ look }),
          log: (logEnd) => this.change({ logEnd }),
          newest: () => void this.readRuns(),
          state: (state) => this.change({ connection: { state, since: Date.now() } }),
        });
      });
      if (!read || token !== this.opened) return this.change({ reading: false });
    }
    if (address.at === undefined) return this.change({ shown: this.page.live });
    await this.goBackTo(run, address.at, token);
  }

  private async goBackTo(run: string, at: number, token: number): Promise<void> {
    if (this.page.events === undefined) {
      await this.attempt(async () => this.change({ events: await getEvents(run) }));
      if (token !== this.opened) return;
    }
    const events = this.page.events ?? [];
    const until = events.findIndex((event) => event.seq > at);
    const end = until === -1 ? events.length : until;
    const kept = Math.min(this.snapshots.length, Math.floor(end / SNAPSHOT));
    let state = this.snapshots[kept - 1] ?? blank;
    for (let from = kept * SNAPSHOT; from < end; from += SNAPSHOT) {
      const to = Math.min(from + SNAPSHOT, end);
      state = foldAll(events.slice(from, to), state);
      if (to % SNAPSHOT !== 0) break;
      this.snapshots[to / SNAPSHOT - 1] = state;
      await new Promise((resolve) => setTimeout(resolve)); // between slices the page answers
      if (token !== this.opened) return;
    }
    this.change({ shown: state });
  }
}
