import type { Event } from '../domain/event.ts';
import type { EngineName, Recipe, RecipeEdit } from '../domain/recipe.ts';

/** A remedy that an earlier run proved, and for what. */
export type ProvedRemedy = {
  readonly cluster: string;
  readonly model: string;
  readonly engine: EngineName;
  readonly remedy: string;
  readonly cause: string;
  readonly node: string | undefined;
  readonly title: string;
  readonly edits: readonly RecipeEdit[];
  readonly run: string;
  readonly at: string;
};

/** Cures of a moment: what was in the way then need not be now. */
const OF_A_MOMENT = new Set(['other-port', 'look-again', 'launch-anew']);

/** What a run's events proved; a remedy that failed later in the same run is none. */
export function provedIn(events: readonly Event[]): readonly ProvedRemedy[] {
  let cluster = '';
  let planned: Extract<Event, { type: 'planned' }> | undefined;
  const proved = new Map<string, ProvedRemedy>();
  for (const event of events) {
    if (event.type === 'run-started') cluster = event.cluster;
    else if (event.type === 'planned') planned = event;
    else if (event.type === 'remedy-failed') proved.delete(event.remedy);
    else if (event.type === 'remedy-proved' && planned !== undefined) {
      const { remedy, cause, node, title, edits, run, at } = event;
      const { recipe, engine } = planned.plan;
      proved.set(remedy, {
        cluster,
        model: recipe.model,
        engine,
        remedy,
        cause,
        node,
        title,
        edits,
        run,
        at,
      });
    }
  }
  return [...proved.values()];
}

/**
 * Those that this recipe can have from its first attempt on: proved on this cluster with this model and engine, and
 * the recipe still says what it said before they changed it. Of two for one place the newer counts.
 */
export function usableNow(
  proved: readonly ProvedRemedy[],
  {
    cluster,
    recipe,
    engine,
  }: { readonly cluster: string; readonly recipe: Recipe; readonly engine: EngineName },
): readonly ProvedRemedy[] {
  const taken = new Set<string>();
  return proved
    .toSorted((a, b) => b.at.localeCompare(a.at))
    .filter((one) => {
      if (one.cluster !== cluster || one.model !== recipe.model || one.engine !== engine) return false;
      if (one.edits.length === 0 || OF_A_MOMENT.has(one.remedy)) return false;
      if (one.edits.some(({ path, from }) => taken.has(path) || !same(valueAt(recipe, path), from)))
        return false;
      for (const { path } of one.edits) taken.add(path);
      return true;
    });
}

function valueAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (inside, key) => (typeof inside === 'object' && inside !== null ? Reflect.get(inside, key) : undefined),
      value,
    );
}

/** The journal writes nothing for undefined. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
}
