import type { Holder, NodeFacts } from '../../../domain/facts.ts';
import { valueIf } from '../../../domain/facts.ts';
import { type Ledger, ledgerOf } from '../../../domain/ledger.ts';
import type { NodeMemoryPlan } from '../../../domain/plan.ts';
import { gib, gibNumber } from '../../../domain/units.ts';

const GIB = 2 ** 30;

export type SegmentKind = 'system' | 'unaccounted' | 'other' | 'ours' | 'cache' | 'free';

/** One part of a node's memory, left to right; bytes from zero. */
export type Segment = {
  readonly kind: SegmentKind;
  readonly name: string;
  readonly from: number;
  readonly bytes: number;
  /** A choice in the consent card would stop it. */
  readonly going: boolean;
  /** Lines for whoever points at it. */
  readonly detail: readonly string[];
};

/** Where the plan would put its parts, in bytes from zero. */
export type Track = {
  readonly from: number;
  readonly parts: readonly { readonly name: string; readonly bytes: number }[];
  readonly sumBytes: number;
  readonly errorBytes: number;
  readonly verdict: 'fits' | 'may boot' | 'does not fit' | 'unknown';
  readonly text: string;
};

/** A node's memory as it is drawn, or why it cannot be. */
export type MemoryPicture =
  | {
      readonly seen: true;
      readonly node: string;
      readonly totalBytes: number;
      readonly availableBytes: number;
      readonly segments: readonly Segment[];
      readonly reserveBytes: number | undefined;
      readonly track: Track | undefined;
      /** What matters below the bar: swap used up, much that is dirty … */
      readonly notes: readonly string[];
      readonly sentence: string;
    }
  | { readonly seen: false; readonly node: string; readonly why: string };

export type MemoryInput = {
  readonly node: string;
  readonly facts: NodeFacts | undefined;
  readonly plan: NodeMemoryPlan | undefined;
  readonly reserveBytes: number | undefined;
  /** Identities that a choice would stop. */
  readonly going: readonly string[];
  /** Whether the plan is still to come true: then its track is drawn. */
  readonly planned: boolean;
};

/** The memory bar of one node, as a person reads it from left to right: what cannot move first, free last. */
export function memoryPicture(input: MemoryInput): MemoryPicture {
  const { node, facts } = input;
  if (facts === undefined) return { seen: false, node, why: 'not looked at yet' };
  if (!facts.reached) return { seen: false, node, why: facts.failure.sentence };
  const ledger = ledgerOf(facts);
  if (ledger === undefined)
    return { seen: false, node, why: facts.memory.known ? 'memory is unknown' : facts.memory.why };
  const segments = segmentsOf(ledger, ranksOf(facts), input.going);
  const track = input.planned && input.plan ? trackOf(ledger, input.plan, segments) : undefined;
  return {
    seen: true,
    node,
    totalBytes: ledger.totalBytes,
    availableBytes: ledger.availableBytes,
    segments,
    reserveBytes: input.reserveBytes,
    track,
    notes: notesOf(ledger),
    sentence: sentenceOf(ledger, segments, track),
  };
}

function ranksOf(facts: Extract<NodeFacts, { reached: true }>): readonly Holder[] {
  return (valueIf(facts.holders) ?? []).filter((holder) => holder.owner.kind === 'rank');
}

function segmentsOf(ledger: Ledger, ranks: readonly Holder[], going: readonly string[]): readonly Segment[] {
  const big = ledger.others.filter((holder) => holder.bytes >= GIB);
  const small = ledger.others.filter((holder) => holder.bytes < GIB);
  const sumOthers = ledger.others.reduce((sum, holder) => sum + holder.bytes, 0);
  // A beat may have seen some of it go: what is left is shared out.
  const scale = sumOthers > 0 ? Math.min(1, ledger.othersBytes / sumOthers) : 0;
  const parts: Omit<Segment, 'from'>[] = [
    part('system', 'system', ledger.systemBytes, ['kernel, slab, shared memory, and what is never proposed']),
    part('unaccounted', 'unaccounted', ledger.unaccountedBytes, ['held by the driver, owner unknown']),
    ...big.map((holder) => ({
      ...part('other', holder.name, holder.bytes * scale, about(holder)),
      going: going.includes(holder.identity),
    })),
    part('other', `${small.length} small`, small.reduce((sum, one) => sum + one.bytes, 0) * scale, [
      small.map((one) => one.name).join(', '),
    ]),
    part(
      'ours',
      'ours',
      ledger.oursBytes,
      ranks.flatMap((rank) => about(rank)),
    ),
    part(
      'cache',
      'page cache',
      ledger.cacheBytes,
      ledger.dirtyBytes === undefined ? [] : [`${gib(ledger.dirtyBytes)} of it dirty`],
    ),
    part('free', 'free', ledger.freeBytes, ['held by nobody']),
  ];
  let from = 0;
  return parts
    .filter(({ bytes }) => bytes > 0)
    .map((one) => {
      const placed = { ...one, from };
      from += one.bytes;
      return placed;
    });
}

function part(kind: SegmentKind, name: string, bytes: number, detail: readonly string[]) {
  return { kind, name, bytes, going: false, detail: detail.filter((line) => line !== '') };
}

function about(holder: Holder): readonly string[] {
  const { owner } = holder;
  const who =
    owner.kind === 'container'
      ? `container, image ${owner.image}${owner.restartPolicy.known ? `, restart ${owner.restartPolicy.value}` : ''}`
      : owner.kind === 'unit'
        ? `system service${owner.restart.known ? `, restart ${owner.restart.value}` : ''}`
        : owner.kind === 'untouchable'
          ? owner.what
          : owner.kind;
  return [who, `user ${holder.user}, pid ${holder.pid}`];
}

function trackOf(ledger: Ledger, plan: NodeMemoryPlan, segments: readonly Segment[]): Track {
  const going = segments.filter((one) => one.going).reduce((sum, one) => sum + one.bytes, 0);
  const stays = Math.max(0, ledger.totalBytes - ledger.availableBytes - ledger.oursBytes - going);
  return {
    from: stays,
    parts: [
      { name: 'weights', bytes: plan.weightsBytes },
      { name: 'KV cache', bytes: plan.kvBytes },
      { name: 'engine', bytes: plan.engineBytes },
      { name: 'graphs', bytes: plan.graphsBytes },
    ].filter(({ bytes }) => bytes > 0),
    sumBytes: plan.sumBytes,
    errorBytes: plan.errorBytes,
    verdict: VERDICT[plan.verdict],
    text: `${gibNumber(plan.sumBytes)} ± ${gibNumber(plan.errorBytes)} GiB`,
  };
}

const VERDICT = {
  fits: 'fits',
  'may-boot': 'may boot',
  'does-not-fit': 'does not fit',
  unknown: 'unknown',
} as const;

function notesOf(ledger: Ledger): readonly string[] {
  const { swapTotalBytes, swapFreeBytes, dirtyBytes } = ledger;
  const swapped =
    swapTotalBytes !== undefined &&
    swapFreeBytes !== undefined &&
    swapTotalBytes > 0 &&
    swapFreeBytes < swapTotalBytes / 10;
  return [
    ...(swapped ? ['swap is used up: this node had an accident earlier'] : []),
    ...(dirtyBytes !== undefined && dirtyBytes > GIB
      ? [`${gib(dirtyBytes)} of the page cache is dirty`]
      : []),
  ];
}

/** The bar in words, for whoever hears it. */
function sentenceOf(ledger: Ledger, segments: readonly Segment[], track: Track | undefined): string {
  const held = segments.map((one) => `${one.name} ${gibNumber(one.bytes)}`).join(', ');
  const plan = track
    ? ` The plan needs ${track.text.replace(' ± ', ', give or take ')}: ${track.verdict}.`
    : '';
  return `${ledger.node}, ${gib(ledger.totalBytes)}: ${held}. ${gibNumber(ledger.availableBytes)} available.${plan}`;
}
