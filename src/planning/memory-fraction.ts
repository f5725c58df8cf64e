import type { EngineName, Recipe } from '../domain/recipe.ts';
import type { Share } from './allocate.ts';

const GIB = 2 ** 30;
/** What CUDA's context and NCCL take before vLLM looks how much is free (engines.md 5.6). */
const BEFORE_CHECK_BYTES = 3 * GIB;

/**
 * The fraction for the engine's own memory flag: the recipe's, else the one that gives the engine what the plan
 * says, its error bar included, and never more than the weakest node can give. Undefined where sizes are unknown,
 * so that the engine keeps its default.
 *
 * SGLang scales what is free before the load, as the least over the ranks, and its own share and the graphs come on
 * top (engines.md 5.2). vLLM scales the total, everything included, and refuses to start unless that much is free
 * (5.1).
 */
export function memoryFraction(
  recipe: Recipe,
  engine: EngineName,
  shares: readonly Share[],
): number | undefined {
  if (recipe.memory.fraction !== 'auto') return recipe.memory.fraction;
  const known = shares.flatMap(({ need, room, memory }) =>
    need === undefined || room === undefined || memory.verdict === 'unknown' ? [] : [{ need, room, memory }],
  );
  if (known.length < shares.length) return undefined;
  const budgets = known.map(({ need, room, memory }) => {
    const freeBytes = memory.canGetAfterClearingBytes + (room.availableBytes - room.canGetBytes);
    const budget = Math.min(memory.canGetAfterClearingBytes, memory.sumBytes + memory.errorBytes);
    return { freeBytes, budget, totalBytes: room.totalBytes, beside: need.engineBytes + need.graphsBytes };
  });
  const fraction =
    engine === 'sglang'
      ? Math.min(...budgets.map(({ budget, beside }) => budget - beside)) /
        Math.min(...budgets.map(({ freeBytes }) => freeBytes))
      : Math.min(
          ...budgets.map(
            ({ budget, freeBytes, totalBytes }) =>
              Math.min(budget, freeBytes - BEFORE_CHECK_BYTES) / totalBytes,
          ),
        );
  const rounded = Math.floor(fraction * 100) / 100;
  return rounded > 0 && rounded < 1 ? rounded : undefined;
}
