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
 * Bytes for each word of the vocabulary and row that is sampled, on the last stage: between the 38 that sorting in
 * PyTorch keeps (the logits in two widths 6, sorted values and indices 12, the indices' way back 8, as much as the
 * sorted again to sort in 12) and the 7 to 17 of builds since 2026 that may choose without sorting. Which one a build
 * does, its flags do not tell: that share of it may be off.
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
  const perToken = stepBytes(model);
  const step = assumed.batchedTokens * perToken;
  const rows = engine === 'vllm' ? assumed.sequences * (1 + draft.tokens) : Math.min(assumed.sequences, 64);
  const sampling = stage.last ? Math.min(rows, 16_384) * (model?.vocab ?? 150_000) * SAMPLED.bytes : 0;
  // Over several unified hosts vLLM subtracts far more for graphs than they take: about 5 GiB were seen on two Sparks.
  const graphs = memory.unified ? (layout.nodes > 1 && engine === 'vllm' ? 2.4 : 0.9) : 0.8;
  const graphsBytes = settings.eager === true ? 0 : graphs * GIB;
  const peak = Math.max(step, sampling);
  // Boots of one configuration differ (FORMULAS 6).
  const boots = (memory.unified ? 2.5 : 1.5) * GIB;
  return {
    bytes: base + peak + graphsBytes,
    graphsBytes,
    errorBytes:
      (step >= sampling ? boots + 0.1 * step : Math.hypot(boots, SAMPLED.share * sampling)) +
      (layout.nodes > 1 && memory.unified ? GIB : 0),
    rule:
      `${(base / GIB).toFixed(1)} GiB of context and communication, ${(peak / GIB).toFixed(1)} GiB for ` +
      (step >= sampling
        ? `a step of ${thousands(assumed.batchedTokens)} tokens`
        : `sampling ${thousands(rows)} rows of ${thousands(model?.vocab ?? 150_000)} words`) +
      (graphsBytes > 0 ? `, ${(graphsBytes / GIB).toFixed(1)} GiB of graphs` : ', graphs switched off'),
  };
}

/** Bytes of activations per batched token: 0.23 GiB per 1024 for mixtures, less for dense models, 0.6 for DeepSeek-V4. */
function stepBytes(model: Architecture | undefined): number {
  const gibPerThousand = model?.compressed !== undefined ? 0.6 : model?.experts !== undefined ? 0.23 : 0.12;
  return (gibPerThousand * GIB) / 1024;
}
