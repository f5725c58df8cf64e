import { GIB } from './story.ts';

export type MemorySnapshot = {
  readonly totalBytes: number;
  /** MemFree: pages that nobody uses, the page cache neither. */
  readonly freeBytes: number;
  /** MemAvailable: free, and what the kernel would take back from the page cache. */
  readonly availableBytes: number;
  readonly cacheBytes: number;
  /** Names and inodes that the kernel remembers of files. */
  readonly slabBytes: number;
  readonly systemBytes: number;
  readonly heldBytes: number;
};

/** Free pages that the kernel keeps for itself, and page cache that is always in use, unless the story has more. */
const WATERMARK = 0.125 * GIB;
const HOT_CACHE = 0.375 * GIB;
/** The kernel starts to reuse old cache before memory is quite full. */
const READ_AHEAD_STOP = 1.5 * GIB;
const LATEST_MS = 180_000;

/**
 * One host's unified memory, GPU and CPU in one pot. Every byte is the system's, somebody's, on its way back,
 * page cache, or free. Rules, chosen from what is known of GB10:
 *
 * - An owner's first hold by the GPU driver is its context (`set_device`). The driver needs pages that are free
 *   now, so this one is counted against MemFree alone.
 * - Whatever grows later, on the GPU or not, may push clean page cache out, down to the watermark. What the kernel
 *   remembers of files (slab) it gives to others than the driver only, though MemAvailable counts it.
 * - What a dead owner held comes back after a while, not at once: until then it is neither free nor available.
 */
export class Ledger {
  readonly #total: number;
  #system: number;
  readonly #cacheLimit: number;
  readonly #stuck: number;
  readonly #backAfter: () => number;
  readonly #changed: () => void;
  readonly #held = new Map<string, number>();
  readonly #comingBack = new Map<NodeJS.Timeout, number>();
  #cache: number;
  #slab = 0;
  #closed = false;

  constructor(options: {
    readonly totalBytes: number;
    readonly systemBytes: number;
    readonly cacheBytes: number;
    /** Page cache that is never given back. */
    readonly stuckCacheBytes?: number | undefined;
    /** Most the cache can hold: the files there are. */
    readonly cacheLimitBytes: number;
    /** Milliseconds until a dead owner's memory is back. */
    readonly backAfter: () => number;
    readonly changed: () => void;
  }) {
    this.#total = options.totalBytes;
    this.#system = options.systemBytes;
    this.#cacheLimit = options.cacheLimitBytes;
    this.#backAfter = options.backAfter;
    this.#changed = options.changed;
    this.#stuck = options.stuckCacheBytes ?? HOT_CACHE;
    this.#cache = Math.max(this.#stuck, options.cacheBytes);
  }

  get snapshot(): MemorySnapshot {
    const heldBytes = this.#sum();
    const freeBytes = this.#total - this.#system - heldBytes - this.#cache - this.#slab;
    return {
      totalBytes: this.#total,
      freeBytes,
      availableBytes: freeBytes + this.#cache - this.#stuck + this.#slab,
      cacheBytes: this.#cache,
      slabBytes: this.#slab,
      systemBytes: this.#system,
      heldBytes,
    };
  }

  heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0;
  }

  /** That owner now holds that many bytes in all; false, and nothing changes, when they are not to be had. */
  hold(owner: string, bytes: number, driver: boolean): boolean {
    const before = this.heldBy(owner);
    const more = bytes - before;
    const { freeBytes, availableBytes } = this.snapshot;
    const first = driver && before === 0;
    const most = first ? freeBytes : availableBytes - (driver ? this.#slab : 0);
    if (more > 0 && more > most - WATERMARK) return false;
    this.#held.set(owner, bytes);
    this.#pushOut(more - (freeBytes - WATERMARK));
    this.#changed();
    return true;
  }

  /** The owner is gone; its memory comes back late. */
  release(owner: string): void {
    const bytes = this.heldBy(owner);
    this.#held.delete(owner);
    if (bytes === 0 || this.#closed) return;
    this.#returns(bytes, this.#backAfter());
  }

  /** Files were read: they stay in the page cache as far as there is room. */
  warm(bytes: number): void {
    const room = Math.max(0, this.snapshot.freeBytes - READ_AHEAD_STOP);
    this.#cache += Math.max(0, Math.min(bytes, room, this.#cacheLimit - this.#cache));
    this.#changed();
  }

  /** Somebody read files of that size: like `warm`, but not of the model, and to the last page. */
  fill(bytes: number): void {
    this.#cache += Math.max(0, Math.min(bytes, this.snapshot.freeBytes - WATERMARK));
    this.#changed();
  }

  /** The system itself takes more, as far as it is to be had, and pushes page cache out for it. */
  takeForSystem(bytes: number): void {
    const { freeBytes, availableBytes } = this.snapshot;
    const more = Math.max(0, Math.min(bytes, availableBytes - WATERMARK));
    this.#system += more;
    this.#pushOut(more - (freeBytes - WATERMARK));
    this.#changed();
  }

  /** Somebody looks at so many files that what the kernel remembers of them takes that much. */
  remember(bytes: number): void {
    this.#slab += Math.max(0, Math.min(bytes, this.snapshot.freeBytes - WATERMARK));
    this.#changed();
  }

  /** What somebody held who has just ended: it comes back minutes later, or when `giveBack` says so. */
  owe(bytes: number): void {
    this.#returns(Math.max(0, Math.min(bytes, this.snapshot.availableBytes - WATERMARK)), LATEST_MS);
  }

  giveBack(): void {
    for (const timer of this.#comingBack.keys()) clearTimeout(timer);
    this.#comingBack.clear();
    this.#changed();
  }

  /** As /proc/sys/vm/drop_caches: 1 is the page cache, 2 what is remembered of files, 3 both. */
  dropCache(what: string): void {
    if (what !== '2') this.#cache = Math.min(this.#cache, this.#stuck);
    if (what !== '1') this.#slab = 0;
    this.#changed();
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#comingBack.keys()) clearTimeout(timer);
  }

  /** So many bytes of what can be had again are given up: page cache first. */
  #pushOut(bytes: number): void {
    if (bytes <= 0) return;
    const cache = Math.min(bytes, this.#cache - this.#stuck);
    this.#cache -= cache;
    this.#slab -= Math.min(this.#slab, bytes - cache);
  }

  #returns(bytes: number, milliseconds: number): void {
    const timer = setTimeout(() => {
      this.#comingBack.delete(timer);
      this.#changed();
    }, milliseconds);
    timer.unref();
    this.#comingBack.set(timer, bytes);
    this.#changed();
  }

  #sum(): number {
    let sum = 0;
    for (const bytes of this.#held.values()) sum += bytes;
    for (const bytes of this.#comingBack.values()) sum += bytes;
    return sum;
  }
}

/** /proc/meminfo as the kernel prints it: what the GPU driver holds stands in none of its lines. */
export function meminfo(
  { totalBytes, freeBytes, availableBytes, cacheBytes, slabBytes, systemBytes }: MemorySnapshot,
  residentBytes: number,
): string {
  const buffers = Math.min(cacheBytes * 0.04, 0.5 * GIB);
  const rows: readonly (readonly [string, number])[] = [
    ['MemTotal', totalBytes],
    ['MemFree', freeBytes],
    ['MemAvailable', availableBytes],
    ['Buffers', buffers],
    ['Cached', cacheBytes - buffers],
    ['SwapCached', 0],
    ['Active', systemBytes * 0.4],
    ['Inactive', cacheBytes],
    ['Unevictable', 0],
    ['Mlocked', 0],
    ['SwapTotal', 17179865088],
    ['SwapFree', 17179865088],
    ['Dirty', 212992],
    ['Writeback', 0],
    ['AnonPages', systemBytes * 0.45 + residentBytes],
    ['Mapped', systemBytes * 0.1],
    ['Shmem', systemBytes * 0.02],
    ['KReclaimable', systemBytes * 0.05 + slabBytes],
    ['Slab', systemBytes * 0.15 + slabBytes],
    ['SReclaimable', systemBytes * 0.05 + slabBytes],
    ['SUnreclaim', systemBytes * 0.1],
    ['KernelStack', systemBytes * 0.01],
    ['PageTables', systemBytes * 0.05],
    ['VmallocUsed', systemBytes * 0.1],
    ['Percpu', systemBytes * 0.01],
    ['CmaTotal', 134217728],
    ['CmaFree', 70983680],
    ['Hugetlb', 0],
  ];
  const lines = rows.map(
    ([name, bytes]) =>
      `${`${name}:`.padEnd(16)}${String(Math.max(0, Math.floor(bytes / 1024))).padStart(8)} kB`,
  );
  return `${lines.join('\n')}\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n`;
}
