import type { Event } from '../domain/event.ts';
import type { EngineName } from '../domain/recipe.ts';
import { buildOf, type FailedBefore } from '../planning/engine-choice.ts';
import type { World } from './world.ts';

/** Changes of engine that are looked through. */
const MOST = 50;
/** What another build of the engine would not change, or what was only so then. */
const NOT_THE_ENGINE =
  /^(?:unknown$|leftover|insufficient|gpu-memory-still|page-cache|port-|host-|image-|disk-|docker-|ssh-|sudo-)/;

/** Engines that failed on this cluster for a reason of their own, while another one served in the same run. */
export function failedBefore(world: World): readonly FailedBefore[] {
  const runs = new Set(world.journal.newest('engine-changed', MOST).map(({ run }) => run));
  return [...runs].flatMap((run) => failedIn(world.journal.read(run), world.cluster.name));
}

function failedIn(events: readonly Event[], cluster: string): readonly FailedBefore[] {
  const started = events.find((event) => event.type === 'run-started');
  const served = events.some((event) => event.type === 'serving');
  if (!served || started?.type !== 'run-started' || started.cluster !== cluster) return [];
  return events.flatMap((event, index) => {
    if (event.type !== 'engine-changed') return [];
    const before = events.slice(0, index);
    const finding = before.findLast((one) => one.type === 'finding' && one.final);
    const looked = before.findLast((one) => one.type === 'looked');
    const planned = before.findLast((one) => one.type === 'planned');
    if (finding?.type !== 'finding' || looked?.type !== 'looked' || planned?.type !== 'planned') return [];
    const engine: EngineName = event.from;
    const nodes = started.nodes.map((name) => ({ name }));
    const build = buildOf(engine, nodes, looked.facts);
    if (build === undefined || NOT_THE_ENGINE.test(finding.cause)) return [];
    return [{ model: planned.plan.recipe.model, engine, build, cause: finding.cause, run: event.run }];
  });
}
