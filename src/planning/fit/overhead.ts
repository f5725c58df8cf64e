import { thousands } from '../../domain/units.ts';
import type { Architecture } from '../../knowledge/models/architecture.ts';
import type { Assumed } from './defaults.ts';
import type { Draft } from './draft.ts';
import type { FitInput } from './input.ts';
import type { Stage } from './stages.ts';

const GIB = 2 ** 30;

/** What a rank takes beside weights and cache. */
export type Overhead = {
  readonly bytes: number;
  readonly graphsBytes: number;
  readonly errorBytes: number;
  readonly rule: string;
};

/**
 * Bytes for each word of the vocabulary and row that is sampled, on the last stage. Sorting in PyTorch keeps 38: the
 * logits in two widths (6), sorted values and indices (12), the indices' way back (8) and as much again to sort in
 * (12); builds since 2026 may choose without sorting and keep 7 to 17. Which one a build does is not told by its flags.
 */
const SAMPLED = { bytes: 28, share: 0.4 };

/**
 * Context, communication, the peak of one step and graphs (FORMULAS 6, fitted to what public logs imply). The peak
 * is the larger of two: a step of the most batched tokens, or sampling for the most sequences.
 */
export function overheadOf(
  input: FitInput,
  model: Architecture | undefined,
  stage: Stage,
  draft: Draft,
  assumed: Assumed,
): Overhead {
  const { memory, layout, settings, engine } = input;
  const ranks = layout.tensor * layout.pipeline;
  const between = layout.nodes > 1 ? 1 : ranks > 1 ? 0.1 : 0;
  const base = (memory.unified ? 2 : 1) * GIB + between * GIB;
  const step = assumed.batchedTokens * stepBytes(model, layout.tensor);
  const rows = engine === 'vllm' ? assumed.sequences * (1 + draft.tokens) : Math.min(assumed.sequences, 64);
  const sampling = stage.last ? Math.min(rows, 16_384) * (model?.vocab ?? 150_000) * SAMPLED.bytes : 0;
  // Over several unified hosts vLLM subtracts far more for graphs than they take: about 5 GiB were seen on two Sparks.
  const graphs = memory.unified ? (layout.nodes > 1 && engine === 'vllm' ? 2.4 : 0.9) : 0.8;
  const graphsBytes = settings.eager === true ? 0 : graphs * GIB;
  const peak = Math.max(step, sampling);
  return {
    bytes: base + peak + graphsBytes,
    graphsBytes,
    errorBytes:
      Math.hypot((memory.unified ? 2.5 : 1.5) * GIB, 0.25 * step, SAMPLED.share * sampling) +
      (layout.nodes > 1 && memory.unified ? GIB : 0),
    rule:
      `${(base / GIB).toFixed(1)} GiB of context and communication, ${(peak / GIB).toFixed(1)} GiB for ` +
      (step >= sampling
        ? `a step of ${thousands(assumed.batchedTokens)} tokens`
        : `sampling ${thousands(rows)} rows of ${thousands(model?.vocab ?? 150_000)} words`) +
      (graphsBytes > 0 ? `, ${(graphsBytes / GIB).toFixed(1)} GiB of graphs` : ', graphs switched off'),
  };
}

/**
 * Bytes of activations per batched token: four of the model's width, and the wider of what a layer's mixer and its
 * feed-forward part project to, two bytes each. DeepSeek-V4 was seen to keep 0.6 GiB per 1024 tokens (FORMULAS 6).
 */
function stepBytes(model: Architecture | undefined, tensor: number): number {
  if (model === undefined) return (0.12 * GIB) / 1024;
  if (model.compressed !== undefined) return (0.6 * GIB) / 1024;
  const { hidden, experts, linear, mamba } = model;
  const width = (experts?.width ?? 0) / tensor;
  const inner = experts?.latent ?? hidden;
  // Each of a token's experts keeps what goes in and comes out, and the half of it that is left after the gate.
  const mixture =
    experts === undefined
      ? 0
      : experts.active * (Math.max(2 * width, inner) + width) + (3 * experts.sharedWidth) / tensor;
  const { heads, kvHeads, headDim } = model.full;
  const attention = ((model.gatedAttention ? 3 : 2) * heads + 2 * kvHeads) * headDim;
  const states =
    linear === undefined
      ? 0
      : 2 * (2 * linear.keyHeads * linear.keyDim + 2 * linear.valueHeads * linear.valueDim);
  const mambas = mamba === undefined ? 0 : 4 * mamba.heads * mamba.headDim;
  const mixer = Math.max(attention, states, mambas) / tensor;
  return 2 * (4 * hidden + Math.max(mixer, mixture, (3 * model.denseWidth) / tensor));
}
