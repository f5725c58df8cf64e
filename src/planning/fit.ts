import type { Node } from '../domain/cluster.ts';
import { type Gpu, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import { argsOf, type EngineName, type Recipe, softwareOf } from '../domain/recipe.ts';
import { gib, thousands } from '../domain/units.ts';
import { type ModelShape, shapeOf, weightBytes } from './model-config.ts';
import { reachedOf } from './our-ranks.ts';

const GIB = 2 ** 30;
/** FORMULAS 6: boots of one configuration differ by this much; ± on unified memory, ± on cards of their own. */
const UNIFIED_ERROR = 2.5 * GIB;
const DISCRETE_ERROR = 1.5 * GIB;

/** Predicted bytes of all ranks of one node, apart from the KV cache, which grows with the sequences. */
export type Need = {
  readonly weightsBytes: number;
  /** Of one sequence at full length. */
  readonly sequenceBytes: number;
  readonly engineBytes: number;
  readonly graphsBytes: number;
  readonly errorBytes: number;
  readonly contextTokens: number | undefined;
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

/** The model as the first node that knows it sees it. */
export function knownModel(
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
): { readonly shape: ModelShape | undefined; readonly weights: ReturnType<typeof weightBytes> } {
  const models = nodes.flatMap((node) => {
    const model = valueIf(reachedOf(facts, node.name)?.model);
    return model?.present ? [model] : [];
  });
  const configs = models.flatMap((model) => (model.config.known ? [model.config.value] : []));
  const [config] = configs;
  const sizes = models.map(weightBytes).filter((size) => size !== undefined);
  return {
    shape: config === undefined ? undefined : shapeOf(config),
    // The largest, since a copy that is not whole yet is smaller.
    weights: sizes.sort((a, b) => b.bytes - a.bytes)[0],
  };
}

/**
 * What one node needs (FORMULAS 2–7): weights by the index over the layout, KV cache and state by the config, the
 * engine's own share, graphs. The first version takes every rank for alike.
 */
export function needOf(input: {
  readonly recipe: Recipe;
  readonly engine: EngineName;
  readonly shape: ModelShape | undefined;
  readonly weights: ReturnType<typeof weightBytes>;
  readonly unified: boolean;
}): Need | NoNeed {
  const { recipe, engine, shape, weights, unified } = input;
  if (weights === undefined) return { why: 'no weight files were seen, so their size is not known' };
  if (shape === undefined) return { why: 'config.json could not be read, so the KV cache is not known' };
  const { tensor, pipeline, nodes } = recipe.layout;
  const ranks = Math.max(1, Math.ceil(worldSize(recipe, engine) / nodes));
  const replicated = replicatedBytes(shape, tensor);
  const perRank = (weights.bytes - replicated) / (tensor * pipeline) + replicated / pipeline;
  const cache = cacheBytes(shape, recipe, engine);
  const contextTokens = recipe.context ?? shape.maxTokens;
  if (contextTokens === undefined)
    return { why: 'neither the recipe nor config.json names a context length' };
  const window = Math.min(contextTokens, shape.window);
  const sequenceBytes =
    ranks * (cache.perToken * contextTokens + cache.perSlidingToken * window + cache.state);
  const batched = batchedTokens(recipe, engine);
  const perRankEngine = (unified ? 3 : 1.5) * GIB + 0.23 * GIB * (batched / 1024);
  const engineBytes = ranks * perRankEngine + (unified && engine === 'sglang' ? 0.4 * GIB : 0);
  const graphsBytes = graphsOff(recipe, engine) ? 0 : ranks * GIB;
  return {
    weightsBytes: ranks * perRank,
    sequenceBytes,
    engineBytes,
    graphsBytes,
    errorBytes: unified ? UNIFIED_ERROR : DISCRETE_ERROR,
    contextTokens,
    tokenBytes: ranks * cache.perToken,
    stateBytes: ranks * cache.state,
    rules: [
      `weights: ${gib(weights.bytes)} by ${weights.from === 'index' ? 'the safetensors index' : 'the file sizes'}, over tensor ${tensor} x pipeline ${pipeline}; what is on disk counts, MTP blocks and vision towers too`,
      cache.rule,
      `engine: ${unified ? '3.0' : '1.5'} GiB and 0.23 GiB per 1,024 of ${thousands(batched)} batched tokens, per rank`,
      graphsBytes === 0 ? 'graphs: switched off' : 'graphs: 1.0 GiB per rank',
    ],
  };
}

/** Routers and the K and V heads that every rank keeps whole; the rest is cut. */
function replicatedBytes(shape: ModelShape, tensor: number): number {
  if (tensor === 1) return 0;
  const router = shape.experts * shape.hidden * 2 * shape.layers;
  if (shape.latent !== undefined || shape.kvHeads >= tensor) return router;
  const bytes = shape.quantization === undefined ? 2 : 1;
  const kv = 2 * shape.hidden * shape.kvHeads * shape.headDim * bytes * shape.fullLayers;
  return router + kv;
}

type Cache = {
  readonly perToken: number;
  readonly perSlidingToken: number;
  readonly state: number;
  readonly rule: string;
};

/** Bytes per rank: of a token in the full layers, of a token in the sliding ones, of a sequence's fixed state. */
function cacheBytes(shape: ModelShape, recipe: Recipe, engine: EngineName): Cache {
  const { tensor, pipeline } = recipe.layout;
  const value = kvValueBytes(recipe, engine);
  if (shape.latent !== undefined) {
    const perToken = Math.ceil(shape.layers / pipeline) * (shape.latent.rank + shape.latent.rope) * value;
    return {
      perToken,
      perSlidingToken: 0,
      state: 0,
      rule: `KV cache: latent attention, ${thousands(perToken)} bytes per token on every rank, not divided by tensor`,
    };
  }
  const heads = Math.max(1, Math.ceil(shape.kvHeads / tensor));
  const layer = 2 * heads * shape.headDim * value;
  const perToken = Math.ceil(shape.fullLayers / pipeline) * layer;
  // Each engine keeps more than one slot of state per request: vLLM two with prefix caching, SGLang three or more.
  const slots = softwareOf(engine) === 'vllm' ? 2 : 3;
  const state = (Math.ceil(shape.linearLayers / pipeline) * shape.linearState.bytes * slots) / tensor;
  return {
    perToken,
    perSlidingToken: Math.ceil(shape.slidingLayers / pipeline) * layer,
    state,
    rule:
      `KV cache: ${shape.fullLayers} of ${shape.layers} layers, ${thousands(perToken)} bytes per token and rank` +
      (state === 0 ? '' : `, and ${gib(state)} of state per sequence (${slots} slots)`),
  };
}

function kvValueBytes(recipe: Recipe, engine: EngineName): number {
  const type = flagValue(argsOf(recipe, engine), '--kv-cache-dtype');
  if (type === undefined) return 2;
  return /fp4|nvfp4/.test(type) ? 0.5625 : type.includes('fp8') ? 1 : 2;
}

function batchedTokens(recipe: Recipe, engine: EngineName): number {
  const args = argsOf(recipe, engine);
  const given = flagValue(
    args,
    softwareOf(engine) === 'vllm' ? '--max-num-batched-tokens' : '--chunked-prefill-size',
  );
  const number = Number(given);
  // The engines' own choices for 60 to 160 GiB (engines.md 2.1, 5.2).
  return given !== undefined && number > 0 ? number : softwareOf(engine) === 'vllm' ? 2048 : 8192;
}

function graphsOff(recipe: Recipe, engine: EngineName): boolean {
  return argsOf(recipe, engine).includes(
    softwareOf(engine) === 'vllm' ? '--enforce-eager' : '--disable-cuda-graph',
  );
}

/** Value of `--flag value` or `--flag=value`, the last one, as argparse reads it. */
function flagValue(args: readonly string[], flag: string): string | undefined {
  let value: string | undefined;
  args.forEach((arg, index) => {
    if (arg === flag) value = args[index + 1];
    else if (arg.startsWith(`${flag}=`)) value = arg.slice(flag.length + 1);
  });
  return value;
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
 * MemAvailable less the reserve where CPU and GPU share their memory, or where no GPU is seen; the free memory of
 * the GPUs used elsewhere. nvidia-smi's totals are never asked on unified memory: they are not there.
 */
export function roomOf(facts: ReachedFacts, recipe: Recipe, engine: EngineName): Room | NoNeed {
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
  const used = gpusUsed(facts, recipe, engine);
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

/** Whether the engine's memory is the host's memory; so it is taken where no GPU is seen at all. */
export function isUnified(facts: ReachedFacts): boolean {
  const gpus = valueIf(facts.gpus) ?? [];
  return gpus.length === 0 || gpus.some((gpu) => gpu.unified);
}

/** The GPUs that this node's ranks take: the first ones, as both engines do. */
function gpusUsed(facts: ReachedFacts, recipe: Recipe, engine: EngineName): readonly Gpu[] {
  const count = Math.max(1, Math.ceil(worldSize(recipe, engine) / recipe.layout.nodes));
  return [...(valueIf(facts.gpus) ?? [])].sort((a, b) => a.index - b.index).slice(0, count);
}
