import type { Holder, NodeFacts } from './facts.ts';
import { valueIf } from './facts.ts';

/** What holds one node's memory, in bytes; the parts add up to the total. */
export type Ledger = {
  readonly node: string;
  readonly totalBytes: number;
  readonly availableBytes: number;
  readonly systemBytes: number;
  readonly unaccountedBytes: number;
  readonly others: readonly Holder[];
  readonly othersBytes: number;
  readonly oursBytes: number;
  readonly cacheBytes: number;
  readonly freeBytes: number;
  readonly dirtyBytes: number | undefined;
  readonly swapTotalBytes: number | undefined;
  readonly swapFreeBytes: number | undefined;
  readonly unified: boolean;
};

/** Kernel and small processes: up to this much without an owner is called system, not unaccounted. */
const SMALL_BYTES = 1.5 * 2 ** 30;

/** The ledger of the last look; undefined where the node or its memory was not seen. */
export function ledgerOf(facts: NodeFacts | undefined): Ledger | undefined {
  const memory = facts?.reached ? valueIf(facts.memory) : undefined;
  if (!facts?.reached || !memory) return undefined;
  const holders = valueIf(facts.holders) ?? [];
  const ours = holders.filter((holder) => holder.owner.kind === 'rank');
  const kept = holders.filter((holder) => holder.owner.kind !== 'rank' && isKept(holder));
  const others = holders
    .filter((holder) => holder.owner.kind !== 'rank' && !isKept(holder))
    .toSorted((a, b) => b.bytes - a.bytes);
  // What the kernel does not list has no part of its own: it stays with what nobody accounts for.
  const shared = memory.sharedBytes ?? 0;
  const cacheBytes = Math.max(0, (memory.cachedBytes ?? 0) - shared);
  const freeBytes = memory.freeBytes;
  let room = Math.max(0, memory.totalBytes - freeBytes - cacheBytes);
  const take = (bytes: number): number => {
    const taken = Math.min(bytes, room);
    room -= taken;
    return taken;
  };
  const unified = (valueIf(facts.gpus) ?? []).some((gpu) => gpu.unified);
  // A card's own memory is not the host's.
  const sum = (held: readonly Holder[]): number =>
    held.reduce(
      (bytes, holder) => bytes + (unified ? holder.bytes : (valueIf(holder.residentBytes) ?? 0)),
      0,
    );
  const oursBytes = take(sum(ours));
  const othersBytes = take(sum(others));
  // What small processes hold is the system's, and so is what the kernel counts of itself.
  const resident = holders.reduce((bytes, holder) => bytes + (valueIf(holder.residentBytes) ?? 0), 0);
  const small = Math.max(0, (valueIf(memory.lines?.anonymousBytes) ?? 0) - resident);
  const kernel = (memory.slabBytes ?? 0) + shared + (valueIf(memory.lines?.kernelBytes) ?? 0);
  let systemBytes = take(kernel + small + sum(kept));
  if (room < SMALL_BYTES) systemBytes += take(room);
  return {
    node: facts.node,
    totalBytes: memory.totalBytes,
    availableBytes: memory.availableBytes,
    systemBytes,
    unaccountedBytes: room,
    others,
    othersBytes,
    oursBytes,
    cacheBytes,
    freeBytes,
    dirtyBytes: memory.dirtyBytes,
    swapTotalBytes: memory.swapTotalBytes,
    swapFreeBytes: memory.swapFreeBytes,
    unified,
  };
}

/**
 * The ledger moved on by what the node's beat says is available now: what went since the look is counted as ours
 * while a rank of ours runs there, else as somebody else's; what came back is free.
 */
export function beatOnto(ledger: Ledger, availableBytes: number | undefined, rankRuns: boolean): Ledger {
  if (availableBytes === undefined) return ledger;
  const gone = ledger.availableBytes - availableBytes;
  if (gone >= 0) {
    const fromFree = Math.min(gone, ledger.freeBytes);
    const fromCache = Math.min(gone - fromFree, ledger.cacheBytes);
    const moved = fromFree + fromCache;
    return {
      ...ledger,
      availableBytes,
      freeBytes: ledger.freeBytes - fromFree,
      cacheBytes: ledger.cacheBytes - fromCache,
      oursBytes: ledger.oursBytes + (rankRuns ? moved : 0),
      unaccountedBytes: ledger.unaccountedBytes + (rankRuns ? 0 : moved),
    };
  }
  let back = -gone;
  const give = (bytes: number): number => {
    const given = Math.min(bytes, back);
    back -= given;
    return bytes - given;
  };
  const othersBytes = give(ledger.othersBytes);
  const oursBytes = give(ledger.oursBytes);
  const unaccountedBytes = give(ledger.unaccountedBytes);
  const given = -gone - back;
  return {
    ...ledger,
    availableBytes,
    othersBytes,
    oursBytes,
    unaccountedBytes,
    freeBytes: ledger.freeBytes + given,
  };
}

function isKept(holder: Holder): boolean {
  return holder.protectedWhy !== undefined || holder.owner.kind === 'untouchable';
}
