import type { Node } from '../domain/cluster.ts';
import { type Gpu, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import { type EngineName, type Recipe, softwareOf } from '../domain/recipe.ts';
import { gib, thousands } from '../domain/units.ts';
import type { ModelDescription } from '../knowledge/models/describe.ts';
import { describeSeen, settingsOf } from './fit/from-recipe.ts';
import type { FitInput, Measured } from './fit/input.ts';
import { requestBytes } from './fit/one-request.ts';
import { numbersOf } from './fit/rank-numbers.ts';
import { gpuAnswer } from './gpu-answer.ts';

/** Predicted bytes of all ranks of one node, apart from the KV cache, which grows with the sequences. */
export type Need = {
  readonly weightsBytes: number;
  /** Of one sequence at full length. */
  readonly sequenceBytes: number;
  readonly engineBytes: number;
  readonly graphsBytes: number;
  readonly errorBytes: number;
  readonly contextTokens: number | undefined;
  /** The model's own limit, past which no memory helps. */
  readonly maxTokens: number | undefined;
  /** Bytes of one more token of context in one sequence, and what a sequence takes at length zero. */
  readonly tokenBytes: number;
  readonly stateBytes: number;
  readonly rules: readonly string[];
};

/** Why no number can be given. */
type NoNeed = { readonly why: string };

/** GPU ranks over all nodes. Over several nodes SGLang's data parallel replicas share the tensor ranks (DP attention). */
export function worldSize({ layout }: Recipe, engine: EngineName): number {
  const shared = engine === 'sglang' && layout.nodes > 1;
  return layout.tensor * layout.pipeline * (shared ? 1 : layout.data);
}

/** The model as the nodes see it; undefined where none of them knows it. */
export function knownModel(
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
  recipe: Recipe,
): ModelDescription | undefined {
  return describeSeen(nodes, facts, recipe.model);
}

/** What one node's ranks need, by the numbers of the fit (docs/fit.md): the node at a place in the recipe's order. */
export function needOf(input: {
  readonly recipe: Recipe;
  readonly engine: EngineName;
  readonly model: ModelDescription | undefined;
  readonly unified: boolean;
  readonly at: number;
  readonly totalBytes?: number | undefined;
  readonly learned?: readonly Measured[] | undefined;
}): Need | NoNeed {
  const { recipe, engine, model } = input;
  if (model === undefined || (model.fileBytes === undefined && model.groups.length === 0))
    return { why: 'no weight files were seen, so their size is not known' };
  if (model.architecture === undefined)
    return { why: 'config.json could not be read or does not tell the layers, so the KV cache is not known' };
  if (model.fileBytes === undefined) return { why: 'no weight files were seen, so their size is not known' };
  const asked = fitAsked(input, model);
  const { stages, assumed, rules, draft } = numbersOf(asked);
  const { tensor, pipeline } = recipe.layout;
  const ranks = Math.max(1, Math.ceil(worldSize(recipe, engine) / recipe.layout.nodes));
  const own = Array.from({ length: ranks }, (_, index) => {
    const rank = (input.at * ranks + index) % (tensor * pipeline);
    return stages[Math.floor(rank / tensor)];
  }).filter((stage) => stage !== undefined);
  const contextTokens = assumed.context;
  if (contextTokens === undefined)
    return { why: 'neither the recipe nor config.json names a context length' };
  const sum = (of: (stage: (typeof own)[number]) => number): number =>
    own.reduce((all, stage) => all + of(stage), 0);
  if (own.some(({ cache, weightsBytes }) => cache === undefined || weightsBytes === undefined))
    return { why: 'config.json does not tell which layers keep a cache' };
  const first = own[0];
  const perRank = first?.cache === undefined ? 0 : first.cache.bytesPerToken;
  const slots = softwareOf(engine) === 'vllm' ? (assumed.prefixCaching ? 2 : 1) + draft.tokens : 3;
  const graphsBytes = sum(({ overhead }) => overhead.graphsBytes);
  const state = sum(({ cache }) => (cache?.stateBytes ?? 0) * slots);
  return {
    weightsBytes: sum(({ weightsBytes }) => weightsBytes ?? 0),
    sequenceBytes: sum(({ cache }) => (cache === undefined ? 0 : requestBytes(asked, cache, assumed, draft))),
    engineBytes: sum(({ overhead }) => overhead.bytes) - graphsBytes,
    graphsBytes,
    errorBytes: Math.max(
      0,
      ...own.map(({ overhead, weightsErrorBytes }) => Math.hypot(overhead.errorBytes, weightsErrorBytes)),
    ),
    contextTokens,
    maxTokens: model.architecture.maxTokens,
    tokenBytes: sum(({ cache }) => cache?.bytesPerToken ?? 0),
    stateBytes: state,
    rules: [
      ...rules.map(({ about, rule }) => `${about}: ${rule}`),
      `layout: tensor ${tensor} x pipeline ${pipeline}`,
      `KV cache: ${thousands(Math.round(perRank))} bytes per token and rank${state === 0 ? '' : `, and ${gib(state / Math.max(1, own.length))} of state per sequence (${slots} slots)`}`,
    ],
  };
}

function fitAsked(input: Parameters<typeof needOf>[0], model: ModelDescription): FitInput {
  const { recipe, engine } = input;
  const { context, sequences, settings } = settingsOf(recipe, engine);
  const { nodes, tensor, pipeline, expert, data } = recipe.layout;
  return {
    model,
    engine: softwareOf(engine),
    layout: { nodes, tensor, pipeline, expert, data },
    memory: { unified: input.unified, totalBytes: input.totalBytes, availableBytes: undefined },
    context,
    sequences,
    settings,
    learned: input.learned,
  };
}

/** What a node has: bytes that a launch can get, and how that is known. */
export type Room = {
  readonly unified: boolean;
  readonly totalBytes: number;
  /** MemAvailable, or free memory of the GPUs used. */
  readonly availableBytes: number;
  readonly canGetBytes: number;
  readonly rule: string;
};

/**
 * MemAvailable less the reserve where CPU and GPU share their memory, or where the host has no GPU; the free memory of
 * the GPUs used elsewhere. nvidia-smi's totals are never asked on unified memory: they are not there. Where it gave no
 * answer, nothing is known: MemAvailable is no figure of a card.
 */
export function roomOf(facts: ReachedFacts, recipe: Recipe, engine: EngineName): Room | NoNeed {
  const answer = gpuAnswer(facts);
  if (!answer.known) return { why: answer.why };
  if (isUnified(facts)) {
    if (!facts.memory.known) return { why: facts.memory.why };
    const { availableBytes, totalBytes } = facts.memory.value;
    return {
      unified: true,
      totalBytes,
      availableBytes,
      canGetBytes: availableBytes - recipe.memory.reserve,
      rule: `can get: ${gib(availableBytes)} MemAvailable less the reserve of ${gib(recipe.memory.reserve)}`,
    };
  }
  const used = gpusUsed(answer.value, recipe, engine);
  const free = used.map((gpu) => valueIf(gpu.freeBytes));
  const total = used.map((gpu) => valueIf(gpu.totalBytes));
  if (free.length === 0 || free.some((bytes) => bytes === undefined))
    return { why: 'nvidia-smi tells no free memory for this GPU' };
  const sum = (values: readonly (number | undefined)[]): number =>
    values.reduce((whole: number, one) => whole + (one ?? 0), 0);
  return {
    unified: false,
    totalBytes: sum(total),
    availableBytes: sum(free),
    canGetBytes: sum(free),
    rule: `can get: ${gib(sum(free))} free on ${used.map((gpu) => `GPU ${gpu.index}`).join(', ')}`,
  };
}

/** Whether the engine's memory is known to be the host's memory; so it is on a host without a GPU, too. */
export function isUnified(facts: ReachedFacts): boolean {
  const gpus = valueIf(gpuAnswer(facts));
  return gpus !== undefined && (gpus.length === 0 || gpus.some((gpu) => gpu.unified));
}

/** The GPUs that this node's ranks take: the first ones, as both engines do. */
function gpusUsed(gpus: readonly Gpu[], recipe: Recipe, engine: EngineName): readonly Gpu[] {
  const count = Math.max(1, Math.ceil(worldSize(recipe, engine) / recipe.layout.nodes));
  return gpus.toSorted((a, b) => a.index - b.index).slice(0, count);
}
