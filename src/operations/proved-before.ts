import { type ProvedRemedy, provedIn, usableNow } from '../diagnosis/proved-remedies.ts';
import type { EngineName, Recipe } from '../domain/recipe.ts';
import type { World } from './world.ts';

/** Proofs that are looked through: what an old driver or image needed says little of today's. */
const MOST = 100;

/** Every remedy that a run of this journal proved, newest first. */
export function provedBefore({ journal }: Pick<World, 'journal'>): readonly ProvedRemedy[] {
  const runs = new Set(journal.newest('remedy-proved', MOST).map(({ run }) => run));
  return [...runs].flatMap((run) => provedIn(journal.read(run))).toSorted((a, b) => b.at.localeCompare(a.at));
}

/** Those that this recipe starts with on this cluster. */
export function provedFor(world: World, recipe: Recipe, engine: EngineName): readonly ProvedRemedy[] {
  return usableNow(provedBefore(world), { cluster: world.cluster.name, recipe, engine });
}
