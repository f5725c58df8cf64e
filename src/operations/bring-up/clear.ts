import { type NodeFacts, valueIf } from '../../domain/facts.ts';
import type { Phase, Plan, Step } from '../../domain/plan.ts';
import { list } from '../../domain/units.ts';
import { makeRoom, saysFullDisk } from '../../knowledge/full-disk.ts';
import { type Applied, applyStep } from '../apply.ts';
import { consentTo } from '../consent.ts';
import { look } from '../look.ts';
import { haveRoot } from './have-root.ts';
import { again, type BringUp, ended, type Move, notServing, type Progress } from './progress.ts';
import { tellFinding } from './tell-finding.ts';
import { unreached } from './unreached.ts';

/** Stopped this often and there again: stopping it once more would change nothing. */
const MOST_STOPS = 2;

/** Carries out a phase of steps, with consent and root; whatever came out otherwise is for the next look to see. */
export async function clear(
  up: BringUp,
  before: Progress,
  {
    phase,
    plan,
    facts,
  }: { readonly phase: Phase; readonly plan: Plan; readonly facts: readonly NodeFacts[] },
): Promise<Move> {
  const { world, recorder, input, file } = up;
  const back = phase.steps.find((step) => (before.stopped.get(keyOf(step)) ?? 0) >= MOST_STOPS);
  if (back?.target !== undefined) return cameBack(up, before, back, back.target, facts);
  const { consent, wait } = input;
  const unallowed = await consentTo(world, recorder, {
    phase,
    next: plan,
    facts,
    given: consent,
    wait,
    file: file.file,
  });
  if (unallowed !== undefined) return ended(unallowed);
  const rootless = await haveRoot(up, before, phase, facts);
  if (rootless !== undefined) return rootless;

  let progress = before;
  for (const step of phase.steps) {
    world.signal.throwIfAborted();
    const applied = await applyStep(world, recorder, step, () => thereAgain(up, progress, step.node, facts));
    if (step.kind === 'drop-cache' && step.command.sudo !== true)
      progress = { ...progress, evicted: new Set([...progress.evicted, step.node]) };
    if (applied.result === 'done') {
      if (step.target) progress = countStop(progress, step);
    } else if (applied.result !== 'failed')
      break; // it changed under us, or its node is lost
    else if (step.optional === true) {
      // Told, and not proposed again: the next plan does without.
      if (step.command.sudo === true)
        progress = { ...progress, rootless: new Set([...progress.rootless, step.node]) };
    } else if (step.kind === 'await-memory') {
      progress = { ...progress, short: new Map([...progress.short, [step.node, applied.text]]) };
      break; // the next look says who holds it now
    } else return await failed(up, progress, step, applied);
  }
  return again(progress);
}

/** Why waiting for memory is of no use: something that was stopped here holds it again under another identity. */
async function thereAgain(
  { world }: BringUp,
  { stopped }: Progress,
  node: string,
  before: readonly NodeFacts[],
): Promise<string | undefined> {
  const place = world.cluster.nodes.find(({ name }) => name === node);
  if (place === undefined || stopped.size === 0) return undefined;
  const [now] = await look(world, [place], undefined);
  const old = before.find((facts) => facts.node === node);
  const known = new Set(old?.reached ? (valueIf(old.holders) ?? []).map(({ identity }) => identity) : []);
  const back = now?.reached
    ? (valueIf(now.holders) ?? []).find(
        ({ name, identity }) =>
          !known.has(identity) &&
          [...stopped.keys()].some((key) => key.startsWith(`${node} `) && key.endsWith(` ${name}`)),
      )
    : undefined;
  return back === undefined ? undefined : `${back.name} is there again, pid ${back.pid}`;
}

/** Holders are counted by name, not identity: a restart policy brings the same one back under another id. */
function keyOf(step: Step): string {
  return `${step.node} ${step.kind} ${step.target?.name}`;
}

function countStop(progress: Progress, step: Step): Progress {
  const times = (progress.stopped.get(keyOf(step)) ?? 0) + 1;
  return { ...progress, stopped: new Map([...progress.stopped, [keyOf(step), times]]) };
}

function cameBack(
  up: BringUp,
  progress: Progress,
  { node }: Step,
  target: NonNullable<Step['target']>,
  facts: readonly NodeFacts[],
): Move {
  const title = `${target.name} on ${node} came back each time it was stopped`;
  const seen = facts.find((one) => one.node === node);
  const holder = seen?.reached
    ? (valueIf(seen.holders) ?? []).find(({ identity }) => identity === target.identity)
    : undefined;
  const returns = holder?.returns ?? [];
  tellFinding(up, progress.attempt + 1, {
    cause: 'leftover-process-holds-gpu-memory',
    node,
    title,
    why:
      returns.length === 0
        ? 'Something starts it again, and that something was not seen.'
        : `It is started again by ${list(returns.map(({ what }) => what))}.`,
    advice:
      returns.length === 0
        ? [
            `find what starts it: on ${node}, ps -o pid,ppid,lstart,args -p ${target.pid}; then its parent, cron, and scripts of ${target.user}`,
          ]
        : returns.map(({ keepAway }) => `to keep it away, on ${node}: ${keepAway}`),
  });
  return ended(notServing(title));
}

async function failed(up: BringUp, progress: Progress, step: Step, applied: Applied): Promise<Move> {
  if (applied.refused) {
    const why = `${step.title} on ${step.node} needs root, and sudo did not let it: ${applied.text}`;
    return ended({ outcome: 'consent-needed', why, exit: 2 });
  }
  const place = up.nodes.filter(({ name }) => name === step.node);
  const [now] = await look(up.world, place, undefined);
  if (now?.reached === false) return ended(unreached(up, progress, now));
  const title = `${step.title} on ${step.node} did not work`;
  const full = saysFullDisk(applied.text);
  const holds =
    step.kind === 'drop-cache' ? 'page-cache-hides-unified-memory' : 'leftover-process-holds-gpu-memory';
  tellFinding(up, progress.attempt + 1, {
    cause: full ? 'disk-full' : holds,
    node: step.node,
    title,
    why: applied.text,
    advice: [full ? makeRoom(step.node) : `look at it there: ${applied.text}`],
  });
  return ended(notServing(`${title}: ${applied.text}`));
}
