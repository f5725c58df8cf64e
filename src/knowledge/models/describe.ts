import { gib, plural } from '../../domain/units.ts';
import type { Architecture } from './architecture.ts';
import { fieldsOf, type Json } from './fields.ts';
import { parametersOf } from './parameters.ts';
import { architectureOf } from './read-architecture.ts';
import { readScheme } from './read-scheme.ts';
import { groupTensors, type Tensor } from './safetensors.ts';
import { bytesOf, type Scheme } from './scheme.ts';
import type { WeightGroup } from './weight-group.ts';

/** What is known of a model's size, from the best of what was at hand. */
export type ModelDescription = {
  readonly name: string;
  /** Undefined where config.json lacks what every size needs: only the files' sizes bound it then. */
  readonly architecture: Architecture | undefined;
  readonly scheme: Scheme;
  /** Weights by kind and place, as they lie in the files; empty for a model that is not known. */
  readonly groups: readonly WeightGroup[];
  /** Where those come from, in a sentence. */
  readonly rule: string;
  /** Share by which the sum may be wrong. */
  readonly error: number;
  /** What all weight files take, where anything says so. */
  readonly fileBytes: number | undefined;
};

/** A `saying` is somebody's rounded figure; the rest is exact. */
type Total = 'index' | 'files' | 'log' | 'saying';

const TOTAL_WORDS: Readonly<Record<Total, string>> = {
  index: 'the safetensors index',
  files: 'the file sizes',
  log: "an engine's count of the files",
  saying: 'what its publisher says',
};

export type ModelSources = {
  readonly name: string;
  readonly config: Json;
  readonly modelopt?: Json | undefined;
  /** A publisher's words for the format. */
  readonly words?: string | undefined;
  /** Every tensor of every shard: the best source. */
  readonly tensors?: readonly Tensor[] | undefined;
  /** `metadata.total_size` of the index, else the sum of the weight files. */
  readonly total?: { readonly bytes: number; readonly from: Total } | undefined;
};

/**
 * A model from what its folder or a description of it says: weights from the shards' headers where they were read,
 * else from the config's arithmetic held against the index or the file sizes, else from the config alone.
 */
export function describeModel(sources: ModelSources): ModelDescription {
  const { config, name } = sources;
  const architecture = architectureOf(config);
  const text = fieldsOf(config).object('text_config');
  const scheme = readScheme(
    {
      quantization:
        fieldsOf(config).object('quantization_config') ??
        (text === undefined ? undefined : fieldsOf(text).object('quantization_config')),
      modelopt: sources.modelopt,
      words: sources.words,
      config: text ?? config,
    },
    architecture,
  );
  const common = { name, architecture, scheme };
  const tensors = sources.tensors ?? [];
  const headers = byHeaders(common, tensors);
  if (headers !== undefined && 'rule' in headers) return headers;
  // What the headers leave out is missing from the sizes of those files, too.
  const found = headers === undefined || sources.total?.from !== 'files' ? sources.total : undefined;
  if (architecture === undefined)
    return notKnown(
      common,
      found?.bytes,
      'config.json does not say layers, widths and heads, so only the size of the files is known',
    );
  const groups = configGroups(architecture, scheme);
  const { total, left } = believed(found, sumOf(groups));
  const { tied, vocab, hidden, valueBytes } = architecture;
  const copy = tied ? vocab * hidden * valueBytes : 0;
  const sized = calibrated(groups, scheme, total, architecture.familiar, copy);
  // A type whose conventions are not known here is believed where its arithmetic accounts for the files, and else not.
  if (!architecture.familiar && (total === undefined || sized.off > 0.05))
    return notKnown(
      { ...common, architecture: undefined },
      found?.bytes,
      `the model type "${architecture.type}" is not known here, and ${total === undefined ? 'no files were seen' : 'the arithmetic of its config.json does not account for the files'}`,
    );
  const { off: _, rule, ...parts } = sized;
  const said = headers?.left ?? left;
  return { ...common, ...parts, rule: said === undefined ? rule : `${rule}; ${said}` };
}

/**
 * The model by its tensors: as it is, or why they are not believed. A type that is not known here keeps its
 * architecture only where the config's arithmetic accounts for the tensors.
 */
function byHeaders(
  common: Pick<ModelDescription, 'name' | 'architecture' | 'scheme'>,
  tensors: readonly Tensor[],
): ModelDescription | { readonly left: string } | undefined {
  if (tensors.length === 0) return undefined;
  const { architecture, scheme } = common;
  const layers = architecture?.layers.length;
  const groups = groupTensors(tensors, layers);
  const bytes = sumOf(groups);
  const seen = new Set(groups.flatMap(({ place }) => (typeof place === 'number' ? [place] : []))).size;
  if (layers !== undefined && seen < layers)
    return {
      left: `the files there hold ${seen} of ${plural(layers, 'layer')}, so their headers are not counted`,
    };
  const strange =
    architecture !== undefined &&
    !architecture.familiar &&
    Math.abs(sumOf(configGroups(architecture, scheme)) / bytes - 1) > 0.05;
  return {
    ...common,
    architecture: strange ? undefined : architecture,
    groups,
    rule:
      `${tensors.length} tensors by the headers of the files, ${gib(bytes)} in all` +
      (strange
        ? `, which the arithmetic of config.json does not account for: the model type "${architecture.type}" is not known here`
        : architecture === undefined
          ? '; config.json does not say layers, widths and heads'
          : ''),
    // What a rank copies and what it shares is by the names alone where the config does not tell.
    error: strange || architecture === undefined ? 0.05 : 0.01,
    fileBytes: bytes,
  };
}

function sumOf(groups: readonly WeightGroup[]): number {
  return groups.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** No format keeps a model in a tenth of what the config's arithmetic makes: such files are not all of it. */
function believed(
  total: ModelSources['total'],
  arithmetic: number,
): { readonly total: ModelSources['total']; readonly left?: string } {
  if (total === undefined || total.bytes >= 0.1 * arithmetic) return { total };
  return {
    total: undefined,
    left: `${gib(total.bytes)} by ${TOTAL_WORDS[total.from]} is too little to be all of it, and not counted`,
  };
}

/** Nothing but the size of the files: a bound, and no number. */
function notKnown(
  common: Pick<ModelDescription, 'name' | 'architecture' | 'scheme'>,
  fileBytes: number | undefined,
  rule: string,
): ModelDescription {
  return { ...common, groups: [], rule, error: 1, fileBytes };
}

/** The config's arithmetic: parameters by kind times the bytes their format takes. */
function configGroups(model: Architecture, scheme: Scheme): readonly WeightGroup[] {
  return parametersOf(model).map(({ kind, place, count }) => ({
    kind,
    place,
    bytes:
      count *
      (place === 'vision' || (place === 'mtp' && scheme.mtp === 'own-type')
        ? model.valueBytes
        : bytesOf(scheme, kind, model.valueBytes)),
  }));
}

/** What of the whole a release leaves out: the vision tower, the block for further tokens, or both. */
const PARTS: readonly (readonly WeightGroup['place'][])[] = [[], ['vision'], ['mtp'], ['vision', 'mtp']];

/**
 * Holds the arithmetic against the size of the files, which also tells what a release leaves out, and whether a tied
 * model's files hold a copy of its table as the head, which is not loaded.
 */
function calibrated(
  groups: readonly WeightGroup[],
  scheme: Scheme,
  total: ModelSources['total'],
  familiar: boolean,
  copyBytes: number,
): Pick<ModelDescription, 'groups' | 'rule' | 'error' | 'fileBytes'> & { readonly off: number } {
  const title = scheme.title;
  if (total === undefined)
    return {
      groups,
      rule: `the arithmetic of config.json, ${title}`,
      // Anything from four bits a value to two bytes.
      error: scheme.unheard === true ? 0.75 : scheme.from === undefined ? 0.015 : 0.025,
      fileBytes: undefined,
      off: 0,
    };
  const copies = copyBytes > 0 ? [0, copyBytes] : [0];
  const choices = copies.flatMap((copy) =>
    PARTS.map((without) => {
      const kept = groups.filter(({ place }) => !without.includes(place));
      const sum = kept.reduce((all, { bytes }) => all + bytes, copy);
      return { kept, sum, off: Math.abs(sum - total.bytes) / total.bytes };
    }),
  );
  const best = choices.reduce((a, b) => (b.off < a.off - 1e-9 ? b : a));
  // A rounded figure near the arithmetic says no more than the arithmetic does.
  const exact =
    (scheme.from === undefined && best.off < 0.01) ||
    (total.from === 'saying' && familiar && best.off < 0.08);
  const factor = exact || best.sum === 0 ? 1 : total.bytes / best.sum;
  return {
    groups: best.kept.map((group) => ({ ...group, bytes: group.bytes * factor })),
    rule: `${gib(total.bytes)} by ${TOTAL_WORDS[total.from]}, parted by the arithmetic of config.json (${title}), which makes ${gib(best.sum)}`,
    error:
      exact && scheme.from === undefined
        ? 0.01
        : Math.min(scheme.unheard === true ? 0.1 : 1, 0.015 + best.off / 2),
    fileBytes: total.bytes,
    off: best.off,
  };
}
