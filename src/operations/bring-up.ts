import type { NodeFacts } from '../domain/facts.ts';
import type { Plan, Service } from '../domain/plan.ts';
import { editRecipe } from '../domain/recipe.ts';
import { list } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { whySkip } from '../planning/engine-choice.ts';
import { allRanks, runningEdits, strayRanks } from '../planning/our-ranks.ts';
import { plan } from '../planning/plan.ts';
import { applyStep } from './apply.ts';
import { announceRanks } from './bring-up/announce-ranks.ts';
import { blocked } from './bring-up/blocked.ts';
import { clear } from './bring-up/clear.ts';
import { launch } from './bring-up/launch.ts';
import { nextEngine } from './bring-up/next-engine.ts';
import {
  again,
  atStart,
  type BringUp,
  ended,
  type Move,
  notServing,
  type Progress,
  recipeNow,
} from './bring-up/progress.ts';
import { prove } from './bring-up/prove.ts';
import { tellGuarded } from './bring-up/tell-guarded.ts';
import { unreached } from './bring-up/unreached.ts';
import { failedBefore } from './failed-before.ts';
import type { RunEnd } from './in-run.ts';
import { awaitMemory, memoryTargets, settlingTargets } from './memory-back.ts';
import { provedFor } from './proved-before.ts';
import { remembered } from './remembered.ts';
import { stopRanks } from './stop-ranks.ts';
import { tellLook } from './tell-look.ts';

/** Turns of the loop; a run that needs more is going round in a circle, and says so. */
const MOST_TURNS = 40;
/** Launches per run: on unified memory each failed start leaks (facts/spark.md §3). */
const MOST_ATTEMPTS = 8;

/**
 * The loop: look, plan, carry out the first phase, look again, until the plan is empty and the model answers.
 * A failure is diagnosed from its evidence; a remedy edits what is wanted, and the same loop goes on.
 */
export async function bringUp(up: BringUp): Promise<RunEnd> {
  let progress = atStart(up);
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const move = await takeTurn(up, progress, turn === 0);
    if (move.kind === 'ended') return move.end;
    progress = move.progress;
  }
  return notServing(`nothing settled in ${MOST_TURNS} looks; something undoes what the steps do`);
}

/** One turn: a look, the plan that follows from it, and the first phase of that plan. */
async function takeTurn(up: BringUp, before: Progress, first: boolean): Promise<Move> {
  up.world.signal.throwIfAborted();
  const facts = await lookNow(up, before, first);
  const away = facts.filter((node) => !node.reached);
  // Who is reached through a host that is away is not at fault.
  const fault = away.find((node) => node.failure.why !== 'jump-unreachable') ?? away[0];
  if (fault !== undefined) return ended(unreached(up, before, fault));
  if (first) tellGuarded(up, facts);

  const progress = beginEngine(up, takeUp(up, before, facts), facts);
  const next = planNow(up, progress, facts);
  up.recorder.emit({ type: 'planned', attempt: progress.attempt + 1, plan: next });
  if (first) holdToPlan(up, next);
  if (first) tellStrangeConsent(up, next);

  const worked: Progress = { ...progress, worked: true };
  if (await stopStrays(up, facts)) return again(worked);
  switch (next.state) {
    case 'blocked':
      return blocked(up, progress, next.blockers, facts);
    case 'empty':
      return follow(up, progress, next, facts);
    case 'work':
      return work(up, worked, next, facts);
  }
}

/** The first look waits for memory that is still on its way back from what a run before this one had stopped. */
async function lookNow(up: BringUp, progress: Progress, first: boolean): Promise<readonly NodeFacts[]> {
  const { world, recorder, nodes } = up;
  const recipe = recipeNow(up, progress);
  const see = () => tellLook(world, recorder, { attempt: progress.attempt + 1, nodes, recipe });
  const facts = await see();
  const targets = first ? settlingTargets(facts, world.clock.now()) : [];
  if (targets.length === 0) return facts;
  await awaitMemory(world, recorder, targets);
  return see();
}

/** Where ranks of this recipe run already, their remedies and their engine are taken over before anything is launched. */
function takeUp({ file }: BringUp, progress: Progress, facts: readonly NodeFacts[]): Progress {
  const running = runningEdits(facts, file.digest);
  if (running === undefined || progress.attempt > 0) return progress;
  const { engines } = file.recipe;
  const at = engines.indexOf(running.engine);
  return { ...progress, ...running, left: engines.slice(at + 1), begun: true };
}

/**
 * Before an engine's first launch: it is skipped where it is known to fail here and another is left, and what earlier
 * runs proved for it goes into the recipe.
 */
function beginEngine(up: BringUp, progress: Progress, facts: readonly NodeFacts[]): Progress {
  const { world, file, nodes, input, recorder } = up;
  if (progress.begun || input.anew === true) return { ...progress, begun: true };
  const recipe = recipeNow(up, progress);
  const why =
    progress.left.length === 0
      ? undefined
      : whySkip(progress.engine, { nodes, facts, recipe, failedBefore: failedBefore(world) });
  const next =
    why === undefined ? undefined : nextEngine(up, progress, `skipped untried: ${progress.engine} ${why}`);
  if (next !== undefined) return beginEngine(up, next, facts);
  const proved = provedFor(world, editRecipe(file.recipe, progress.edits), progress.engine);
  if (proved.length > 0)
    recorder.emit({
      type: 'note',
      level: 'info',
      node: undefined,
      text: `from the first attempt on, as earlier runs proved: ${proved.map(({ title, run }) => `${title} (run ${run})`).join('; ')}; --anew leaves that out`,
    });
  return {
    ...progress,
    begun: true,
    edits: [...progress.edits, ...proved.flatMap(({ edits }) => edits)],
    tried: [...progress.tried, ...proved.map(({ engine, remedy, cause }) => ({ engine, remedy, cause }))],
  };
}

function planNow(up: BringUp, progress: Progress, facts: readonly NodeFacts[]): Plan {
  const { world, nodes, file, input } = up;
  return plan({
    cluster: world.cluster,
    nodes,
    recipe: recipeNow(up, progress),
    recipeDigest: file.digest,
    edits: progress.edits,
    engine: progress.engine,
    facts,
    sudo: Object.fromEntries(nodes.map((node) => [node.name, !progress.rootless.has(node.name)])),
    evicted: progress.evicted,
    replace: input.replace,
    remembered: remembered(world),
  });
}

/** Throws a UserError where the plan is not the one that was seen and allowed. */
function holdToPlan({ file, input }: BringUp, next: Plan): void {
  if (input.plan === undefined || next.digest === input.plan || next.state === 'empty') return;
  throw new UserError(
    'plan-changed',
    `the plan is now ${next.digest}, not ${input.plan}; nothing was changed`,
    `look at it: firstlight plan ${file.file}`,
  );
}

/** An id that no step has allows nothing: it is misspelled, or what it meant has ended or changed since. */
function tellStrangeConsent({ recorder, input }: BringUp, { phases, state }: Plan): void {
  const asks = phases.flatMap(({ steps }) => steps).filter((step) => step.needsConsent);
  const strange = input.consent.filter((id) => !asks.some((step) => step.id === id));
  if (strange.length === 0 || state === 'empty') return;
  const have = asks.length === 0 ? 'no step asks for any' : `those are ${list(asks.map(({ id }) => id))}`;
  recorder.emit({
    type: 'note',
    level: 'warning',
    node: undefined,
    text: `--consent ${strange.join(',')} allows nothing: no step of this plan has that id; ${have}`,
  });
}

/** Stops ranks of ours that are in the way, and waits for their memory; false where there are none. */
async function stopStrays({ world, recorder, file, input }: BringUp, facts: readonly NodeFacts[]) {
  const strays = strayRanks(facts, {
    recipe: file.recipe.recipe,
    recipeDigest: file.digest,
    replace: input.replace,
  });
  if (strays.length === 0) return false;
  await stopRanks(world, recorder, strays, 'it is half of a job of ours that does not run');
  await awaitMemory(world, recorder, memoryTargets(strays, facts));
  return true;
}

/** All ranks run: they are followed until they serve. */
async function follow(up: BringUp, before: Progress, next: Plan, facts: readonly NodeFacts[]): Promise<Move> {
  const services = next.phases.flatMap((phase) => phase.services);
  const progress = { ...before, attempt: before.attempt + 1 };
  announceRanks(up, progress.attempt, services, true);
  const served = !before.worked && servedAlready(services, facts);
  const move = await prove(up, progress, { plan: next, services, facts, served });
  return move.kind === 'ended' ? move : again({ ...move.progress, worked: true });
}

/** Carries out the first phase that has anything to do; a launch is followed until it serves. */
async function work(up: BringUp, before: Progress, next: Plan, facts: readonly NodeFacts[]): Promise<Move> {
  const phase = next.phases.find((one) => one.steps.length + one.services.length > 0);
  if (phase === undefined) throw new Error('a plan with work has no phase with work');
  if (phase.kind !== 'launch') return clear(up, before, { phase, plan: next, facts });
  for (const step of phase.steps) await applyStep(up.world, up.recorder, step);
  if (before.attempt >= MOST_ATTEMPTS)
    return ended(
      notServing(
        `it was launched ${MOST_ATTEMPTS} times; each failed start costs memory, so this run stops here`,
      ),
    );
  const progress = { ...before, attempt: before.attempt + 1 };
  const unstarted = await launch(up, progress.attempt, phase.services, next.recipe);
  if (unstarted !== undefined) return ended(unstarted);
  return prove(up, progress, { plan: next, services: phase.services, facts, served: false });
}

/** Whether each of these ranks was seen to answer before, as its node remembers. */
function servedAlready(services: readonly Service[], facts: readonly NodeFacts[]): boolean {
  const ranks = allRanks(facts);
  return services.every(({ name }) =>
    ranks.some(({ record }) => record.name === name && record.servingSince !== undefined),
  );
}
