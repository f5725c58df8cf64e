import type { Architecture } from '../../knowledge/models/architecture.ts';
import { mainFormat } from '../../knowledge/models/scheme.ts';
import type { WeightGroup } from '../../knowledge/models/weight-group.ts';
import type { Draft } from './draft.ts';
import type { FitInput } from './input.ts';
import type { Stage } from './stages.ts';

const GIB = 2 ** 30;
/** FORMULAS 2: SGLang counts what the host lost, on unified memory 0.14 to 0.4 GiB more than the weights. */
const SGLANG_HOST_BYTES = 0.27 * GIB;

/** Weights of one rank of a stage as the engine prints them loaded, with what differs from the files said. */
export function rankWeights(
  input: FitInput,
  stage: Stage,
  draft: Draft,
): { readonly bytes: number; readonly rules: readonly string[] } {
  const { model, engine, memory } = input;
  const { architecture } = model;
  const rules: string[] = [];
  const padded = architecture === undefined ? 1 : kernelPadding(architecture, input);
  const expanded = expandedScales(input);
  const experts = padded * (expanded ? 1 + 2 / 128 : 1);
  let bytes = 0;
  for (const group of model.groups) {
    if (!isLoaded(group, stage, draft, input)) continue;
    bytes += (group.bytes * (group.kind === 'experts' ? experts : 1)) / divisor(group, input);
  }
  if (padded > 1)
    rules.push(`experts are padded for the four-bit kernel to ${padded.toFixed(3)} times their size`);
  if (expandedScales(input))
    rules.push('FP8 experts on the Marlin path keep a scale per 128 inputs, 1.6 % more');
  const rotary = engine === 'vllm' && architecture !== undefined ? rotaryBytes(architecture) : 0;
  if (rotary > 0.01 * GIB)
    rules.push(`${(rotary / GIB).toFixed(2)} GiB of rotary angles, which vLLM keeps as a table`);
  const host = engine === 'sglang' && memory.unified ? SGLANG_HOST_BYTES : 0;
  if (host > 0) rules.push('0.27 GiB more, since SGLang counts what the host lost');
  if (draft.bytes > 0) rules.push(`${(draft.bytes / GIB).toFixed(2)} GiB of the drafter, not divided`);
  return { bytes: bytes + rotary + host + draft.bytes, rules };
}

function isLoaded(group: WeightGroup, stage: Stage, draft: Draft, { settings, model }: FitInput): boolean {
  const tied = model.architecture?.tied === true;
  switch (group.place) {
    case 'first':
      // The last stage needs the table, too, where it is the head as well.
      return stage.first || (tied && stage.last && group.kind === 'embedding');
    case 'last':
      // Files of a tied model may hold the table a second time as its head (Qwen3-0.6B); engines leave that out.
      return stage.last && !(tied && group.kind === 'head');
    case 'vision':
      return stage.first && settings.languageOnly !== true;
    case 'mtp':
      // Files repeat the model's table and head in the block, which then uses those that its stage has.
      if (group.kind === 'head' || (group.kind === 'embedding' && stage.first)) return false;
      return stage.last && draft.ownBlock;
    default:
      return group.place >= stage.from && group.place < stage.to;
  }
}

/** FORMULAS 2: by how many ranks a part is divided; 1 is a copy on each. */
function divisor(group: WeightGroup, input: FitInput): number {
  const { layout, model } = input;
  const { tensor } = layout;
  const architecture = model.architecture;
  switch (group.kind) {
    case 'router':
    case 'norm':
    case 'latent-down':
    case 'indexer':
      return 1;
    case 'key-value':
      return Math.min(tensor, Math.max(1, architecture?.full.kvHeads ?? tensor));
    case 'experts':
      return expertShare(input);
    case 'vision':
      return (architecture?.vision?.heads ?? tensor) % tensor === 0 ? tensor : 1;
    default:
      return tensor;
  }
}

/**
 * Of all routed experts, what one rank holds is one part in this many. vLLM cuts them over all replicas' ranks, by
 * width or by number (flatten_tp_across_dp_and_pcp in fused_moe/config.py), SGLang over the tensor ranks; dealt out by
 * number, a rank holds whole experts.
 */
function expertShare({ engine, layout, model }: FitInput): number {
  const ranks = engine === 'vllm' ? layout.tensor * layout.data : layout.tensor;
  const count = model.architecture?.experts?.count;
  if (layout.expert <= 1 || count === undefined) return ranks;
  return count / Math.ceil(count / Math.min(ranks, count));
}

/** FORMULAS 2: kernels for MXFP4 want 128 columns of each expert per tensor rank, whoever holds it, and 256 of the width. */
function kernelPadding(model: Architecture, { model: { scheme }, layout }: FitInput): number {
  if (mainFormat(scheme)?.name !== 'mxfp4' || model.experts === undefined || model.experts.width === 0)
    return 1;
  const width = model.experts.width / layout.tensor;
  const inner = model.experts.latent ?? model.hidden;
  return ((Math.ceil(width / 128) * 128) / width) * ((Math.ceil(inner / 256) * 256) / inner);
}

/** GB10 has no other path for FP8 experts in vLLM than Marlin (engines.md 7). */
function expandedScales({ engine, memory, model }: FitInput): boolean {
  return (
    engine === 'vllm' &&
    memory.unified &&
    model.architecture?.experts !== undefined &&
    mainFormat(model.scheme)?.name === 'fp8-block'
  );
}

function rotaryBytes(model: Architecture): number {
  return model.rotary.reduce((sum, width) => sum + (model.maxTokens ?? 0) * width * 2, 0);
}
