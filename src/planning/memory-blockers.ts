import { type NodeFacts, valueIf } from '../domain/facts.ts';
import type { Blocker } from '../domain/plan.ts';
import type { EngineName, Recipe } from '../domain/recipe.ts';
import { gib, thousands } from '../domain/units.ts';
import { type Allocation, askedBytes, type Share, stoppableHolders } from './allocate.ts';
import { RESERVE_BYTES } from './memory-items.ts';
import type { Need, Room } from './need.ts';
import { rankNameOf, reachedOf } from './our-ranks.ts';
import { stillHeldSentence } from './still-held.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

type Input = {
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
};

/** A node that cannot hold the launch, with what it misses. */
type Short = { readonly share: Share; readonly room: Room; readonly need: Need };

/** Nodes that cannot hold the launch even with everything stopped that may be stopped. */
export function memoryBlockers(allocation: Allocation, input: Input): readonly Blocker[] {
  return allocation.shares.flatMap((share): readonly Blocker[] => {
    const { node, memory, need, room } = share;
    if (memory.verdict !== 'does-not-fit' || need === undefined || room === undefined) return [];
    const short = { share, room, need };
    const reserve = reserveInTheWay(short, allocation, input);
    const after = memory.canGetAfterClearingBytes;
    const had =
      after > 0 || !room.unified
        ? `${gib(after)} can be had, ${gib(memory.sumBytes - Math.max(0, after))} short`
        : `nothing can be had beside the reserve of ${gib(input.recipe.memory.reserve)}`;
    const there = reachedOf(input.facts, node);
    const why = reserve?.why ?? (there === undefined ? undefined : stillHeldSentence(there));
    return [
      {
        cause: 'insufficient-free-memory-at-startup',
        node,
        title: `It does not fit on ${node}: the plan needs ${gib(memory.sumBytes)}, give or take ${gib(memory.errorBytes)}, and ${had}.`,
        ...(why === undefined ? {} : { why }),
        advice: [
          ...(reserve === undefined ? [] : [reserve.advice]),
          ...(reserve?.alone === true ? [] : [otherAdvice(short, allocation, input)]),
          ...strangers(node, input.facts),
        ],
        userError: reserve?.alone === true,
      },
    ];
  });
}

type Reserve = {
  readonly why: string;
  readonly advice: string;
  /** Less of it is all that it takes. */
  readonly alone: boolean;
};

/**
 * A recipe's reserve above the default that keeps memory which the launch misses, all of it or a part: with how much less
 * it would do. Never less than the default, which keeps hosts from being wedged.
 */
function reserveInTheWay(
  { share, room, need }: Short,
  { sequences }: Allocation,
  input: Input,
): Reserve | undefined {
  const { node, facts, memory } = share;
  const { reserve } = input.recipe.memory;
  if (facts === undefined || !room.unified || reserve <= RESERVE_BYTES) return undefined;
  const stoppable = stoppableHolders(facts).reduce((sum, holder) => sum + holder.bytes, 0);
  const most = reserve + Math.max(memory.canGetAfterClearingBytes, memory.canGetBytes + stoppable);
  const base = need.weightsBytes + need.engineBytes + need.graphsBytes + need.sequenceBytes * sequences;
  const spareWith = (bytes: number): number => most - bytes - Math.max(base, askedBytes(input, room, bytes));
  // What is asked by a fraction of the whole stands against all that there is, whatever is to stay free of it.
  const least = Math.floor((most - base - need.errorBytes) / GIB) * GIB;
  const fits = least >= RESERVE_BYTES && spareWith(least) >= need.errorBytes;
  const spare = spareWith(RESERVE_BYTES);
  // A fixed fraction may ask for as much whatever the reserve is.
  if (spare - spareWith(reserve) < MIB) return undefined;
  const boots = spare > -need.errorBytes;
  const all = reserve > room.totalBytes ? `, and ${node} has ${gib(room.totalBytes)} in all` : '';
  return {
    why: `memory.reserve of the recipe keeps ${gib(reserve)} free${all}.`,
    advice: fits
      ? `It fits with a reserve of at most ${gib(least)}: memory.reserve: ${least / GIB}GiB`
      : boots
        ? `It may boot with the reserve that is the default: memory.reserve: ${RESERVE_BYTES / GIB}GiB`
        : `With the default reserve of ${gib(RESERVE_BYTES)} it would still be ${gib(-spare)} short.`,
    alone: fits || boots,
  };
}

/** What else of the recipe would have to change. */
function otherAdvice({ share, room, need }: Short, { largestContext }: Allocation, input: Input): string {
  const context = need.contextTokens ?? 0;
  const weights = need.weightsBytes + need.engineBytes + need.graphsBytes + need.errorBytes;
  const fraction = askedBytes(input, room) > weights && weights < share.memory.canGetAfterClearingBytes;
  if (largestContext === undefined && !fraction)
    return `The weights ${room.unified && input.recipe.memory.reserve > RESERVE_BYTES ? 'and the reserve' : 'alone'} leave no room: use more nodes, a larger tensor size, or a smaller model.`;
  if (largestContext !== undefined && largestContext < context)
    return `${largestContext === need.maxTokens ? "The model's own limit is" : 'The largest context that fits is'} ${thousands(largestContext)} tokens: context: ${largestContext}`;
  // The weights, or one sequence of that length, would fit: then the fraction that the recipe fixes is what asks for more.
  const most = share.memory.canGetAfterClearingBytes + room.availableBytes - room.canGetBytes;
  return `The fraction that the recipe fixes asks for more than can be had: memory.fraction: auto, or at most ${(Math.floor((most / room.totalBytes) * 100) / 100).toFixed(2)}`;
}

/** Large holders that firstlight will not stop, so that a person may. */
function strangers(node: string, facts: readonly NodeFacts[]): readonly string[] {
  const there = reachedOf(facts, node);
  return (valueIf(there?.holders) ?? [])
    .filter((holder) => holder.bytes >= GIB)
    .flatMap((holder) => {
      const { owner } = holder;
      const rank = rankNameOf(holder);
      if (rank !== undefined)
        return [`The rank ${rank} holds ${gib(holder.bytes)} there: firstlight down stops it.`];
      if (owner.kind === 'untouchable')
        return [`${holder.name} (${owner.what}) holds ${gib(holder.bytes)} there and is left alone.`];
      return holder.protectedWhy === undefined
        ? []
        : [`${holder.name} holds ${gib(holder.bytes)} there and is left alone: ${holder.protectedWhy}.`];
    });
}
