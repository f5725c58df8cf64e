import { type GuardReserve, guardReserve } from '../../domain/guard.ts';
import type { Service } from '../../domain/plan.ts';
import type { Recipe } from '../../domain/recipe.ts';
import { sentences } from '../../domain/units.ts';
import { makeRoom, saysFullDisk } from '../../knowledge/full-disk.ts';
import { unreachedCause } from '../../knowledge/unreached-cause.ts';
import { startRank } from '../../remote/rank-runner.ts';
import type { RunEnd } from '../in-run.ts';
import { look } from '../look.ts';
import { endOf, type StepEnd, tellStep } from '../tell-step.ts';
import { announceRanks } from './announce-ranks.ts';
import { type BringUp, notServing } from './progress.ts';
import { stopAttempt } from './stop-attempt.ts';
import { tellFinding } from './tell-finding.ts';

/** Starts every rank that does not run yet, in the plan's order; undefined when all of them run. */
export async function launch(
  up: BringUp,
  attempt: number,
  services: readonly Service[],
  recipe: Recipe,
): Promise<RunEnd | undefined> {
  up.world.signal.throwIfAborted();
  // From here Ctrl-C detaches: all ranks are started or none.
  const whole = new AbortController().signal;
  for (const service of services.filter((one) => one.running !== true)) {
    const started = await start(up, service, { attempt, guard: guardReserve(recipe) }, whole);
    if (started.result === 'done') continue;
    await stopAttempt(up, attempt, services, 'another rank could not be started');
    return unstarted(up, attempt, service, started.text);
  }
  announceRanks(up, attempt, services, false);
  return undefined;
}

/** Why a rank could not be started: its host went away meanwhile, has no room for the rank's files, or said something. */
async function unstarted(
  up: BringUp,
  attempt: number,
  { node, rank }: Service,
  said: string,
): Promise<RunEnd> {
  const place = up.nodes.filter(({ name }) => name === node);
  const [now] = await look(up.world, place, undefined);
  if (now?.reached === false) {
    const { why, sentence, remedy } = now.failure;
    tellFinding(up, attempt, {
      cause: unreachedCause(why, true),
      node,
      title: `${node} was lost while rank ${rank} was started there`,
      why: sentence,
      advice: [remedy],
    });
    return notServing(sentences(`${node} was lost while rank ${rank} was started there`, sentence));
  }
  const full = saysFullDisk(said);
  const title = full
    ? `A disk of ${node} is full, so rank ${rank} could not be started there`
    : `Rank ${rank} could not be started on ${node}`;
  tellFinding(up, attempt, {
    cause: full ? 'disk-full' : 'unknown',
    node,
    title,
    why: said,
    advice: [full ? makeRoom(node) : `look at it there: ${said}`],
  });
  return notServing(full ? title : `rank ${rank} could not be started on ${node}: ${said}`);
}

function start(
  { world, recorder }: BringUp,
  service: Service,
  { attempt, guard }: { readonly attempt: number; readonly guard: GuardReserve | undefined },
  signal: AbortSignal,
): Promise<StepEnd> {
  const startedAt = new Date(world.clock.now()).toISOString();
  const { name, node, rank, engine } = service;
  return tellStep(
    world,
    recorder,
    {
      id: name,
      node,
      title: `start rank ${rank}, ${engine}`,
      phase: 'launch',
      kind: 'start-rank',
      undo: 'command',
    },
    async () => {
      const start = {
        run: recorder.run,
        attempt,
        startedAt,
        ...(guard === undefined ? {} : { guard }),
      };
      return endOf(await startRank(world.hosts.of(node), service, start, { signal }));
    },
  );
}
