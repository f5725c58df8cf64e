import type { FitCheck } from '../../domain/fit.ts';
import type { Assumed } from './defaults.ts';
import type { StageResult } from './evaluate.ts';
import type { FitInput } from './input.ts';
import type { Numbers } from './rank-numbers.ts';

const GIB = 2 ** 30;
/**
 * Of a clean unified host's memory, what the engine finds free: 115 to 117.7 of 121.69 GiB by MemAvailable, which
 * builds since April 2026 ask for, and 110 to 112 by CUDA, which older ones do (spark.md 3, FORMULAS 6).
 */
const CLEAN_SHARE = 0.945;
const CLEAN_ERROR_SHARE = 0.04;
/**
 * What a host loses beside the engine's budget (FORMULAS 8): 5.5 to 14 GiB on one node, 16 to 21 with DeepSeek-V4. Hosts
 * served for days with 1 to 4 GiB available and wedged with as much, so the line is no sharper than its bar; above a
 * fraction of 0.9 lock-ups are reported (engines.md 5.6).
 */
const HOST = { extraBytes: 8 * GIB, errorBytes: 3 * GIB };
const HOST_COMPRESSED = { extraBytes: 18 * GIB, errorBytes: 6 * GIB };
const HOST_RESERVE = GIB;

/** Bytes of a node's memory that one of its ranks may count on: all of it on its own GPU, a share where it is unified. */
export function perRank(bytes: number | undefined, { memory, layout, engine }: FitInput): number | undefined {
  if (bytes === undefined || !memory.unified) return bytes;
  const world = layout.tensor * layout.pipeline * (engine === 'vllm' ? layout.data : 1);
  return bytes / Math.max(1, Math.ceil(world / layout.nodes));
}

export function fractionBytes(total: number, fraction: number): number {
  return Math.ceil(total * fraction);
}

/** Weights less what is offloaded to the CPU's memory, which on unified memory is the same memory. */
export function onGpu(weightsBytes: number, { settings, memory }: FitInput): number {
  return memory.unified ? weightsBytes : Math.max(0, weightsBytes - (settings.cpuOffloadBytes ?? 0));
}

/** What is free before the load, as it was given or as a clean host has it. */
export function freeAtBoot(
  input: FitInput,
  _assumed: Assumed,
): { readonly bytes: number; readonly errorBytes: number; readonly given: boolean } | undefined {
  const { memory } = input;
  const available = perRank(memory.availableBytes, input);
  if (available !== undefined) return { bytes: available, errorBytes: 0.3 * GIB, given: true };
  const total = perRank(memory.totalBytes, input);
  if (total === undefined) return undefined;
  if (memory.unified)
    return { bytes: total * CLEAN_SHARE, errorBytes: total * CLEAN_ERROR_SHARE, given: false };
  // A card of its own that nothing else uses has all but the driver's share free.
  return { bytes: total - 0.3 * GIB, errorBytes: Math.min(0.3 * GIB, total * 0.02), given: false };
}

/** What may go wrong outside the engine's own budget: the host on unified memory, graphs on a card, the load on both. */
export function hostChecks(
  input: FitInput,
  numbers: Numbers,
  results: readonly StageResult[],
): readonly FitCheck[] {
  const { memory, settings, model } = input;
  const { assumed, stages } = numbers;
  const total = perRank(memory.totalBytes, input);
  const free = freeAtBoot(input, assumed);
  if (total === undefined || free === undefined) return [];
  const checks: FitCheck[] = [];
  const weights = Math.max(0, ...stages.map(({ weightsBytes }) => onGpu(weightsBytes ?? 0, input)));
  if (memory.unified) {
    const host = model.architecture?.compressed === undefined ? HOST : HOST_COMPRESSED;
    const beside = settings.swapBytes ?? 0;
    const taken =
      settings.kvCacheBytes === undefined
        ? assumed.fraction * (input.engine === 'vllm' ? total : free.bytes)
        : Math.max(0, ...results.map(({ peakBytes }) => peakBytes ?? 0));
    const margin = total - taken - host.extraBytes - beside - HOST_RESERVE;
    checks.push({
      name: 'host',
      what: 'what the host keeps for itself while the engine serves',
      marginBytes: margin,
      // Engines served with less than this line, so that it warns and does not forbid, unless it is far past.
      errorBytes: Math.max(host.errorBytes, Math.min(-margin, 10 * GIB)),
    });
  } else if (settings.eager !== true && settings.kvCacheBytes === undefined) {
    const graphs = Math.max(0, ...stages.map(({ overhead }) => overhead.graphsBytes));
    checks.push({
      name: 'graphs',
      what: 'graphs, which are captured beside the budget',
      marginBytes: total - assumed.fraction * total - graphs,
      errorBytes: 0.4 * graphs,
    });
  }
  if (weights > 0) {
    // Integer weights are rearranged for the kernel after loading; builds differ in how much they hold twice meanwhile.
    const repacked = model.scheme.repacked ? weights : 0;
    checks.push({
      name: 'load',
      what: `the weights while they are loaded${repacked > 0 ? ' and rearranged for the kernel' : ''}`,
      marginBytes: free.bytes - weights - 0.1 * repacked,
      errorBytes: free.errorBytes + (memory.unified ? 0.9 * repacked : 0),
    });
  }
  return checks;
}
