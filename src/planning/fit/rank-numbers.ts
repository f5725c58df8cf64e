import type { FitRule } from '../../domain/fit.ts';
import type { WeightGroup } from '../../knowledge/models/weight-group.ts';
import { type Cache, cacheOf } from './cache-kinds.ts';
import { cacheTypeOf } from './cache-type.ts';
import { type Assumed, assume } from './defaults.ts';
import { type Draft, draftOf } from './draft.ts';
import type { FitInput, Measured } from './input.ts';
import { requestBytes } from './one-request.ts';
import { type Overhead, overheadOf } from './overhead.ts';
import { type Stage, stagesOf } from './stages.ts';
import { rankWeights } from './weights.ts';

const GIB = 2 ** 30;
/** By this share a request of a model of a type that is not known here may take more than it seems. */
const STRANGE_CACHE = 0.5;

/** The numbers of one pipeline stage, whose ranks are alike. Undefined where the model is not known. */
export type StageNumbers = {
  readonly stage: Stage;
  readonly weightsBytes: number | undefined;
  readonly weightsErrorBytes: number;
  readonly cache: Cache | undefined;
  readonly overhead: Overhead;
};

export type Numbers = {
  readonly stages: readonly StageNumbers[];
  readonly assumed: Assumed;
  readonly draft: Draft;
  /** Share by which a request's part of the cache may be more: its type is not known. */
  readonly cacheError: number;
  readonly rules: readonly FitRule[];
};

/** Weights, cache and overhead of every stage, each with its rule; what an earlier run measured goes before. */
export function numbersOf(input: FitInput): Numbers {
  const { model, engine, layout, settings } = input;
  const architecture = model.architecture;
  const assumed = assume(input);
  const draft = draftOf(settings, engine, architecture);
  const type = cacheTypeOf(settings.kvCacheDtype, engine, model);
  // Of a model that is not known the tensors still tell how many layers they are of.
  const layers = architecture?.layers.length ?? Math.max(layout.pipeline, layersIn(model.groups));
  const rules: FitRule[] = [];
  const say = (about: string, rule: string, errorBytes: number | null = null): void => {
    if (!rules.some((other) => other.about === about && other.rule === rule))
      rules.push({ about, rule, errorBytes });
  };
  const learned = (what: Measured['what']): Measured | undefined =>
    input.learned?.filter((one) => one.what === what).toSorted((a, b) => b.bytes - a.bytes)[0];

  const stages = stagesOf(layers, layout.pipeline, engine).map((stage): StageNumbers => {
    const predicted = rankWeights(input, stage, draft);
    const seen = learned('weightsBytes');
    const known = architecture !== undefined || model.groups.length > 0;
    const weightsBytes = settings.weightsBytes ?? seen?.bytes ?? (known ? predicted.bytes : undefined);
    const weightsErrorBytes =
      settings.weightsBytes !== undefined
        ? 0.05 * GIB
        : seen !== undefined
          ? Math.max(0.1 * GIB, seen.spreadBytes)
          : predicted.bytes * model.error + draft.errorBytes;
    if (settings.weightsBytes !== undefined) say('weights', 'given', weightsErrorBytes);
    else if (seen !== undefined) say('weights', measuredRule(seen), weightsErrorBytes);
    else if (known) {
      say('weights', model.rule, weightsErrorBytes);
      for (const rule of predicted.rules) say('weights', rule);
    }
    const overhead = measuredOverhead(
      overheadOf(input, architecture, stage, draft, assumed),
      learned('overheadBytes'),
    );
    say('overhead', overhead.rule, overhead.errorBytes);
    return {
      stage,
      weightsBytes,
      weightsErrorBytes,
      cache: architecture === undefined ? undefined : cacheOf(input, architecture, stage, type, draft),
      overhead,
    };
  });
  const request = Math.max(
    0,
    ...stages.map(({ cache }) => (cache === undefined ? 0 : requestBytes(input, cache, assumed, draft))),
  );
  const strange = architecture === undefined || architecture.familiar ? 0 : STRANGE_CACHE;
  say('cache', type.rule, type.error * request);
  if (strange > 0)
    say(
      'cache',
      `the model type "${architecture?.type}" is not known here; its cache is taken to be a usual transformer's`,
      strange * request,
    );
  if (draft.rule !== undefined) say('speculation', draft.rule, draft.errorBytes);
  return { stages, assumed, draft, cacheError: Math.max(type.error, strange), rules };
}

function layersIn(groups: readonly WeightGroup[]): number {
  return groups.reduce(
    (most, { place }) => (typeof place === 'number' ? Math.max(most, place + 1) : most),
    0,
  );
}

function measuredOverhead(predicted: Overhead, seen: Measured | undefined): Overhead {
  if (seen === undefined) return predicted;
  // A start has not seen the peak of a full step: what it took is believed down to the lower end of what is predicted.
  const bytes = Math.max(seen.bytes, predicted.bytes - predicted.errorBytes);
  return {
    ...predicted,
    bytes,
    graphsBytes: Math.min(predicted.graphsBytes, bytes),
    errorBytes: Math.max(0.5 * GIB, seen.spreadBytes),
    rule: measuredRule(seen),
  };
}

/** A measurement in words, so that nobody takes it for a prediction. */
function measuredRule(seen: Measured): string {
  const times = seen.times === 1 ? 'once' : `${seen.times} times`;
  return `measured ${times} on this cluster (${seen.from}), which goes before the prediction`;
}
