import type { Node } from '../domain/cluster.ts';
import { type Holder, type NodeFacts, type RankRecord, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { EngineName, Recipe, RecipeEdit } from '../domain/recipe.ts';

/** A rank of firstlight's own that a look found on a node. */
export type FoundRank = { readonly node: string; readonly record: RankRecord };

/** Longer than a rank waits for its peers (10 minutes in both engines) less the time to start one more. */
const PEERLESS_SECONDS = 480;

export function reachedOf(facts: readonly NodeFacts[], node: string): ReachedFacts | undefined {
  const found = facts.find((one) => one.node === node);
  return found?.reached ? found : undefined;
}

/** Every rank that runs or starts, on all nodes looked at. */
export function aliveRanks(facts: readonly NodeFacts[]): readonly FoundRank[] {
  return allRanks(facts).filter(({ record }) => record.state !== 'ended');
}

function allRanks(facts: readonly NodeFacts[]): readonly FoundRank[] {
  return facts.flatMap((one) =>
    one.reached ? (valueIf(one.ranks) ?? []).map((record) => ({ node: one.node, record })) : [],
  );
}

/**
 * The edits that the running ranks of this recipe file carry, from the nodes' own records: the truth of a second
 * `up`. Undefined when none of its ranks is alive.
 */
export function runningEdits(
  facts: readonly NodeFacts[],
  recipeDigest: string,
): readonly RecipeEdit[] | undefined {
  return newestAlive(facts, recipeDigest)?.edits;
}

/** The engine those ranks run with; the first of the recipe's list may long have been given up. */
export function runningEngine(facts: readonly NodeFacts[], recipeDigest: string): EngineName | undefined {
  return newestAlive(facts, recipeDigest)?.engine;
}

function newestAlive(facts: readonly NodeFacts[], recipeDigest: string): RankRecord | undefined {
  return aliveRanks(facts)
    .map(({ record }) => record)
    .filter((record) => record.recipeDigest === recipeDigest)
    .sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1))[0];
}

export type OurInput = {
  /** By rank. */
  readonly nodes: readonly Node[];
  readonly recipe: Recipe;
  readonly recipeDigest: string;
  readonly engine: EngineName;
  readonly facts: readonly NodeFacts[];
  readonly replace: boolean;
};

export type OurRanks = {
  /** Ranks of this plan that are alive in their place, by rank; the others are to be launched. */
  readonly kept: ReadonlyMap<number, FoundRank>;
  /** Ours, in the way of this plan, to be stopped first; needs no consent. */
  readonly strays: readonly FoundRank[];
  /** Alive under another digest of the same recipe; they stop only with `--replace`. */
  readonly toReplace: readonly FoundRank[];
};

/** Sorts firstlight's own ranks into kept, strays and those that only `--replace` may stop. */
export function ourRanks(input: OurInput): OurRanks {
  const { nodes, recipe, recipeDigest, engine, facts, replace } = input;
  const mine = aliveRanks(facts).filter(({ record }) => record.recipe === recipe.recipe);
  const toReplace = mine.filter(({ record }) => record.recipeDigest !== recipeDigest);
  const same = mine.filter(({ record }) => record.recipeDigest === recipeDigest);
  const fitting = same.filter(
    ({ node, record }) => record.engine === engine && nodes[record.rank]?.name === node,
  );
  const whole = new Set(fitting.map(({ record }) => record.effectiveDigest)).size <= 1;
  const halfDead = fitting.some((alive) => hasLostAPeer(alive, input));
  const keep = whole && !halfDead && fitting.length === same.length ? fitting : [];
  return {
    kept: new Map(keep.map((found) => [found.record.rank, found])),
    strays: [
      ...(keep.length === same.length ? [] : same),
      ...(replace ? toReplace : []),
      ...orphans(facts, recipe.recipe),
    ],
    toReplace,
  };
}

/**
 * Ranks that must be stopped before this recipe is launched: what is left of a service that lost a rank, runs with
 * another engine or in another place, with `replace` also those of an older recipe. They are ours, so nobody is asked.
 */
export function strayRanks(input: OurInput): readonly FoundRank[] {
  return ourRanks(input).strays;
}

/** A rank waits for peers that were never started; it is half of a dead service when one had started and ended. */
function hasLostAPeer({ record: alive }: FoundRank, { nodes, recipe, facts }: OurInput): boolean {
  return nodes.some((node, rank) => {
    if (rank === alive.rank) return false;
    const there = reachedOf(facts, node.name);
    // What cannot be seen is not lost: an unreached node blocks the plan by itself.
    if (there === undefined || !there.ranks.known) return false;
    const peers = there.ranks.value.filter(
      (record) => record.recipe === recipe.recipe && record.rank === rank,
    );
    if (peers.some((record) => record.state !== 'ended')) return false;
    if (alive.servingSince !== undefined) return true;
    const ended = peers.some(
      (record) =>
        (record.run === alive.run && record.attempt === alive.attempt) || record.startedAt > alive.startedAt,
    );
    return ended || (Date.parse(there.at) - Date.parse(alive.startedAt)) / 1000 > PEERLESS_SECONDS;
  });
}

/** Ended ranks whose processes are still there: an engine's children that outlived it. */
function orphans(facts: readonly NodeFacts[], recipe: string): readonly FoundRank[] {
  return allRanks(facts).filter(({ node, record }) => {
    if (record.state !== 'ended' || record.recipe !== recipe) return false;
    const holders = valueIf(reachedOf(facts, node)?.holders) ?? [];
    return holders.some((holder) => rankNameOf(holder) === record.name);
  });
}

/** Name of the rank that a holder is, or undefined for somebody else's. */
export function rankNameOf(holder: Holder): string | undefined {
  if (holder.owner.kind === 'rank') return holder.owner.name;
  if (holder.owner.kind !== 'container') return undefined;
  return /^firstlight-(.+)$/.exec(holder.owner.name)?.[1];
}
