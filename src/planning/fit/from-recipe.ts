import type { Node } from '../../domain/cluster.ts';
import { type ModelFacts, type NodeFacts, type ReachedFacts, valueIf } from '../../domain/facts.ts';
import { argsOf, type EngineName, type Recipe, softwareOf } from '../../domain/recipe.ts';
import { memoryFlags } from '../../knowledge/engines/memory-flags.ts';
import { describeModel, type ModelDescription } from '../../knowledge/models/describe.ts';
import { sourcesOf } from '../../knowledge/models/model-file.ts';
import { gpuAnswer } from '../gpu-answer.ts';
import { rankNameOf, reachedOf } from '../our-ranks.ts';
import type { FitInput, FitSettings, Measured } from './input.ts';

/** The model as the nodes see it: the config of the first that has one, and the largest size, since a copy may be partial. */
export function describeSeen(
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
  name: string,
): ModelDescription | undefined {
  const models = nodes.flatMap((node) => {
    const model = valueIf(reachedOf(facts, node.name)?.model);
    return model?.present ? [model] : [];
  });
  const config = models.flatMap((model) => (model.config.known ? [model.config.value] : []))[0];
  const sizes = models.map(sizeOf).filter((size) => size !== undefined);
  const total = sizes.toSorted((a, b) => b.bytes - a.bytes)[0];
  const tensors = models
    .flatMap((model) => valueIf(model.tensors) ?? [])
    .filter((tensor, index, all) => all.findIndex((other) => other.name === tensor.name) === index);
  if (config === undefined && total === undefined) return undefined;
  return describeModel({ ...sourcesOf(config ?? {}, name), total, tensors });
}

function sizeOf(
  model: Extract<ModelFacts, { present: true }>,
): { readonly bytes: number; readonly from: 'index' | 'files' } | undefined {
  const index = valueIf(model.indexBytes);
  if (index !== undefined && index > 0) return { bytes: index, from: 'index' };
  const weights = model.files.filter((file) => /\.(?:safetensors|bin|gguf)$/.test(file.name));
  // Of the same weights in two forms engines load one: the shards.
  const shards = weights.filter(({ name }) => /\.safetensors$/.test(name) && !/^consolidated/.test(name));
  const bytes = (shards.length > 0 ? shards : weights).reduce((sum, file) => sum + file.bytes, 0);
  return bytes > 0 ? { bytes, from: 'files' } : undefined;
}

/** What the recipe and the engine's own arguments say; the recipe's own keys go before the arguments. */
export function settingsOf(
  recipe: Recipe,
  engine: EngineName,
): {
  readonly context: number | undefined;
  readonly sequences: number | undefined;
  readonly settings: FitSettings;
} {
  const { context, sequences, ...flags } = memoryFlags(argsOf(recipe, engine), softwareOf(engine));
  const { fraction } = recipe.memory;
  return {
    context: recipe.context ?? context,
    sequences: recipe.sequences ?? sequences,
    settings: { ...flags, fraction: typeof fraction === 'number' ? fraction : flags.fraction },
  };
}

/** A recipe on nodes as one look saw them, as input of the fit: the weakest node's memory decides. */
export function fitInputOf(of: {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
  readonly learned?: readonly Measured[] | undefined;
}): FitInput {
  const { nodes, facts, recipe, engine } = of;
  const { context, sequences, settings } = settingsOf(recipe, engine);
  const { tensor, pipeline, data } = recipe.layout;
  const perNode = Math.max(1, Math.ceil((tensor * pipeline * data) / recipe.layout.nodes));
  const rooms = nodes.map((node) => {
    const there = reachedOf(facts, node.name);
    return withOwn(memoryOf(node.name, there, perNode), there, recipe, perNode);
  });
  return {
    model: describeSeen(nodes, facts, recipe.model) ?? describeModel({ name: recipe.model, config: {} }),
    engine: softwareOf(engine),
    layout: {
      nodes: recipe.layout.nodes,
      tensor: recipe.layout.tensor,
      pipeline: recipe.layout.pipeline,
      expert: recipe.layout.expert,
      // Over several nodes SGLang's replicas share the tensor ranks.
      data: recipe.layout.data,
    },
    memory: {
      unified: rooms.some((room) => room.unified),
      totalBytes: least(rooms.map((room) => room.total)),
      availableBytes: least(rooms.map((room) => room.available)),
      why: rooms.find((room) => room.why !== undefined)?.why,
      ownBytes: rooms.some(({ own }) => own !== undefined)
        ? Math.max(...rooms.map(({ own }) => own ?? 0))
        : undefined,
    },
    context,
    sequences,
    settings,
    nodeNames: nodes.map((node) => node.name),
    learned: of.learned,
  };
}

type RoomSeen = {
  readonly unified: boolean;
  readonly total: number | undefined;
  readonly available: number | undefined;
  readonly why?: string;
  /** Held by ranks of this very recipe, and counted as available. */
  readonly own?: number;
};

/** A recipe that runs already is asked as before its launch: what its own ranks hold would be its own again. */
function withOwn(
  room: RoomSeen,
  facts: ReachedFacts | undefined,
  { recipe }: Recipe,
  perNode: number,
): RoomSeen {
  if (facts === undefined || room.available === undefined) return room;
  const names = (valueIf(facts.ranks) ?? [])
    .filter((rank) => rank.recipe === recipe && rank.state !== 'ended')
    .map(({ name }) => name);
  const held = (valueIf(facts.holders) ?? [])
    .filter((holder) => names.includes(rankNameOf(holder) ?? ''))
    .reduce(
      (sum, { bytes, gpuBytes }) => sum + (room.unified ? bytes : (valueIf(gpuBytes) ?? 0) / perNode),
      0,
    );
  return held === 0 ? room : { ...room, available: room.available + held, own: held };
}

/** Of the GPUs that the ranks take, the first ones, as both engines do. */
function memoryOf(node: string, facts: ReachedFacts | undefined, perNode: number): RoomSeen {
  const unknown = (why: string): RoomSeen => ({
    unified: false,
    total: undefined,
    available: undefined,
    why,
  });
  if (facts === undefined) return unknown(`${node} was not reached`);
  const answer = gpuAnswer(facts);
  if (!answer.known) return unknown(answer.why);
  const gpus = answer.value;
  if (gpus.length === 0 || gpus.some((gpu) => gpu.unified)) {
    if (!facts.memory.known) return { ...unknown(`${node}: ${facts.memory.why}`), unified: true };
    const { totalBytes, availableBytes } = facts.memory.value;
    return { unified: true, total: totalBytes, available: availableBytes };
  }
  const used = gpus.toSorted((a, b) => a.index - b.index).slice(0, perNode);
  const total = least(used.map((gpu) => valueIf(gpu.totalBytes)));
  const available = least(used.map((gpu) => valueIf(gpu.freeBytes)));
  if (total === undefined) return unknown(`nvidia-smi tells no memory of the GPUs of ${node}`);
  // A look that did not see it is no word that nobody uses it.
  if (available === undefined) return unknown(`nvidia-smi tells no free memory of the GPUs of ${node}`);
  return { unified: false, total, available };
}

/** The least of what each has; unknown where one is not known, since that one may have less. */
function least(values: readonly (number | undefined)[]): number | undefined {
  return values.some((value) => value === undefined)
    ? undefined
    : Math.min(...values.map((value) => value ?? 0));
}
