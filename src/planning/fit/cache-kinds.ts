import type { Architecture, Linear, Mamba } from '../../knowledge/models/architecture.ts';
import type { CacheType } from './cache-type.ts';
import type { Draft } from './draft.ts';
import type { FitInput } from './input.ts';
import type { Stage } from './stages.ts';

/** Layers of one rank that keep alike for a sequence. */
export type CacheKind =
  | {
      readonly name: 'full' | 'sliding' | 'draft' | 'indexer';
      readonly layers: number;
      /** Of one token in one layer. */
      readonly tokenBytes: number;
      /** Tokens that are kept at most; undefined for all. */
      readonly window: number | undefined;
    }
  | {
      readonly name: 'state';
      readonly of: 'linear' | 'mamba';
      readonly layers: number;
      /** Of one slot in one layer, whatever the length. */
      readonly slotBytes: number;
    };

export type Cache = {
  readonly kinds: readonly CacheKind[];
  /** Kinds over all stages of the pipeline: vLLM deals its groups over the whole model. */
  readonly whole: readonly CacheKind[];
  /** Full layers keep one compressed vector for all heads. */
  readonly latent: boolean;
  /** Of one more token of a long sequence in the model's own layers (FORMULAS 3). */
  readonly bytesPerToken: number;
  /** One slot of state over all layers (FORMULAS 4). */
  readonly stateBytes: number;
  /** A part of a request that grows with the tokens of a step, and not with its length. */
  readonly stepBytesPerToken: number;
};

/**
 * DeepSeek-V4: a compressed entry is 448 FP8 values, 64 rotary ones in BF16 and scales; an indexer's is 128 FP8
 * values and a scale. Its windows and compressors keep about 0.79 MiB for each token of a step (FORMULAS 5.7).
 */
const COMPRESSED_ENTRY = 584;
const INDEX_ENTRY = 132;
const COMPRESSED_STEP = 0.79 * 2 ** 20;

/** What a rank of a stage keeps for its sequences; undefined where the config does not say what the layers are. */
export function cacheOf(
  input: FitInput,
  model: Architecture,
  stage: Stage,
  type: CacheType,
  draft: Draft,
): Cache | undefined {
  // Kimi's hybrids without the list of their layers: how many keep a cache is not known.
  if (model.type.startsWith('kimi_linear') && model.linear === undefined) return undefined;
  const all = { from: 0, to: model.layers.length, first: true, last: true };
  if (model.compressed !== undefined) return compressedCache(model.compressed.ratios, stage, type);
  const own = kindsOn(input, model, stage, type, draft);
  return {
    ...own,
    whole: stage.first && stage.last ? own.kinds : kindsOn(input, model, all, type, draft).kinds,
    latent: model.latent !== undefined,
    stateBytes: own.kinds.reduce(
      (sum, kind) => sum + (kind.name === 'state' ? kind.layers * kind.slotBytes : 0),
      0,
    ),
    stepBytesPerToken: 0,
  };
}

function kindsOn(
  input: FitInput,
  model: Architecture,
  stage: Stage,
  type: CacheType,
  draft: Draft,
): Pick<Cache, 'kinds' | 'bytesPerToken'> {
  const { tensor } = input.layout;
  const keeping = Math.max(stage.from, Math.min(stage.to, model.layers.length - model.sharedKvLayers));
  const layers = model.layers.slice(stage.from, keeping);
  const count = (mixer: string): number => layers.filter((layer) => layer.mixer === mixer).length;
  const heads = (kv: number, dim: number): number => 2 * Math.max(1, kv / tensor) * dim * type.valueBytes;
  const { latent } = model;
  const fullBytes =
    latent === undefined
      ? heads(model.full.kvHeads, model.full.headDim)
      : (type.latentBytes ?? (latent.rank + latent.rope) * type.valueBytes);
  const full = count('full');
  const sliding = count('sliding');
  const slidingBytes = heads(model.sliding.kvHeads, model.sliding.headDim);
  const indexed = latent?.indexer === undefined ? 0 : (latent.indexer.owners * full) / model.layers.length;
  // vLLM widens the convolution's window by the tokens proposed (FORMULAS 4).
  const extra = input.engine === 'vllm' ? draft.tokens : 0;
  const drafting = stage.last && draft.tokens > 0 ? draft.layers : 0;
  const alike = draft.ownBlock || draft.alike ? drafting : 0;
  const kinds: readonly CacheKind[] = [
    { name: 'full', layers: full + alike, tokenBytes: fullBytes, window: undefined },
    { name: 'indexer', layers: indexed, tokenBytes: INDEX_ENTRY, window: undefined },
    {
      name: 'sliding',
      layers: sliding,
      tokenBytes: slidingBytes,
      window: model.window > 0 ? model.window : undefined,
    },
    { name: 'draft', layers: drafting - alike, tokenBytes: fullBytes, window: draft.window },
    ...stateKinds(model, count('linear'), count('mamba'), tensor, extra),
  ];
  return {
    kinds: kinds.filter((kind) => kind.layers > 0),
    bytesPerToken: full * fullBytes + indexed * INDEX_ENTRY + (model.window > 0 ? 0 : sliding * slidingBytes),
  };
}

function compressedCache(ratios: readonly number[], stage: Stage, type: CacheType): Cache {
  const own = ratios.slice(stage.from, stage.to);
  const entry = /0\.5625/.test(String(type.valueBytes)) ? COMPRESSED_ENTRY * 0.6 : COMPRESSED_ENTRY;
  const bytes = own.reduce((sum, ratio) => {
    if (ratio === 0) return sum;
    return sum + (entry + (ratio <= 8 ? INDEX_ENTRY : 0)) / ratio;
  }, 0);
  const kinds = [{ name: 'full', layers: 1, tokenBytes: bytes, window: undefined } as const];
  return {
    kinds,
    whole: kinds,
    latent: true,
    bytesPerToken: bytes,
    stateBytes: 0,
    stepBytesPerToken: (COMPRESSED_STEP * own.length) / Math.max(1, ratios.length),
  };
}

function stateKinds(
  model: Architecture,
  linear: number,
  mamba: number,
  tensor: number,
  extra: number,
): readonly Extract<CacheKind, { name: 'state' }>[] {
  return [
    ...(linear > 0 && model.linear !== undefined
      ? [
          {
            name: 'state',
            of: 'linear',
            layers: linear,
            slotBytes: linearSlot(model.linear, tensor, extra),
          } as const,
        ]
      : []),
    ...(mamba > 0 && model.mamba !== undefined
      ? [
          {
            name: 'state',
            of: 'mamba',
            layers: mamba,
            slotBytes: mambaSlot(model.mamba, tensor, extra),
          } as const,
        ]
      : []),
  ];
}

function linearSlot(linear: Linear, tensor: number, extra: number): number {
  const channels = 2 * linear.keyHeads * linear.keyDim + linear.valueHeads * linear.valueDim;
  return (
    (channels / tensor) * (linear.kernel - 1 + extra) * 2 +
    (linear.valueHeads / tensor) * linear.keyDim * linear.valueDim * linear.stateBytes
  );
}

function mambaSlot(mamba: Mamba, tensor: number, extra: number): number {
  const channels = mamba.heads * mamba.headDim + 2 * mamba.groups * mamba.state;
  return (
    (channels / tensor) * (mamba.kernel - 1 + extra) * 2 +
    (mamba.heads / tensor) * mamba.headDim * mamba.state * mamba.stateBytes
  );
}
