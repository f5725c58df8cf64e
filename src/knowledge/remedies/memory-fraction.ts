import { type RecipeEdit, type Software, softwareOf } from '../../domain/recipe.ts';
import type { Remedy, RemedyInput } from './remedy.ts';

const FLAGS: Readonly<Record<Software, string>> = {
  sglang: '--mem-fraction-static',
  vllm: '--gpu-memory-utilization',
};
const STEP = 0.05;
/** Above these, boots fail and Sparks lock up (engines.md §5.6). */
const HIGHEST_UNIFIED = 0.87;
const HIGHEST = 0.94;
const LOWEST = 0.4;

/** A larger share for the engine, where its share holds the weights and nothing else. */
export const moreMemory: Remedy = {
  name: 'more-memory',
  causes: ['kv-pool-size-not-positive', 'gpu-memory-utilization-too-low'],
  title: (input) => `Give the engine ${share(changed(input, STEP))} of the memory`,
  cost: () => 'less is left for everything else on the node',
  apply: (input) => edit(input, changed(input, STEP)),
};

/** A smaller share for the KV cache leaves more for graphs, or is there at all. */
export const lessMemory: Remedy = {
  name: 'less-memory',
  causes: [
    'cuda-graph-capture-oom',
    'insufficient-free-memory-at-startup',
    'memory-exhausted-rank-stopped',
    'driver-version-regression',
    'oom-killer-during-weight-load',
    'device-allocation-failed-sigkill-unattributed',
    'unified-memory-exhausted-driver-alloc',
    'unified-memory-exhausted-host-freeze',
    'too-many-sequences-for-memory',
  ],
  title: (input) =>
    `Give the engine ${share(changed(input, -STEP))} of the memory${input.finding.cause === 'cuda-graph-capture-oom' ? ', so that graphs have room' : ''}`,
  cost: () => 'a smaller KV cache: fewer or shorter requests at once',
  apply: (input) => edit(input, changed(input, -STEP)),
};

function edit({ recipe }: RemedyInput, to: number | undefined): readonly RecipeEdit[] | undefined {
  return to === undefined ? undefined : [{ path: 'memory.fraction', from: recipe.memory.fraction, to }];
}

function changed(input: RemedyInput, by: number): number | undefined {
  const now = current(input);
  if (now === undefined) return undefined;
  const to = Math.round((now + by) * 100) / 100;
  const most = highest(input);
  // Downwards it comes within the bounds at once.
  if (by < 0 && to > most) return most;
  return to > most || to < LOWEST ? undefined : to;
}

function highest({ facts }: RemedyInput): number {
  const unified = facts.some(
    (node) => node.reached && node.gpus.known && node.gpus.value.some((gpu) => gpu.unified),
  );
  return unified ? HIGHEST_UNIFIED : HIGHEST;
}

/** What the ranks were started with; without the flag it is the engine's own choice, which we do not know. */
function current({ recipe, engine, evidence }: RemedyInput): number | undefined {
  if (typeof recipe.memory.fraction === 'number') return recipe.memory.fraction;
  for (const service of evidence.services) {
    const at = service.argv.indexOf(FLAGS[softwareOf(engine)]);
    const value = at === -1 ? undefined : service.argv[at + 1];
    if (typeof value === 'string' && Number(value) > 0 && Number(value) < 1) return Number(value);
  }
  return undefined;
}

function share(fraction: number | undefined): string {
  return fraction === undefined ? 'another share' : `${Math.round(fraction * 100)} %`;
}
