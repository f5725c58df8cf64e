import { type Holder, type NodeFacts, type RankRecord, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { EngineName, RecipeEdit } from '../domain/recipe.ts';

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

/** Every rank that left a record on a node looked at. */
export function allRanks(facts: readonly NodeFacts[]): readonly FoundRank[] {
  return facts.flatMap((one) =>
    one.reached ? (valueIf(one.ranks) ?? []).map((record) => ({ node: one.node, record })) : [],
  );
}

/** What runs of a recipe file: the remedies it was started with, and the engine that the list may have come to. */
type RunningService = { readonly edits: readonly RecipeEdit[]; readonly engine: EngineName };

/**
 * Edits and engine of the newest live rank of this recipe file, from the node's own record: the truth of a second
 * `up`. Undefined when none of its ranks is alive.
 */
export function runningEdits(facts: readonly NodeFacts[], recipeDigest: string): RunningService | undefined {
  const newest = aliveRanks(facts)
    .map(({ record }) => record)
    .filter((record) => record.recipeDigest === recipeDigest)
    .sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1))[0];
  return newest === undefined ? undefined : { edits: newest.edits, engine: newest.engine };
}

export type Ours = {
  /** Ranks that are alive in their place, by rank; the others are to be launched. */
  readonly kept: ReadonlyMap<number, FoundRank>;
  /** In the way of this recipe, to be stopped first; nobody is asked, since they are ours. */
  readonly strays: readonly FoundRank[];
  /** Alive under another digest of the same recipe; they stop only with `replace`. */
  readonly toReplace: readonly FoundRank[];
};

type OursInput = {
  /** The recipe's name. */
  readonly recipe: string;
  readonly recipeDigest: string;
  readonly replace: boolean;
};

/**
 * Sorts firstlight's own ranks into kept, strays and those that only `--replace` may stop. `facts` are by rank, head
 * first. A job without its head waits for it and is kept; any other half of a job is a stray, and so is one whose
 * ranks differ in engine or remedies.
 */
export function ourRanks(facts: readonly NodeFacts[], input: OursInput): Ours {
  const { recipe, recipeDigest, replace } = input;
  const mine = aliveRanks(facts).filter(({ record }) => record.recipe === recipe);
  const toReplace = mine.filter(({ record }) => record.recipeDigest !== recipeDigest);
  const same = mine.filter(({ record }) => record.recipeDigest === recipeDigest);
  const oneJob = new Set(same.map(({ record }) => `${record.engine} ${record.effectiveDigest}`)).size <= 1;
  const inPlace = same.every(({ node, record }) => facts[record.rank]?.node === node);
  const keeps = oneJob && inPlace && !same.some((alive) => lostAPeer(alive, facts));
  return {
    kept: new Map(keeps ? same.map((found) => [found.record.rank, found]) : []),
    strays: [...(keeps ? [] : same), ...(replace ? toReplace : []), ...orphanRanks(facts, recipe)],
    toReplace,
  };
}

/** A rank that must be stopped before the recipe is launched. */
type StrayRank = {
  readonly name: string;
  readonly node: string;
  readonly rank: number;
  readonly engine: EngineName;
};

/** Ranks of ours that must be stopped before this recipe is launched; `facts` by rank, head first. */
export function strayRanks(facts: readonly NodeFacts[], input: OursInput): readonly StrayRank[] {
  return ourRanks(facts, input).strays.map(({ node, record }) => ({
    name: record.name,
    node,
    rank: record.rank,
    engine: record.engine,
  }));
}

/** A rank waits for peers that were never started; it is half of a dead job when one had started and ended. */
function lostAPeer({ record: alive }: FoundRank, facts: readonly NodeFacts[]): boolean {
  return facts.some((there, rank) => {
    // What cannot be seen is not lost: an unreached node blocks the plan by itself.
    if (rank === alive.rank || !there.reached || !there.ranks.known) return false;
    const peers = there.ranks.value.filter(
      (record) => record.recipe === alive.recipe && record.rank === rank,
    );
    if (peers.some((record) => record.state !== 'ended')) return false;
    // Ranks are started worker first, head last: a head without its worker has lost it.
    if (alive.servingSince !== undefined || alive.rank === 0) return true;
    const ended = peers.some(
      (record) =>
        (record.run === alive.run && record.attempt === alive.attempt) || record.startedAt > alive.startedAt,
    );
    return ended || (Date.parse(there.at) - Date.parse(alive.startedAt)) / 1000 > PEERLESS_SECONDS;
  });
}

/**
 * Ended ranks whose processes are still there: an engine's children that outlived it. Of another recipe than `own` a
 * server that still listens is left alone, since only its runner is gone.
 */
export function orphanRanks(facts: readonly NodeFacts[], own?: string): readonly FoundRank[] {
  return allRanks(facts).filter(({ node, record }) => {
    if (record.state !== 'ended') return false;
    const holders = (valueIf(reachedOf(facts, node)?.holders) ?? []).filter(
      (holder) => rankNameOf(holder) === record.name,
    );
    const port = record.health?.port;
    const spared = own !== undefined && record.recipe !== own && port !== undefined;
    return holders.length > 0 && !(spared && holders.some(({ listens }) => listens.includes(port)));
  });
}

/**
 * What earlier ranks of ours left on a node, and no record of an ended rank stands for: its record is gone, or is that
 * of a rank which runs under the same name.
 */
export function leftovers(facts: ReachedFacts): readonly Holder[] {
  const ended = new Set(
    (valueIf(facts.ranks) ?? []).filter(({ state }) => state === 'ended').map(({ name }) => name),
  );
  return (valueIf(facts.holders) ?? []).filter(
    ({ owner }) => owner.kind === 'rank' && owner.orphan !== undefined && !ended.has(owner.name),
  );
}

/** Name of the rank that a holder is, or undefined for somebody else's. */
export function rankNameOf(holder: Holder): string | undefined {
  if (holder.owner.kind === 'rank') return holder.owner.name;
  if (holder.owner.kind !== 'container') return undefined;
  return /^firstlight-(.+)$/.exec(holder.owner.name)?.[1];
}
