import type { Node } from '../domain/cluster.ts';
import type { NodeFacts } from '../domain/facts.ts';
import type { Recipe } from '../domain/recipe.ts';
import { look } from './look.ts';
import type { Recorder } from './recorder.ts';
import type { World } from './world.ts';

/** Looks at the nodes for one turn of a run, and tells in the journal what was seen. */
export async function tellLook(
  world: World,
  recorder: Recorder,
  turn: {
    readonly attempt: number;
    readonly nodes: readonly Node[];
    readonly recipe: Recipe | undefined;
  },
): Promise<readonly NodeFacts[]> {
  const { attempt, nodes, recipe } = turn;
  const started = world.clock.now();
  const facts = await look(world, nodes, recipe);
  recorder.emit({ type: 'looked', attempt, milliseconds: world.clock.now() - started, facts });
  return facts;
}
