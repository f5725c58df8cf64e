import type { FitCheck } from '../../domain/fit.ts';
import { thousands } from '../../domain/units.ts';
import type { EngineView, StageResult } from './evaluate.ts';
import { fractionBytes, freeAtBoot, hostChecks, onGpu, perRank } from './host-memory.ts';
import type { FitInput } from './input.ts';
import type { Numbers, StageNumbers } from './rank-numbers.ts';
import { type Pool, vllmPool } from './vllm-pool.ts';

const GIB = 2 ** 30;

/**
 * vLLM's way (engines.md 5.1): it refuses to start unless fraction times total is free, takes weights, overhead and
 * a cache out of that budget, and wants the cache to hold one request of the whole length. Graphs are captured after.
 */
export function vllmChecks(input: FitInput, numbers: Numbers): EngineView {
  const { memory, settings } = input;
  const { stages, assumed } = numbers;
  const total = perRank(memory.totalBytes, input);
  const budget = total === undefined ? undefined : fractionBytes(total, assumed.fraction);
  const free = freeAtBoot(input, assumed);
  const rooms = stages.map((stage) => roomOf(stage, budget, input));
  const least = Math.min(...rooms.map((room) => room ?? Number.POSITIVE_INFINITY));
  const results = stages.map((stage, index): StageResult & { readonly pool: Pool | undefined } => {
    const room = rooms[index];
    // What was measured is of the rank with the least; the others have more by as much as was predicted.
    const given = settings.availableKvBytes;
    const extra = room === undefined || !Number.isFinite(least) ? 0 : room - least;
    const kvBytes = settings.kvCacheBytes ?? (given === undefined ? room : given + extra);
    const pool = poolOf(stage, kvBytes, input, numbers, 1);
    return {
      numbers: stage,
      kvBytes,
      peakBytes: peakOf(stage, kvBytes, input),
      poolTokens: undefined,
      blockTokens: pool?.blockTokens,
      maxConcurrency: pool === undefined || kvBytes === undefined ? undefined : pool.maxConcurrency,
      pool,
    };
  });
  // The pool is decided by the stage that holds the fewest requests.
  const known = results.flatMap(({ maxConcurrency }) =>
    maxConcurrency === undefined ? [] : [maxConcurrency],
  );
  const concurrency = known.length === results.length ? Math.min(...known) : undefined;
  const startNeeds = budget;
  const checks: FitCheck[] = [];
  if (startNeeds !== undefined && free !== undefined)
    checks.push({
      name: 'start',
      what: 'free memory at the start against the fraction of the total that vLLM asks for',
      marginBytes: free.bytes - startNeeds,
      errorBytes: free.errorBytes,
    });
  for (const result of results) checks.push(...stageChecks(result, input, numbers));
  checks.push(...hostChecks(input, numbers, results));
  return {
    checks,
    stages: results.map(({ pool: _, ...result }) => ({
      ...result,
      maxConcurrency: concurrency,
      poolTokens:
        concurrency === undefined || assumed.context === undefined
          ? undefined
          : Math.floor(concurrency * assumed.context),
    })),
    startCheck: { needsBytes: startNeeds, hasBytes: perRank(memory.availableBytes, input) },
    missing: missingIn(input, results, total),
  };
}

function missingIn(
  { settings, model, memory }: FitInput,
  results: readonly StageResult[],
  total: number | undefined,
): string | undefined {
  const unsaid = memory.why ?? 'how much memory a GPU has was not said';
  if (model.architecture === undefined) return model.rule;
  if (results.some(({ numbers }) => numbers.cache === undefined))
    return 'config.json does not tell which layers keep a cache';
  if (total === undefined && settings.availableKvBytes === undefined) return unsaid;
  return total === undefined ? `${unsaid}, only what the cache gets` : undefined;
}

/** What the budget leaves for the cache on a stage's ranks. */
function roomOf(stage: StageNumbers, budget: number | undefined, input: FitInput): number | undefined {
  if (budget === undefined || stage.weightsBytes === undefined) return undefined;
  return budget - onGpu(stage.weightsBytes, input) - stage.overhead.bytes;
}

function poolOf(
  stage: StageNumbers,
  kvBytes: number | undefined,
  { settings }: FitInput,
  { assumed, draft }: Numbers,
  steps: 1 | 2,
): Pool | undefined {
  if (stage.cache === undefined) return undefined;
  return vllmPool({
    cache: stage.cache,
    availableBytes: Math.max(0, kvBytes ?? 0),
    context: assumed.context ?? 1,
    batchedTokens: assumed.batchedTokens,
    steps,
    draftTokens: draft.tokens,
    prefixCaching: assumed.prefixCaching,
    blockSize: settings.blockSize,
    dcp: settings.dcp ?? 1,
  });
}

function stageChecks(
  { numbers, kvBytes, pool }: StageResult & { readonly pool: Pool | undefined },
  input: FitInput,
  all: Numbers,
): readonly FitCheck[] {
  const { settings } = input;
  const { assumed } = all;
  if (kvBytes === undefined || pool === undefined || assumed.context === undefined) return [];
  // What builds since 0.26 want more for sliding windows: the middle of both is asked for, and half of it may be off.
  const later = poolOf(numbers, kvBytes, input, all, 2)?.requestBytes ?? pool.requestBytes;
  const half = (later - pool.requestBytes) / 2;
  const unsure = all.cacheError * pool.requestBytes;
  const measured = settings.availableKvBytes !== undefined || settings.kvCacheBytes !== undefined;
  const errorBytes = measured
    ? 0.02 * kvBytes
    : Math.hypot(numbers.weightsErrorBytes, numbers.overhead.errorBytes);
  const checks: FitCheck[] = [
    {
      name: 'cache',
      what: cacheWords(kvBytes, pool.requestBytes, later, assumed.context),
      marginBytes: kvBytes - pool.requestBytes - half,
      errorBytes: errorBytes + half + unsure,
    },
  ];
  // FORMULAS 5.8: a hybrid that may take more sequences than there are pages of state is refused before its graphs.
  if (pool.stateBlocks !== undefined && pool.stateBlocks > 0 && settings.eager !== true) {
    const page = kvBytes / pool.stateBlocks;
    checks.push({
      name: 'state',
      what: `pages of state for ${thousands(assumed.sequences)} sequences`,
      marginBytes: (pool.stateBlocks - assumed.sequences) * page,
      errorBytes: Math.min(errorBytes, 0.25 * kvBytes),
    });
  }
  return checks;
}

function cacheWords(kvBytes: number, requestBytes: number, later: number, context: number): string {
  const more = later > 1.01 * requestBytes ? ` (${(later / GIB).toFixed(2)} GiB with vLLM since 0.26)` : '';
  const request = `one request of ${thousands(context)} tokens, which takes ${(requestBytes / GIB).toFixed(2)} GiB${more}`;
  return kvBytes > 0
    ? `a cache of ${(kvBytes / GIB).toFixed(1)} GiB for ${request}`
    : `weights and overhead take ${(-kvBytes / GIB).toFixed(1)} GiB more than the budget, which leaves no cache for ${request}`;
}

function peakOf(stage: StageNumbers, kvBytes: number | undefined, input: FitInput): number | undefined {
  if (stage.weightsBytes === undefined) return undefined;
  return onGpu(stage.weightsBytes, input) + stage.overhead.bytes + Math.max(0, kvBytes ?? 0);
}
