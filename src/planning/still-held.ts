import { type Holder, type ReachedFacts, valueIf } from '../domain/facts.ts';
import { gib, list } from '../domain/units.ts';
import { driverHeldBytes } from './driver-held.ts';

/** Less than this is the ground noise of a host that runs nothing. */
const WORTH_BYTES = 2 * 2 ** 30;

/**
 * What holds a node's memory now, largest first, as sentences' parts: who, the driver without a process, files in
 * memory, and page cache that is not given back. Empty where nothing large shows.
 */
export function stillHeld(facts: ReachedFacts): readonly string[] {
  const memory = valueIf(facts.memory);
  const lines = memory?.lines;
  const driver = valueIf(driverHeldBytes(facts));
  const shared = valueIf(lines?.sharedBytes);
  const files = valueIf(lines?.cachedBytes);
  const slab = valueIf(lines?.slabBytes);
  // What is cached, is not shared memory, and is not counted as available.
  const stuck =
    memory === undefined || files === undefined || shared === undefined
      ? undefined
      : files - shared - Math.max(0, memory.availableBytes - memory.freeBytes);
  const parts: readonly (readonly [number | undefined, (size: string) => string])[] = [
    ...(valueIf(facts.holders) ?? []).map((holder: Holder) => [holder.bytes, who(holder)] as const),
    [driver, (size) => `${size} are held by the GPU driver for no process that it names`],
    [
      shared,
      (size) => `${size} are shared memory or files in /dev/shm and other tmpfs (df -h -t tmpfs; ipcs -m)`,
    ],
    [stuck, (size) => `${size} of page cache are dirty, locked or in use, and are not given back`],
    [slab, (size) => `${size} are the kernel’s own (slabtop)`],
  ];
  return parts
    .flatMap(([bytes, say]) =>
      bytes !== undefined && bytes >= WORTH_BYTES ? [{ bytes, text: say(gib(bytes)) }] : [],
    )
    .sort((a, b) => b.bytes - a.bytes)
    .map(({ text }) => text);
}

function who({ name, pid, user }: Holder): (size: string) => string {
  return (size) => `${name} of ${user}, pid ${pid}, holds ${size}`;
}

/** "What holds it now: …", or that nothing large is seen to. */
export function stillHeldSentence(facts: ReachedFacts): string {
  const held = stillHeld(facts);
  return held.length === 0
    ? 'Nothing that a look shows holds it; memory of what has just ended may take three minutes to come back.'
    : `What holds it now: ${list(held)}.`;
}
