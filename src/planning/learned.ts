import { canonical } from '../domain/digest.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import type { MemoryMeasured } from '../domain/memory-measured.ts';
import { argsOf, type EngineName, imageOf, type Recipe } from '../domain/recipe.ts';
import type { Measured } from './fit/input.ts';
import { reachedOf } from './our-ranks.ts';

const GIB = 2 ** 30;
/** Of one key and node: older ones were made under another driver or kernel. */
const NEWEST = 5;
/** What a rank can take beside weights and cache; more or less than this was somebody else's doing. */
const LEAST_OVERHEAD = 0.5 * GIB;
const MOST_OVERHEAD = 30 * GIB;

/** What was measured, with the day and run it comes from. */
export type Remembered = { readonly at: string; readonly run: string; readonly measured: MemoryMeasured };

type Key = Pick<MemoryMeasured, 'model' | 'modelBytes' | 'engine' | 'image' | 'flags' | 'node' | 'sequences'>;

/** The key of a rank that a node's look and a recipe decide. */
export function keyOf(recipe: Recipe, engine: EngineName, node: string, facts: readonly NodeFacts[]): Key {
  const seen = reachedOf(facts, node);
  const model = valueIf(seen?.model);
  const files = model?.present
    ? model.files.filter(({ name }) => /\.(?:safetensors|bin|gguf)$/.test(name))
    : [];
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return {
    model: recipe.model,
    modelBytes: bytes > 0 ? bytes : undefined,
    engine,
    image: imageKey(recipe, engine, node, facts),
    flags: canonical({ layout: recipe.layout, args: argsOf(recipe, engine), env: recipe.env }),
    node,
    sequences: recipe.sequences,
  };
}

function imageKey(recipe: Recipe, engine: EngineName, node: string, facts: readonly NodeFacts[]): string {
  const named = imageOf(recipe, engine);
  const found = (valueIf(reachedOf(facts, node)?.engines) ?? []).find((one) => one.engine === engine);
  if (found?.where.in === 'process') return `${found.where.program} ${valueIf(found.version) ?? ''}`.trim();
  return found === undefined ? (named ?? engine) : `${found.where.image} ${found.where.imageId}`;
}

/**
 * What earlier runs of the same model, engine, image and flags measured on this node; where none ran on it, on its
 * peers, whose ranks are alike. Pure: the same memories give the same numbers.
 */
export function learnedFor(memories: readonly Remembered[], key: Key): readonly Measured[] {
  const alike = memories.filter(
    ({ measured }) =>
      measured.model === key.model &&
      measured.engine === key.engine &&
      measured.image === key.image &&
      measured.flags === key.flags &&
      (measured.modelBytes === undefined ||
        key.modelBytes === undefined ||
        measured.modelBytes === key.modelBytes),
  );
  const own = alike.filter(({ measured }) => measured.node === key.node);
  const counted = once(own.length > 0 ? own : alike).slice(-NEWEST);
  return [
    ...sum('weightsBytes', key.node, counted, ({ weightsBytes }) => weightsBytes),
    ...sum('overheadBytes', key.node, counted, (one) =>
      one.sequences === key.sequences ? overheadOf(one) : undefined,
    ),
  ];
}

/**
 * Each launch once, as it was measured last; what the run that launched it saw before its ranks were there, a later run
 * that only follows them does not see, and does not take away.
 */
function once(memories: readonly Remembered[]): readonly Remembered[] {
  const last = new Map<string, Remembered>();
  for (const one of memories) {
    const { measured } = one;
    const key = `${measured.launch} ${measured.node} ${measured.rank}`;
    const before = last.get(key)?.measured;
    const availableBytes = measured.availableBytes ?? before?.availableBytes;
    last.set(key, { ...one, measured: { ...measured, availableBytes } });
  }
  return [...last.values()].toSorted((a, b) => (a.at < b.at ? -1 : 1));
}

/** All that went from the node beside weights and cache, where one rank alone was there and came to serve. */
function overheadOf(one: MemoryMeasured): number | undefined {
  const { served, unified, ranksThere, availableBytes, lowestBytes, weightsBytes, poolBytes } = one;
  if (!served || !unified || ranksThere !== 1) return undefined;
  if (availableBytes === undefined || lowestBytes === undefined) return undefined;
  if (weightsBytes === undefined || poolBytes === undefined) return undefined;
  const bytes = availableBytes - lowestBytes - weightsBytes - poolBytes;
  return bytes >= LEAST_OVERHEAD && bytes <= MOST_OVERHEAD ? bytes : undefined;
}

function sum(
  what: Measured['what'],
  node: string,
  memories: readonly Remembered[],
  of: (one: MemoryMeasured) => number | undefined,
): readonly Measured[] {
  const seen = memories.flatMap((memory) => {
    const bytes = of(memory.measured);
    return bytes === undefined ? [] : [{ bytes, memory }];
  });
  const newest = seen.at(-1)?.memory;
  if (newest === undefined) return [];
  const sizes = seen.map(({ bytes }) => bytes);
  return [
    {
      what,
      node,
      bytes: Math.max(...sizes),
      times: sizes.length,
      spreadBytes: Math.max(...sizes) - Math.min(...sizes),
      from: `run ${newest.run}, ${newest.at.slice(0, 10)}${newest.measured.node === node ? '' : `, on ${newest.measured.node}`}`,
    },
  ];
}
