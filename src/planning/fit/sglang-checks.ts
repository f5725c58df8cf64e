import type { FitCheck } from '../../domain/fit.ts';
import type { EngineView, StageResult } from './evaluate.ts';
import { freeAtBoot, hostChecks, onGpu, perRank } from './host-memory.ts';
import type { FitInput } from './input.ts';
import type { Numbers, StageNumbers } from './rank-numbers.ts';
import { sglangPool } from './sglang-pool.ts';

const GIB = 2 ** 30;

/**
 * SGLang's way (engines.md 5.2, FORMULAS 7): the fraction is of what is free before the load, the least over the
 * ranks; what the weights leave of it is the pools. The rest is for steps and graphs.
 */
export function sglangChecks(input: FitInput, numbers: Numbers): EngineView {
  const { memory, model, settings } = input;
  const { stages, assumed } = numbers;
  const free = freeAtBoot(input, assumed);
  const kept = free === undefined ? undefined : free.bytes * (1 - assumed.fraction);
  const results = stages.map((stage) => resultOf(stage, free?.bytes, kept, input, numbers));
  const known = results.flatMap(({ maxConcurrency }) =>
    maxConcurrency === undefined ? [] : [maxConcurrency],
  );
  const concurrency = known.length === results.length ? Math.min(...known) : undefined;
  const tokens = results.flatMap(({ poolTokens }) => (poolTokens === undefined ? [] : [poolTokens]));
  const checks: FitCheck[] = [];
  if (free !== undefined && kept !== undefined) {
    for (const { numbers: stage, restBytes } of results) {
      if (restBytes === undefined) continue;
      const slot = (stage.cache?.stateBytes ?? 0) * 2;
      checks.push({
        name: 'start',
        what: `what the weights leave of ${Math.round(assumed.fraction * 1e4) / 1e4} of the free memory`,
        marginBytes: restBytes - slot,
        errorBytes: Math.hypot(stage.weightsErrorBytes, free.errorBytes * assumed.fraction, 0.1 * GIB),
      });
    }
    const beside = Math.max(...stages.map(({ overhead }) => overhead.bytes - (memory.unified ? GIB : 0)));
    checks.push({
      name: 'graphs',
      what: 'what the fraction leaves for steps and graphs',
      marginBytes: kept - beside,
      errorBytes: Math.max(...stages.map(({ overhead }) => overhead.errorBytes)),
    });
    // A small share leaves the host enough whatever was free; a usual one may be of far more than is meant.
    if (memory.unified && !free.given && assumed.fraction >= 0.75)
      checks.push({
        name: 'free',
        what: 'SGLang takes its share of what is free before the load, and that was not said',
        marginBytes: 0,
        errorBytes: free.errorBytes,
      });
    checks.push(...hostChecks({ ...input, settings: { ...settings, eager: true } }, numbers, results));
  }
  const weights = Math.max(0, ...stages.map(({ weightsBytes }) => onGpu(weightsBytes ?? 0, input)));
  return {
    checks,
    stages: results.map(({ restBytes: _, ...result }) => ({
      ...result,
      maxConcurrency: concurrency,
      poolTokens: tokens.length === results.length ? Math.min(...tokens) : undefined,
    })),
    startCheck: {
      needsBytes: kept === undefined || weights === 0 ? undefined : weights + kept,
      hasBytes: perRank(memory.availableBytes, input),
    },
    missing:
      model.architecture === undefined
        ? model.rule
        : results.some(({ numbers: { cache } }) => cache === undefined)
          ? 'config.json does not tell which layers keep a cache'
          : free === undefined
            ? (memory.why ?? 'how much memory a GPU has was not said')
            : undefined,
  };
}

function resultOf(
  stage: StageNumbers,
  free: number | undefined,
  kept: number | undefined,
  input: FitInput,
  { assumed, draft }: Numbers,
): StageResult & { readonly restBytes: number | undefined } {
  const { settings, model, sequences } = input;
  const sees = model.architecture?.vision !== undefined && settings.languageOnly !== true;
  const predicted =
    free === undefined || kept === undefined || stage.weightsBytes === undefined
      ? undefined
      : free - onGpu(stage.weightsBytes, input) - kept - (sees ? 0.1 * GIB : 0);
  const restBytes = settings.availableKvBytes ?? predicted;
  // A pool of a given size takes no more than is left, and is refused where nothing is.
  const kvBytes =
    settings.kvCacheBytes === undefined
      ? restBytes
      : Math.min(settings.kvCacheBytes, restBytes ?? Number.POSITIVE_INFINITY);
  const pool =
    stage.cache === undefined || kvBytes === undefined
      ? undefined
      : sglangPool({
          cache: stage.cache,
          restBytes: Math.max(0, kvBytes),
          draftTokens: draft.tokens,
          prefixCaching: assumed.prefixCaching,
        });
  const byTokens = pool === undefined || !assumed.context ? undefined : pool.tokens / assumed.context;
  const most = Math.min(pool?.requests ?? Number.POSITIVE_INFINITY, sequences ?? Number.POSITIVE_INFINITY);
  return {
    numbers: stage,
    restBytes,
    kvBytes,
    peakBytes:
      stage.weightsBytes === undefined
        ? undefined
        : onGpu(stage.weightsBytes, input) + Math.max(0, kvBytes ?? 0) + stage.overhead.bytes,
    poolTokens: pool?.tokens,
    blockTokens: stage.cache === undefined ? undefined : (settings.blockSize ?? 1),
    maxConcurrency: byTokens === undefined ? undefined : Math.min(byTokens, most),
  };
}
