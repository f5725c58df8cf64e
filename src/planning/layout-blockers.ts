import type { Node } from '../domain/cluster.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import type { Blocker } from '../domain/plan.ts';
import { type EngineName, type Recipe, softwareOf } from '../domain/recipe.ts';
import { plural } from '../domain/units.ts';
import { knownModel, worldSize } from './fit.ts';
import type { ModelShape } from './model-config.ts';
import { reachedOf } from './our-ranks.ts';

/** Layouts that end a launch, by what the model's config says (engines.md 6). */
export function layoutBlockers(input: {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
}): readonly Blocker[] {
  const { nodes, facts, recipe, engine } = input;
  const { shape } = knownModel(nodes, facts);
  const titles = [...spread(recipe, engine), ...(shape === undefined ? [] : heads(shape, recipe))];
  return [
    ...titles.map(
      (title): Blocker => ({
        cause: 'tp-size-not-divisible',
        node: undefined,
        title,
        advice: tensorAdvice(shape, recipe),
        userError: true,
      }),
    ),
    ...(shape === undefined ? [] : blocks(shape, recipe)),
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

function heads(shape: ModelShape, { layout }: Recipe): readonly string[] {
  const { tensor, pipeline } = layout;
  const { kvHeads, linearState } = shape;
  const said: string[] = [];
  if (shape.heads % tensor !== 0)
    said.push(`The model has ${shape.heads} attention heads, which tensor ${tensor} does not divide.`);
  else if (shape.latent === undefined && kvHeads % tensor !== 0 && tensor % kvHeads !== 0)
    said.push(
      `The model has ${kvHeads} key-value heads, which tensor ${tensor} neither divides nor multiplies.`,
    );
  if (
    shape.linearLayers > 0 &&
    (linearState.keyHeads % tensor !== 0 || linearState.valueHeads % tensor !== 0)
  )
    said.push(
      `The model's linear layers have ${linearState.keyHeads} and ${linearState.valueHeads} heads, which tensor ${tensor} does not divide.`,
    );
  if (pipeline > shape.layers)
    said.push(`The model has ${shape.layers} layers, fewer than pipeline ${pipeline}.`);
  return said;
}

/** FP8 in blocks: each rank's slice must be whole blocks, else the engine refuses while it builds the model. */
function blocks(shape: ModelShape, { layout }: Recipe): readonly Blocker[] {
  const block = shape.quantization?.block;
  if (shape.quantization?.method !== 'fp8' || block === undefined) return [];
  const [rows] = block;
  // With expert parallelism the experts are dealt out whole; a mixture's `intermediate_size` is often unused.
  const widths = shape.experts === 0 ? [shape.denseWidth] : layout.expert > 1 ? [] : [shape.expertWidth];
  const bad = widths.find(
    (width) => width !== undefined && width > 0 && (width / layout.tensor) % rows !== 0,
  );
  if (bad === undefined || layout.tensor === 1) return [];
  return [
    {
      cause: 'tp-breaks-quantization-blocks',
      node: undefined,
      title: `${shape.experts === 0 ? 'Layers' : 'Experts'} of width ${bad} are quantised in blocks of ${rows}; tensor ${layout.tensor} leaves ${bad / layout.tensor} per rank, which is no whole number of blocks.`,
      advice: [
        shape.experts === 0
          ? 'Use a smaller tensor size.'
          : 'Use a smaller tensor size, or expert parallelism: layout.expert equal to tensor.',
      ],
      userError: true,
    },
  ];
}

/** The next sizes that would do. */
function tensorAdvice(shape: ModelShape | undefined, recipe: Recipe): readonly string[] {
  if (shape === undefined) return ['Choose tensor and pipeline so that the nodes share them evenly.'];
  const sizes = Array.from({ length: 16 }, (_, index) => index + 1).filter((tensor) => {
    const other = { ...recipe, layout: { ...recipe.layout, tensor } };
    return (
      heads(shape, other).length === 0 &&
      blocks(shape, other).length === 0 &&
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
