import type { Evidence } from '../../../domain/evidence.ts';
import { type Holder, type ReachedFacts, valueIf } from '../../../domain/facts.ts';
import { quotePlainly } from '../../../domain/quote.ts';
import { gib } from '../../../domain/units.ts';
import { factsAfter, factsOf, foreignHolders } from '../scene.ts';
import { isGb10Size } from './memory-readings.ts';

const GIB = 2 ** 30;
/** A desktop session holds that much; less than this is nobody in the way, unless it is this share of a small host. */
const LEAST_HOLDER_BYTES = 2 * GIB;
const LEAST_HOLDER_SHARE = 1 / 4;
const LEAST_CACHE_BYTES = 8 * GIB;
/** A context and NCCL take that much of what a look tells as available before the engine asks. */
const OWN_BYTES = 4 * GIB;

/** Who has the memory that an engine missed on a node. */
export type MemoryOwner =
  | { readonly kind: 'holder'; readonly holder: Holder; readonly sumBytes: number; readonly sure: boolean }
  | {
      readonly kind: 'cache';
      readonly cachedBytes: number;
      readonly freeBytes: number;
      readonly sure: boolean;
    }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'unseen' };

/** What an engine said that it missed. */
export type Missed = {
  readonly needBytes?: number;
  readonly freeBytes?: number;
  /** Memory of the GPU, as the engine sees it. */
  readonly gpuGib?: string | number;
};

/**
 * Tells a foreign holder from page cache by the looks before and after: on unified memory the page cache counts as
 * taken for CUDA although the kernel would give it back (spark.md; cudaMemGetInfo's free follows MemFree).
 * `needBytes` is what the engine asked for, `freeBytes` what it saw, if it said so: where it saw all that is available,
 * it counted the cache as free, and nothing is hidden. `sure` when the look after the failure shows it.
 */
export function memoryOwner(
  evidence: Evidence,
  node: string,
  { needBytes, freeBytes, gpuGib }: Missed = {},
): MemoryOwner {
  const facts = factsOf(evidence, node);
  if (facts === undefined) return { kind: 'unseen' };
  const sure = factsAfter(evidence, node) !== undefined;
  const holders = foreignHolders(facts);
  const memory = valueIf(facts.memory);
  const sumBytes = (holders ?? []).reduce((sum, holder) => sum + holder.bytes, 0);
  const first = holders?.[0];
  const least = Math.min(
    LEAST_HOLDER_BYTES,
    (memory?.totalBytes ?? Number.POSITIVE_INFINITY) * LEAST_HOLDER_SHARE,
  );
  if (first !== undefined && first.bytes >= least) {
    return { kind: 'holder', holder: first, sumBytes, sure };
  }
  if (memory !== undefined && isUnified(facts, gpuGib)) {
    const tight =
      needBytes === undefined
        ? memory.freeBytes < memory.totalBytes * 0.35
        : memory.freeBytes < needBytes && memory.availableBytes > memory.freeBytes + GIB;
    const hidden = freeBytes === undefined || freeBytes < memory.availableBytes - OWN_BYTES;
    const { cachedBytes } = memory;
    if (cachedBytes !== undefined && cachedBytes >= LEAST_CACHE_BYTES && tight && hidden) {
      return { kind: 'cache', cachedBytes, freeBytes: memory.freeBytes, sure };
    }
  }
  return holders === undefined || !sure ? { kind: 'unseen' } : { kind: 'nobody' };
}

/**
 * Whether the node's GPU uses the host's memory. Where nobody looked at the GPU it is told by the size that the engine
 * gives it, in GiB, else by the host's own.
 */
export function isUnified(facts: ReachedFacts | undefined, gpuGib?: string | number): boolean {
  const gpus = valueIf(facts?.gpus);
  if (gpus !== undefined) return gpus.some((gpu) => gpu.unified);
  const total = valueIf(facts?.memory)?.totalBytes;
  return isGb10Size(gpuGib ?? (total === undefined ? undefined : total / GIB));
}

/** Whether the newest look saw so little page cache that it hides nothing. */
export function hasLittleCache(facts: ReachedFacts | undefined): boolean {
  const cached = valueIf(facts?.memory)?.cachedBytes;
  return cached !== undefined && cached < LEAST_CACHE_BYTES;
}

/** "ollama (system service, 41.2 GiB)" */
export function holderWords(holder: Holder): string {
  const owner = holder.owner;
  const what =
    owner.kind === 'container'
      ? 'container'
      : owner.kind === 'unit'
        ? 'service'
        : owner.kind === 'untouchable'
          ? owner.what
          : `pid ${holder.pid}`;
  return `${holder.name} (${what}, ${gib(holder.bytes)})`;
}

/** The command that would stop it, for a person to run on the node. */
export function stopCommand(holder: Holder): string {
  const owner = holder.owner;
  // A Swarm service starts another task in its place at once; where the node is no manager, docker says so.
  if (owner.kind === 'container' && owner.swarmService !== undefined)
    return `docker service scale ${quotePlainly(owner.swarmService)}=0  # on a manager of the swarm`;
  if (owner.kind === 'container') return `${owner.runtime} stop ${owner.name}`;
  if (owner.kind === 'unit') {
    return owner.userUnitUid === undefined
      ? `sudo systemctl stop ${owner.unit}`
      : `systemctl --user stop ${owner.unit}`;
  }
  return `sudo kill ${holder.pid}`;
}
