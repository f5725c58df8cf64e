import { type DriverFacts, type Gpu, type MemoryFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { CheckItem } from '../domain/report.ts';
import { gib } from '../domain/units.ts';
import { driverHeldBytes } from './driver-held.ts';

const GIB = 2 ** 30;
/** Kept free on every node where no recipe says otherwise; as `memory.reserve` of a recipe. */
export const RESERVE_BYTES = 6 * GIB;
/** So much page cache beside little free memory makes a start fail that asks CUDA what is free (spark.md §3). */
const CACHE_WORTH_BYTES = 8 * GIB;
/** Under this much a launch finds nothing free now, whatever the kernel would give back. */
const LITTLE_FREE_BYTES = 16 * GIB;
/** Contexts and the driver's own tables: so much, and a tenth of what processes have (spark.md §2), is held by none. */
const DRIVER_OWN_BYTES = 4 * GIB;
/** Percent of the last ten seconds in which all work stood still for memory. */
const STALLED_PERCENT = 5;
/** Dirty pages cannot be dropped, and writing them back takes its time. */
const MUCH_DIRTY_BYTES = 2 * GIB;

/** `about`: what a plan says and does something about itself is told apart from the rest. */
type Said = Pick<CheckItem, 'level' | 'title' | 'remedy'> & {
  readonly about: 'memory' | 'cache' | 'swap' | 'driver' | 'gpus';
};

/** What is wrong with a node's memory, or with what tells of it, each with the way out; nothing where all is well. */
export function memoryTroubles(facts: ReachedFacts, reserveBytes: number): readonly Said[] {
  const memory = valueIf(facts.memory);
  const gpus = gpusSeen(facts);
  const unified = gpus.some((gpu) => gpu.unified);
  return [
    ...(memory === undefined ? [] : lowMemory(memory, reserveBytes, unified)),
    ...(memory === undefined ? [] : kernelTroubles(memory, facts.node)),
    ...printedNumbers(gpus, memory),
    ...driverHolds(facts),
    ...driverTroubles(facts.driver, unified),
  ];
}

/** The GPUs that were seen, whether or not some are missing. */
export function gpusSeen(facts: ReachedFacts): readonly Gpu[] {
  return valueIf(facts.gpus) ?? facts.driver?.trouble?.seen ?? [];
}

function warning(about: Said['about'], title: string, remedy: string): Said {
  return { level: 'warning', about, title, remedy };
}

function lowMemory(memory: MemoryFacts, reserveBytes: number, unified: boolean): readonly Said[] {
  const { availableBytes, freeBytes } = memory;
  const lines = memory.lines;
  const files = lines === undefined ? memory.cachedBytes : valueIf(lines.cachedBytes);
  const said: Said[] = [];
  const cache = files !== undefined && files > CACHE_WORTH_BYTES ? files : undefined;
  if (availableBytes < reserveBytes && availableBytes >= RESERVE_BYTES) {
    // What is there is enough for a host to stay well: it is the recipe that asks for more.
    const all =
      reserveBytes > memory.totalBytes ? `, which is more than its ${gib(memory.totalBytes)} in all` : '';
    said.push(
      warning(
        'memory',
        `${gib(availableBytes)} available, under the recipe's reserve of ${gib(reserveBytes)}${all}.`,
        'lower memory.reserve in the recipe, or stop a holder: firstlight memory names them',
      ),
    );
  } else if (availableBytes < reserveBytes) {
    // The kernel counts clean cache as available: what it does not count is dirty, locked, shared or in use.
    const stuck = cache !== undefined && cache - availableBytes > CACHE_WORTH_BYTES;
    const beside = stuck
      ? `, although ${gib(cache)} are page cache: so much of it is not given back by itself`
      : '';
    said.push(
      warning(
        'memory',
        `${gib(availableBytes)} available, under the reserve of ${gib(reserveBytes)}${beside}. Another launch may wedge the host.`,
        stuck
          ? 'drop the cache, and see what is left: sync; echo 3 | sudo tee /proc/sys/vm/drop_caches'
          : 'stop a holder before anything is started: firstlight memory names them',
      ),
    );
  } else if (
    unified &&
    cache !== undefined &&
    freeBytes < LITTLE_FREE_BYTES &&
    availableBytes - freeBytes > CACHE_WORTH_BYTES
  ) {
    said.push(
      warning(
        'cache',
        `Only ${gib(freeBytes)} are free now; ${gib(cache)} are page cache, which CUDA counts as used.`,
        'firstlight up drops it before a launch; by hand: sync; echo 1 | sudo tee /proc/sys/vm/drop_caches',
      ),
    );
  }
  const dirty = valueIf(lines?.dirtyBytes);
  if (dirty !== undefined && dirty > MUCH_DIRTY_BYTES)
    said.push(
      warning(
        'cache',
        `${gib(dirty)} of the page cache are not written yet.`,
        'wait for a copy that runs to end: sync',
      ),
    );
  return said;
}

function kernelTroubles({ lines }: MemoryFacts, node: string): readonly Said[] {
  if (lines === undefined) return [];
  const said: Said[] = [];
  const [total, free] = [valueIf(lines.swapTotalBytes), valueIf(lines.swapFreeBytes)];
  if (total !== undefined && free !== undefined && total > 0 && free < total / 100)
    said.push(
      warning(
        'swap',
        'Swap is used up, so it ran out of memory before.',
        'See what was pushed out before a launch; a reboot empties it.',
      ),
    );
  const pressure = valueIf(lines.pressure);
  if (pressure !== undefined && pressure.full10 >= STALLED_PERCENT)
    said.push(
      warning(
        'memory',
        `All work stood still for memory ${pressure.full10.toFixed(0)} % of the last ten seconds.`,
        'start nothing there until it has come to rest; stop a holder if it does not.',
      ),
    );
  const [cmaTotal, cmaFree] = [valueIf(lines.cmaTotalBytes), valueIf(lines.cmaFreeBytes)];
  if (cmaTotal === 0 && cmaFree !== undefined && cmaFree > 0)
    said.push(
      warning(
        'memory',
        `Its kernel reserves memory that it does not count (CmaTotal 0, CmaFree ${gib(cmaFree)}): with it two-node starts fail with NV_ERR_NO_MEMORY.`,
        `On ${node}: boot the kernel before, such as 6.17, and hold it: apt-mark hold`,
      ),
    );
  return said;
}

/** A GB10 that prints a total is unified all the same, and that total is not its memory. */
function printedNumbers(gpus: readonly Gpu[], memory: MemoryFacts | undefined): readonly Said[] {
  return gpus.flatMap(({ printed, name }): readonly Said[] => {
    if (printed === undefined) return [];
    const free = valueIf(printed.freeBytes);
    const used = free === undefined ? '' : `${mib(printed.totalBytes - free)} / `;
    const counts =
      memory === undefined
        ? ''
        : ` The host has ${gib(memory.availableBytes)} of ${gib(memory.totalBytes)} available, and that is what counts.`;
    return [
      warning(
        'memory',
        `nvidia-smi prints ${used}${mib(printed.totalBytes)} for the ${name}, which has no memory of its own.${counts}`,
        'go by what is available here, not by nvidia-smi.',
      ),
    ];
  });
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)}MiB`;
}

function driverHolds(facts: ReachedFacts): readonly Said[] {
  const held = valueIf(driverHeldBytes(facts));
  const processes = (valueIf(facts.holders) ?? []).reduce(
    (sum, { gpuBytes }) => sum + (valueIf(gpuBytes) ?? 0),
    0,
  );
  if (held === undefined || held <= DRIVER_OWN_BYTES + processes / 10) return [];
  return [
    warning(
      'driver',
      `The driver holds ${gib(held)} that no process accounts for.`,
      'memory of what has just ended comes back within three minutes; what stays is leaked, and a restart of the host brings it back.',
    ),
  ];
}

function driverTroubles(driver: DriverFacts | undefined, unified: boolean): readonly Said[] {
  if (driver === undefined) return [];
  const said: Said[] = [];
  if (driver.trouble !== undefined) {
    const { why, remedy, seen, kind } = driver.trouble;
    const left = seen.length > 0 ? ' New work may fail on the others as well.' : '';
    said.push({
      level: kind === 'no-tool' || kind === 'hangs' || kind === 'unreadable' ? 'unknown' : 'warning',
      about: 'gpus',
      title: `${why}.${left}`,
      remedy,
    });
  }
  if (unified && valueIf(driver.flavour) === 'proprietary')
    said.push(
      warning(
        'driver',
        'The proprietary kernel module is loaded; a GB10 works with the open one alone.',
        'install the driver package whose name ends in -open, then restart the host',
      ),
    );
  return said;
}
