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
  /** Undefined: not read yet. */
  readonly runs: readonly RunSummary[] | undefined;
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
  /** Nothing is read yet, or any more, that could be shown. */
  readonly reading: boolean;
  /** The run that the address asks for, where it could not be read. */
  readonly unread: string | undefined;
};

/** Whether this client may change anything: the server may only show, or its token may. */
export function mayChange({ cluster }: Page): boolean {
  return cluster !== undefined && !cluster.readOnly && cluster.scope === 'write';
}

/** Whose request a refusal answers; `press` is whatever a person pressed. */
type Asker = 'press' | 'cluster' | 'runs' | 'run' | 'look';

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
  /** Refusals that still stand, each until its own asker is answered or a person goes elsewhere; the last is shown. */
  private readonly refusals = new Map<Asker, NonNullable<Page['refused']>>();
  /** States of the shown run after each SNAPSHOT events. */
  private snapshots: RunState[] = [];

  constructor(draw: (page: Page) => void) {
    this.draw = draw;
    this.page = {
      address: readAddress(location.pathname, location.search),
      cluster: undefined,
      runs: undefined,
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
      unread: undefined,
    };
  }

  async start(): Promise<void> {
    addEventListener('popstate', () => this.goTo(readAddress(location.pathname, location.search)));
    setInterval(() => this.change({ now: Date.now() }), 1000);
    setInterval(() => {
      void this.readRuns();
      if (this.page.cluster === undefined) void this.readCluster();
    }, 5000);
    this.change({});
    const cluster = this.readCluster();
    // It names the newest run, where the address names none; the list of runs may take longer than that run.
    if (this.page.address.run === undefined && !(await cluster)) await this.readRuns();
    await this.open(this.page.address);
    void this.lookNow(false);
    if (this.page.runs === undefined) await this.readRuns();
  }

  /** What a person goes to; written into the address bar. */
  go(address: Address): void {
    history.pushState(null, '', writeAddress(address));
    this.goTo(address);
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
    await this.attempt(async () => this.change({ look: await getLook(fresh) }), 'look');
  }

  /**
   * Runs it; a refusal is shown in its own card, not thrown. A success takes away what the same asker was refused, and
   * nothing else. Neither counts where the answer is not `wanted` any more.
   */
  async attempt(
    work: () => Promise<unknown>,
    by: Asker = 'press',
    wanted: () => boolean = () => true,
  ): Promise<boolean> {
    try {
      await work();
      if (wanted()) this.settle(by);
      return true;
    } catch (error) {
      if (error instanceof Refused && wanted()) this.settle(by, { message: error.message, hint: error.hint });
      return false;
    }
  }

  private settle(by: Asker, refused?: Page['refused']): void {
    // One that is refused again keeps its place.
    if (refused) this.refusals.set(by, refused);
    else if (!this.refusals.delete(by)) return;
    this.change({ refused: [...this.refusals.values()].at(-1) });
  }

  private goTo(address: Address): void {
    this.refusals.clear();
    this.change({ refused: undefined });
    void this.open(address);
  }

  private readCluster(): Promise<boolean> {
    return this.attempt(async () => this.change({ cluster: await getCluster() }), 'cluster');
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

  private async readRuns(): Promise<void> {
    await this.attempt(async () => {
      const runs = await getRuns();
      if (runs.length !== this.page.runs?.length || runs[0]?.outcome !== this.page.runs[0]?.outcome)
        this.change({ runs });
      const { address } = this.page;
      const newest = runs[0]?.run;
      if (address.view === 'runs' || address.run !== undefined) return;
      if (this.page.live.run === '') await this.open(address);
      // Folds that lie open are of the run before.
      else if (newest !== undefined && newest !== this.page.live.run) this.refine({ open: [] });
    }, 'runs');
  }

  private async open(address: Address): Promise<void> {
    const token = ++this.opened;
    const wanted = (): boolean => token === this.opened;
    const { runs, cluster } = this.page;
    const run = address.view === 'runs' ? undefined : (address.run ?? runs?.[0]?.run ?? cluster?.newestRun);
    this.change({ address, unread: run === this.page.unread ? run : undefined });
    if (address.view === 'runs') return;
    if (run === undefined) {
      // That there is no run is known only from an answer.
      if (runs !== undefined || cluster !== undefined)
        this.change({ reading: false, connection: { state: 'live', since: Date.now() } });
      return;
    }
    if (run !== this.page.live.run) {
      this.unfollow?.();
      this.queue = [];
      this.snapshots = [];
      const readIt = async (): Promise<void> => {
        const live = await getRun(run);
        if (!wanted()) return;
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
      };
      const read = await this.attempt(readIt, 'run', wanted);
      if (!wanted()) return;
      if (!read)
        return this.change({
          live: blank,
          shown: blank,
          events: undefined,
          logEnd: undefined,
          reading: true,
          unread: run,
        });
    }
    if (address.at === undefined) {
      this.settle('run');
      return this.change({ shown: this.page.live, reading: false, unread: undefined });
    }
    await this.goBackTo(run, address.at, wanted);
  }

  private async goBackTo(run: string, at: number, wanted: () => boolean): Promise<void> {
    if (this.page.events === undefined) {
      const readThem = async (): Promise<void> => {
        const events = await getEvents(run);
        if (wanted()) this.change({ events });
      };
      const read = await this.attempt(readThem, 'run', wanted);
      if (!wanted()) return;
      if (!read) return this.change({ shown: blank, reading: true, unread: run });
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
      if (!wanted()) return;
    }
    this.change({ shown: state, reading: false, unread: undefined });
  }
}
