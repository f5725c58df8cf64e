import type { Architecture, Layer, Linear, Mamba } from './architecture.ts';
import { nemotronLayers } from './layers.ts';
import type { ParameterGroup, Place, TensorKind } from './weight-group.ts';

/** Every parameter of the model by what it is for and where it lies (FORMULAS 2). */
export function parametersOf(model: Architecture): readonly ParameterGroup[] {
  const { hidden, vocab } = model;
  const groups: ParameterGroup[] = [
    { kind: 'embedding', place: 'first', count: vocab * hidden },
    ...(model.tied ? [] : [{ kind: 'head', place: 'last', count: vocab * hidden } as const]),
    { kind: 'norm', place: 'last', count: hidden },
    ...model.layers.flatMap((layer, index) => layerParameters(model, layer, index, index)),
    ...mtpParameters(model),
    ...visionParameters(model),
  ];
  return groups.filter(({ count }) => count > 0);
}

function layerParameters(
  model: Architecture,
  layer: Layer,
  place: Place,
  index: number,
): readonly ParameterGroup[] {
  const { hidden } = model;
  const group = (kind: TensorKind, count: number): ParameterGroup => ({ kind, place, count });
  return [
    ...mixerParameters(model, layer, index, group),
    ...feedParameters(model, layer, group),
    group('norm', 2 * hidden),
  ];
}

type Make = (kind: TensorKind, count: number) => ParameterGroup;

function mixerParameters(
  model: Architecture,
  layer: Layer,
  index: number,
  group: Make,
): readonly ParameterGroup[] {
  const { hidden, linear, mamba, latent, compressed } = model;
  if (layer.mixer === 'linear' && linear !== undefined) return linearParameters(linear, model, group);
  if (layer.mixer === 'mamba' && mamba !== undefined) return mambaParameters(mamba, hidden, group);
  if (layer.mixer === 'none') return [];
  if (compressed !== undefined) return compressedParameters(model, compressed, index, group);
  if (latent !== undefined) {
    const { heads } = model.full;
    const head = latent.nope + latent.rope;
    const { queryRank, indexer } = latent;
    // The owners of an indexer are not told apart here: each layer gets its share.
    const share = indexer === undefined ? 0 : indexer.owners / Math.max(1, model.layers.length);
    const index =
      indexer === undefined
        ? 0
        : (queryRank ?? hidden) * indexer.heads * indexer.dim + hidden * (indexer.dim + indexer.heads);
    return [
      group('latent-down', queryRank === undefined ? 0 : hidden * queryRank),
      group('attention', (queryRank ?? hidden) * heads * head),
      group('latent-down', hidden * (latent.rank + latent.rope)),
      group('attention', latent.rank * heads * (latent.nope + latent.value) + heads * latent.value * hidden),
      group('indexer', index * share),
    ];
  }
  const { heads, kvHeads, headDim } = layer.mixer === 'sliding' ? model.sliding : model.full;
  const query = hidden * heads * headDim * (model.gatedAttention ? 2 : 1);
  return [
    group('attention', query + heads * headDim * hidden),
    group('key-value', 2 * hidden * kvHeads * headDim),
  ];
}

function linearParameters(linear: Linear, { hidden }: Architecture, group: Make): readonly ParameterGroup[] {
  const keys = linear.keyHeads * linear.keyDim;
  const values = linear.valueHeads * linear.valueDim;
  // Kimi's linear attention has low-rank gates where the gated delta net has one full projection.
  const gate = linear.lowRankGate
    ? 2 * (hidden * linear.valueDim + linear.valueDim * values)
    : hidden * values;
  return [
    group('linear-attention', hidden * (2 * keys + values) + gate + values * hidden),
    group('conv', (2 * keys + values) * linear.kernel + 2 * hidden * linear.valueHeads),
  ];
}

function mambaParameters(mamba: Mamba, hidden: number, group: Make): readonly ParameterGroup[] {
  const inner = mamba.heads * mamba.headDim;
  const states = 2 * mamba.groups * mamba.state;
  return [
    group('mamba', hidden * (2 * inner + states + mamba.heads) + inner * hidden),
    group('conv', (inner + states) * mamba.kernel),
  ];
}

/** DeepSeek-V4: one shared key-value vector, grouped low-rank output, a compressor per layer with a ratio. */
function compressedParameters(
  model: Architecture,
  { ratios, latent }: NonNullable<Architecture['compressed']>,
  index: number,
  group: Make,
): readonly ParameterGroup[] {
  const { hidden } = model;
  const { heads, headDim } = model.full;
  const ratio = ratios[index] ?? 0;
  // Windows of the small ratio overlap, so its compressor is twice as wide.
  const wide = ratio > 0 && ratio <= 8 ? 2 : 1;
  const compressor = ratio === 0 ? 0 : 2 * hidden * wide * headDim;
  const indexer =
    wide === 1
      ? 0
      : latent.queryRank * latent.indexHeads * latent.indexDim +
        hidden * latent.indexHeads +
        2 * hidden * wide * latent.indexDim;
  return [
    group('latent-down', hidden * latent.queryRank + hidden * headDim),
    group(
      'attention',
      latent.queryRank * heads * headDim +
        heads * headDim * latent.outputRank +
        latent.outputGroups * latent.outputRank * hidden,
    ),
    group('indexer', compressor + indexer),
  ];
}

function feedParameters(model: Architecture, layer: Layer, group: Make): readonly ParameterGroup[] {
  const { hidden, matrices, experts } = model;
  if (layer.feed === 'none') return [];
  if (layer.feed === 'dense' || experts === undefined)
    return [group('dense', matrices * hidden * model.denseWidth)];
  const inner = experts.latent ?? hidden;
  return [
    group('experts', experts.count * matrices * inner * experts.width),
    group('shared-expert', matrices * hidden * experts.sharedWidth),
    group('router', experts.count * hidden),
    group('latent-down', experts.latent === undefined ? 0 : 2 * hidden * experts.latent),
  ];
}

/** A block for further tokens: one more layer of the last kind, and the projection that joins two tokens' states. */
function mtpParameters(model: Architecture): readonly ParameterGroup[] {
  const { hidden, mtpLayers } = model;
  if (mtpLayers === 0) return [];
  const last = model.layers.findLast((layer) => layer.mixer === 'full') ?? model.layers.at(-1);
  if (last === undefined) return [];
  const layers: readonly Layer[] = model.type.startsWith('nemotron_h')
    ? nemotronLayers('*E', 2)
    : [{ mixer: last.mixer, feed: model.experts === undefined ? 'dense' : 'experts' }];
  return Array.from({ length: mtpLayers }).flatMap(() => [
    ...layers.flatMap((layer) => layerParameters(model, layer, 'mtp', model.layers.length)),
    { kind: 'attention', place: 'mtp', count: 2 * hidden * hidden } as const,
  ]);
}

/** A vision tower of the usual make: patches, blocks of attention and feed-forward, and a merger of 2 by 2 patches. */
function visionParameters({ vision, type }: Architecture): readonly ParameterGroup[] {
  if (vision === undefined) return [];
  const { depth, hidden, width, out } = vision;
  const gated = /^(?:gemma4|qwen2)/.test(type);
  const block = 4 * hidden * hidden + (gated ? 3 : 2) * hidden * width;
  const merger = /^gemma/.test(type) ? hidden * out : (4 * hidden) ** 2 + 4 * hidden * out;
  const patches = 3 * 2 * 16 * 16 * hidden + 2304 * hidden;
  return [{ kind: 'vision', place: 'vision', count: depth * block + merger + patches }];
}
