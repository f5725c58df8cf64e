import type { Software } from '../../domain/recipe.ts';
import { plural } from '../../domain/units.ts';
import type { Architecture } from '../../knowledge/models/architecture.ts';
import { mainFormat, type Scheme } from '../../knowledge/models/scheme.ts';
import type { FitLayout } from './input.ts';

/**
 * Why a layout ends a launch before any memory is taken (engines.md 6): heads, key-value heads, heads of linear
 * layers, whole blocks of a quantisation, experts, ranks over nodes. Empty where it divides.
 */
export function divisionFaults(
  layout: FitLayout,
  engine: Software,
  model: Architecture | undefined,
  scheme: Scheme,
  dcp = 1,
): readonly string[] {
  const { tensor, pipeline, nodes, data } = layout;
  const world = tensor * pipeline * (engine === 'vllm' ? data : 1);
  const spread =
    world % nodes === 0
      ? []
      : [`${plural(world, 'rank')} cannot be shared evenly by ${plural(nodes, 'node')}.`];
  if (model === undefined) return spread;
  return [
    ...spread,
    ...headFaults(layout, model),
    ...contextFaults(tensor, dcp, model),
    ...expertFaults(layout, engine, model),
    ...blockFaults(layout, model, scheme),
  ];
}

/** Heads of any kind that the tensor size does not divide, and layers too few for the stages. */
export function headFaults({ tensor, pipeline }: FitLayout, model: Architecture): readonly string[] {
  const { linear, mamba } = model;
  const { heads, kvHeads } = model.full;
  const said: string[] = [];
  const attends = model.layers.some(({ mixer }) => mixer === 'full' || mixer === 'sliding');
  const shared = model.latent === undefined && model.compressed === undefined;
  if (attends && heads % tensor !== 0)
    said.push(`The model has ${heads} attention heads, which tensor ${tensor} does not divide.`);
  else if (attends && shared && kvHeads % tensor !== 0 && tensor % kvHeads !== 0)
    said.push(
      `The model has ${kvHeads} key-value heads, which tensor ${tensor} neither divides nor multiplies.`,
    );
  if (linear !== undefined && (linear.keyHeads % tensor !== 0 || linear.valueHeads % tensor !== 0))
    said.push(
      `The model's linear layers have ${linear.keyHeads} and ${linear.valueHeads} heads, which tensor ${tensor} does not divide.`,
    );
  if (mamba !== undefined && mamba.heads % tensor !== 0)
    said.push(`The model's Mamba layers have ${mamba.heads} heads, which tensor ${tensor} does not divide.`);
  if (pipeline > model.layers.length)
    said.push(`The model has ${model.layers.length} layers, fewer than pipeline ${pipeline}.`);
  return said;
}

/** Decode context parallel deals a sequence over tensor ranks that keep the same heads (vLLM's config/model.py). */
function contextFaults(tensor: number, dcp: number, model: Architecture): readonly string[] {
  if (dcp === 1) return [];
  if (tensor % dcp !== 0) return [`Decode context parallel ${dcp} does not divide tensor ${tensor}.`];
  const shared = model.latent === undefined && model.compressed === undefined;
  const { kvHeads } = model.full;
  if (shared && dcp > tensor / kvHeads)
    return [
      `Tensor ${tensor} keeps each of ${plural(kvHeads, 'key-value head')} on ${plural(Math.max(1, Math.floor(tensor / kvHeads)), 'rank')}, fewer than decode context parallel ${dcp}.`,
    ];
  return [];
}

function expertFaults(layout: FitLayout, engine: Software, model: Architecture): readonly string[] {
  const { expert, tensor } = layout;
  if (expert <= 1) return [];
  if (model.experts === undefined) return ['The model has no experts to be dealt out.'];
  // SGLang wants the same number of experts on each rank and groups of ranks that divide; vLLM deals out unevenly.
  if (engine === 'sglang' && tensor % expert !== 0)
    return [`Expert ${expert} does not divide tensor ${tensor}.`];
  if (engine === 'sglang' && model.experts.count % expert !== 0)
    return [`The model has ${model.experts.count} experts, which expert ${expert} does not divide.`];
  return [];
}

/** Each rank's slice must be whole blocks: of 128 for FP8 blocks, of the kernel's 64 or the group for integers. */
export function blockFaults(layout: FitLayout, model: Architecture, scheme: Scheme): readonly string[] {
  const { tensor, expert } = layout;
  const format = mainFormat(scheme);
  if (tensor === 1 || format === undefined) return [];
  const block = format.name === 'fp8-block' ? 128 : format.name === 'int' ? Math.max(64, format.group) : 0;
  if (block === 0) return [];
  const mixture = model.experts !== undefined;
  if (mixture && expert > 1) return [];
  const width = mixture ? (model.experts?.width ?? 0) : model.denseWidth;
  const slice = width / tensor;
  if (width === 0 || slice % block === 0) return [];
  // GPTQ kernels pad what is no whole group; only a slice that is no whole 64 ends the launch.
  if (format.name === 'int' && slice % 64 === 0) return [];
  return [
    `${mixture ? 'Experts' : 'Layers'} of width ${width} are quantised in blocks of ${block}; tensor ${tensor} leaves ${slice} per rank, which is no whole number of blocks.`,
  ];
}
