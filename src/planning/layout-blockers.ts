import type { Node } from '../domain/cluster.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import type { Blocker } from '../domain/plan.ts';
import { type EngineName, type Recipe, softwareOf } from '../domain/recipe.ts';
import { plural } from '../domain/units.ts';
import type { ModelDescription } from '../knowledge/models/describe.ts';
import { blockFaults, headFaults } from './fit/divides.ts';
import { knownModel, worldSize } from './need.ts';
import { reachedOf } from './our-ranks.ts';

/** Layouts that end a launch, by what the model's config says (engines.md 6). */
export function layoutBlockers(input: {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
}): readonly Blocker[] {
  const { nodes, facts, recipe, engine } = input;
  const model = knownModel(nodes, facts, recipe);
  const titles = [...spread(recipe, engine), ...heads(model, recipe)];
  return [
    ...titles.map(
      (title): Blocker => ({
        cause: 'tp-size-not-divisible',
        node: undefined,
        title,
        advice: tensorAdvice(model, recipe),
        userError: true,
      }),
    ),
    ...blocks(model, recipe),
    ...gpuBlockers(nodes, facts, recipe, engine),
  ];
}

function spread(recipe: Recipe, engine: EngineName): readonly string[] {
  const { tensor, pipeline, nodes, data } = recipe.layout;
  const world = worldSize(recipe, engine);
  if (world % nodes !== 0)
    return [
      `tensor ${tensor} x pipeline ${pipeline} makes ${plural(world, 'rank')}, which ${plural(nodes, 'node')} cannot share evenly.`,
    ];
  if (softwareOf(engine) === 'vllm' && data > 1 && nodes > 1)
    return [
      'vLLM runs data parallel replicas over several nodes by other flags than firstlight knows; leave data at 1.',
    ];
  return [];
}

function heads(model: ModelDescription | undefined, { layout }: Recipe): readonly string[] {
  return model?.architecture === undefined ? [] : headFaults(layout, model.architecture);
}

/** Quantised in blocks: each rank's slice must be whole blocks, else the engine refuses while it builds the model. */
function blocks(model: ModelDescription | undefined, { layout }: Recipe): readonly Blocker[] {
  if (model?.architecture === undefined) return [];
  const mixture = model.architecture.experts !== undefined;
  return blockFaults(layout, model.architecture, model.scheme).map((title) => ({
    cause: 'tp-breaks-quantization-blocks',
    node: undefined,
    title,
    advice: [
      mixture
        ? 'Use a smaller tensor size, or expert parallelism: layout.expert equal to tensor.'
        : 'Use a smaller tensor size.',
    ],
    userError: true,
  }));
}

/** The next sizes that would do. */
function tensorAdvice(model: ModelDescription | undefined, recipe: Recipe): readonly string[] {
  if (model?.architecture === undefined)
    return ['Choose tensor and pipeline so that the nodes share them evenly.'];
  const sizes = Array.from({ length: 16 }, (_, index) => index + 1).filter((tensor) => {
    const other = { ...recipe, layout: { ...recipe.layout, tensor } };
    return (
      heads(model, other).length === 0 &&
      blocks(model, other).length === 0 &&
      (tensor * recipe.layout.pipeline) % recipe.layout.nodes === 0
    );
  });
  return [
    sizes.length === 0
      ? 'No tensor size up to 16 suits this model and these nodes.'
      : `Tensor sizes that suit it on ${plural(recipe.layout.nodes, 'node')}: ${sizes.join(', ')}.`,
  ];
}

function gpuBlockers(
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
  recipe: Recipe,
  engine: EngineName,
): readonly Blocker[] {
  const perNode = worldSize(recipe, engine) / recipe.layout.nodes;
  if (!Number.isInteger(perNode)) return [];
  return nodes.flatMap((node): readonly Blocker[] => {
    const gpus = valueIf(reachedOf(facts, node.name)?.gpus);
    // A host without any GPU is told by a warning: the engine may be a build for its CPU.
    if (gpus === undefined || gpus.length === 0 || gpus.length >= perNode) return [];
    return [
      {
        cause: 'more-ranks-than-gpus',
        node: node.name,
        title: `${node.name} has ${plural(gpus.length, 'GPU')}, and the layout puts ${perNode} ranks there.`,
        advice: ['Use more nodes, or a smaller tensor or pipeline size.'],
        userError: true,
      },
    ];
  });
}
