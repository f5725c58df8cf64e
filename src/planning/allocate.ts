import type { Node } from '../domain/cluster.ts';
import { type Holder, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { NodeMemoryPlan } from '../domain/plan.ts';
import { type EngineName, type Recipe, softwareOf } from '../domain/recipe.ts';
import { gib, plural, thousands } from '../domain/units.ts';
import { chooseHolders } from './choose-holders.ts';
import { gpuAnswer } from './gpu-answer.ts';
import { keyOf, learnedFor, type Remembered } from './learned.ts';
import { isUnified, knownModel, type Need, needOf, type Room, roomOf } from './need.ts';
import { leftovers, rankNameOf, reachedOf } from './our-ranks.ts';

/** Smaller holders are left alone: the noise of a desktop is not worth a question. */
const SMALLEST_BYTES = 2 ** 29;

/** One node's share of the launch: what it needs, what it has, and who would have to go. */
export type Share = {
  readonly node: string;
  readonly facts: ReachedFacts | undefined;
  readonly need: Need | undefined;
  readonly room: Room | undefined;
  /** Foreign holders to stop, cheapest for others first; none when even all of them would not do. */
  readonly chosen: readonly Holder[];
  readonly memory: NodeMemoryPlan;
};

export type Allocation = {
  readonly shares: readonly Share[];
  /** Sequences of full length that are planned for, and what was wanted. */
  readonly sequences: number;
  readonly wantedSequences: number;
  /** Largest context at which one sequence fits on every node; undefined when not even an empty one does. */
  readonly largestContext: number | undefined;
};

/** Foreign holders that a step may stop at all: large, not protected, not untouchable, not ours. */
export function stoppableHolders(facts: ReachedFacts): readonly Holder[] {
  return (valueIf(facts.holders) ?? [])
    .filter(
      (holder) =>
        holder.bytes >= SMALLEST_BYTES && isStoppable(holder, facts) && rankNameOf(holder) === undefined,
    )
    .sort((a, b) => b.bytes - a.bytes || (a.identity < b.identity ? -1 : 1));
}

/** Whether firstlight has a means to stop this holder, and may propose it. */
export function isStoppable(holder: Holder, facts: ReachedFacts): boolean {
  if (holder.protectedWhy !== undefined) return false;
  if (holder.owner.kind === 'untouchable' || holder.owner.kind === 'rank') return false;
  return !(needsRoot(holder, facts) && valueIf(facts.sudo) === 'none');
}

/** Whether stopping it takes root: another user's process, a system unit, a container that only root sees. */
export function needsRoot({ owner, user }: Holder, facts: ReachedFacts): boolean {
  const me = valueIf(facts.host);
  switch (owner.kind) {
    case 'unit':
      return owner.userUnitUid === undefined || owner.userUnitUid !== me?.uid;
    case 'container':
      return !facts.containers.known;
    case 'process':
      return me === undefined || user !== me.user;
    default:
      return false;
  }
}

/**
 * Decides, per node, whether the launch fits and whose memory would have to be given back for it. As many of the
 * recipe's sequences are planned as fit once everything that may be stopped is stopped, one at least; only what
 * that plan needs is then stopped.
 */
export function allocate(input: {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
  /** What earlier runs measured. */
  readonly remembered?: readonly Remembered[] | undefined;
  /** Nodes whose rank runs already: nothing is to be made room for there. */
  readonly settled: ReadonlySet<string>;
  /** Names of our own ranks that will be stopped before the launch. */
  readonly leaving: ReadonlySet<string>;
  /** Holders that go for another reason: they are in the way of a port. */
  readonly alsoGoing: (node: string) => readonly Holder[];
}): Allocation {
  const { nodes, facts, recipe, engine } = input;
  const model = knownModel(nodes, facts, recipe);
  const wantedSequences = recipe.sequences ?? 1;
  const drafts = nodes.map((node, at) => {
    const there = reachedOf(facts, node.name);
    const need =
      there === undefined
        ? { why: 'it was not reached' }
        : needOf({
            recipe,
            engine,
            model,
            at,
            unified: isUnified(there),
            totalBytes: totalOf(there),
            learned: learnedFor(input.remembered ?? [], keyOf(recipe, engine, node.name, facts)),
          });
    const room = there === undefined ? { why: 'it was not reached' } : roomOf(there, recipe, engine);
    const known = 'why' in need || 'why' in room || there === undefined ? undefined : { need, room, there };
    const whys = [need, room].flatMap((part) => ('why' in part ? [part.why] : []));
    const ours = there === undefined ? 0 : ownBytes(there, input.leaving) + leftBytes(there);
    return {
      node: node.name,
      there,
      known,
      why: [...new Set(whys)].join('; '),
      ours,
      going: input.alsoGoing(node.name),
    };
  });
  const limits = drafts.flatMap(({ known, ours, node }) => {
    if (known === undefined || input.settled.has(node)) return [];
    const all = stoppableHolders(known.there).reduce((sum, holder) => sum + given(holder, known.room), 0);
    const spare = known.room.canGetBytes + ours + all - fixed(known.need);
    return [{ spare, need: known.need }];
  });
  const sequences = Math.max(
    1,
    Math.min(
      wantedSequences,
      ...limits.map(({ spare, need }) =>
        need.sequenceBytes === 0
          ? wantedSequences
          : Math.floor((spare - need.errorBytes) / need.sequenceBytes),
      ),
    ),
  );
  const contexts = limits.map(({ spare, need }) =>
    need.tokenBytes === 0 ? 0 : Math.floor((spare - need.stateBytes) / need.tokenBytes / 1024) * 1024,
  );
  // Past the model's own limit no memory helps.
  const own = limits.flatMap(({ need }) => (need.maxTokens === undefined ? [] : [need.maxTokens]));
  const largest = contexts.length === 0 ? 0 : Math.min(...contexts, ...own);
  return {
    sequences,
    wantedSequences,
    largestContext: largest > 0 ? largest : undefined,
    shares: drafts.map((draft) =>
      shareOf(draft, { sequences, wantedSequences, recipe, engine, settled: input.settled }),
    ),
  };
}

/** What one GPU has, or the node where it is unified: the engines' defaults go by it. */
function totalOf(facts: ReachedFacts): number | undefined {
  const gpu = (valueIf(gpuAnswer(facts)) ?? [])[0];
  return isUnified(facts) ? valueIf(facts.memory)?.totalBytes : valueIf(gpu?.totalBytes);
}

type Draft = {
  readonly node: string;
  readonly there: ReachedFacts | undefined;
  readonly known: { readonly need: Need; readonly room: Room; readonly there: ReachedFacts } | undefined;
  readonly why: string;
  readonly ours: number;
  readonly going: readonly Holder[];
};

/**
 * What vLLM takes where the recipe fixes its share: it fills that with cache, and does not start unless so much of the
 * whole is free (engines.md 5.1). The reserve counts as free there.
 */
export function askedBytes(
  { recipe, engine }: { readonly recipe: Recipe; readonly engine: EngineName },
  room: Room,
  reserveBytes = room.availableBytes - room.canGetBytes,
): number {
  const { fraction } = recipe.memory;
  if (fraction === 'auto' || softwareOf(engine) !== 'vllm') return 0;
  return fraction * room.totalBytes - reserveBytes;
}

function shareOf(
  draft: Draft,
  of: {
    readonly sequences: number;
    readonly wantedSequences: number;
    readonly recipe: Recipe;
    readonly engine: EngineName;
    readonly settled: ReadonlySet<string>;
  },
): Share {
  const { node, there, known } = draft;
  if (known === undefined)
    return {
      node,
      facts: there,
      need: undefined,
      room: undefined,
      chosen: draft.going,
      memory: unknownMemory(node, draft.why),
    };
  const { need, room } = known;
  const kvBytes = Math.max(need.sequenceBytes * of.sequences, askedBytes(of, room) - fixed(need));
  const sumBytes = fixed(need) + kvBytes;
  const now = room.canGetBytes + draft.ours;
  const chosen = of.settled.has(node) ? [] : choose(known, draft.going, now, sumBytes);
  const after = chosen.reduce((sum, holder) => sum + given(holder, room), now);
  const settled = of.settled.has(node);
  return {
    node,
    facts: there,
    need,
    room,
    chosen,
    memory: {
      node,
      weightsBytes: need.weightsBytes,
      kvBytes,
      engineBytes: need.engineBytes,
      graphsBytes: need.graphsBytes,
      sumBytes,
      errorBytes: need.errorBytes,
      canGetBytes: now,
      canGetAfterClearingBytes: after,
      verdict: settled ? 'fits' : verdictOf(after - sumBytes, need.errorBytes),
      rules: [
        ...need.rules,
        kvRule(need, of.sequences, of.wantedSequences),
        `error: give or take ${gib(need.errorBytes)}, as boots of one configuration differ`,
        room.rule,
        ...(settled ? ['its rank runs already'] : []),
        ...(chosen.length === 0
          ? []
          : [`after clearing: ${gib(after)}, with what ${plural(chosen.length, 'holder')} give back`]),
      ],
    },
  };
}

/** Whole whisker left of the line fits, whole whisker past it does not, across it may boot. */
function verdictOf(spare: number, error: number): NodeMemoryPlan['verdict'] {
  return spare >= error ? 'fits' : spare > -error ? 'may-boot' : 'does-not-fit';
}

/** As few as cost others least, until the plan fits with its error bar; nobody, when that would not even make it boot. */
function choose(
  { need, room, there }: { readonly need: Need; readonly room: Room; readonly there: ReachedFacts },
  going: readonly Holder[],
  now: number,
  sum: number,
): readonly Holder[] {
  const gives = (holder: Holder): number => given(holder, room);
  const had = going.reduce((bytes, holder) => bytes + gives(holder), now);
  const others = stoppableHolders(there).filter(
    (holder) => !going.some((other) => other.identity === holder.identity),
  );
  const bytes = sum + need.errorBytes - had;
  const chosen = [...going, ...chooseHolders({ holders: others, bytes, facts: there, gives })];
  const after = chosen.reduce((all, holder) => all + gives(holder), now);
  const helps = verdictOf(after - sum, need.errorBytes) !== 'does-not-fit';
  return helps ? chosen : going;
}

/** What stopping a holder gives back where it is needed. */
function given(holder: Holder, room: Room): number {
  return room.unified ? holder.bytes : (valueIf(holder.gpuBytes) ?? 0);
}

function ownBytes(facts: ReachedFacts, leaving: ReadonlySet<string>): number {
  return (valueIf(facts.holders) ?? [])
    .filter((holder) => leaving.has(rankNameOf(holder) ?? '') && !leftovers(facts).includes(holder))
    .reduce((sum, holder) => sum + holder.bytes, 0);
}

/** What earlier ranks of ours left, and a step ends without asking. */
function leftBytes(facts: ReachedFacts): number {
  return leftovers(facts).reduce((sum, holder) => sum + holder.bytes, 0);
}

/** All but the sequences. */
function fixed(need: Need): number {
  return need.weightsBytes + need.engineBytes + need.graphsBytes;
}

function kvRule(need: Need, planned: number, wanted: number): string {
  const length = thousands(need.contextTokens ?? 0);
  const some = `${plural(planned, 'sequence')} of ${length} tokens, ${gib(need.sequenceBytes)} each`;
  return planned === wanted
    ? `planned: ${some}`
    : `planned: ${some}; ${wanted} at that length do not fit together`;
}

function unknownMemory(node: string, why: string): NodeMemoryPlan {
  return {
    node,
    weightsBytes: 0,
    kvBytes: 0,
    engineBytes: 0,
    graphsBytes: 0,
    sumBytes: 0,
    errorBytes: 0,
    canGetBytes: 0,
    canGetAfterClearingBytes: 0,
    verdict: 'unknown',
    rules: [`unknown: ${why}`],
  };
}
