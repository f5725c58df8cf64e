import { diagnose } from '../diagnosis/diagnose.ts';
import { proved, treat } from '../diagnosis/treat.ts';
import type { Node } from '../domain/cluster.ts';
import type { Outcome } from '../domain/event.ts';
import type { Evidence } from '../domain/evidence.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import { type Finding, STAGES, type Treatment } from '../domain/finding.ts';
import type { Blocker, Phase, Plan, Service, Step } from '../domain/plan.ts';
import { type EngineName, editRecipe, type RecipeEdit, type RecipeFile } from '../domain/recipe.ts';
import { sentences } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { engines } from '../knowledge/engines/index.ts';
import { plan, runningEdits, strayRanks } from '../planning/plan.ts';
import { markServing, startRank } from '../remote/rank-runner.ts';
import { applyStep } from './apply.ts';
import { consentTo } from './consent.ts';
import { followAttempt } from './follow.ts';
import { look } from './look.ts';
import { awaitMemory, memoryTargets } from './memory-back.ts';
import { networkInUse } from './network-in-use.ts';
import type { Recorder } from './recorder.ts';
import { stopRanks } from './stop-ranks.ts';
import { verify } from './verify.ts';
import type { World } from './world.ts';

export type UpInput = {
  readonly consent: readonly string[];
  readonly plan: string | undefined;
  readonly replace: boolean;
  readonly wait: boolean;
};

export type End = { readonly outcome: Outcome; readonly why: string; readonly exit: 0 | 1 | 2 };

type Tried = { readonly engine: EngineName; readonly remedy: string; readonly cause: string };
type Pending = { readonly finding: Finding; readonly treatment: Treatment; readonly attempt: number };

/** Turns of the loop; a run that needs more is going round in a circle, and says so. */
const MOST_TURNS = 40;
/** Launches per run: on unified memory each failed start leaks (facts/spark.md §3). */
const MOST_ATTEMPTS = 8;

/**
 * The loop: look, plan, carry out the first phase, look again, until the plan is empty and the model answers.
 * A failure is diagnosed from its evidence; a remedy edits what is wanted, and the same loop goes on.
 */
export async function bringUp(
  world: World,
  recorder: Recorder,
  file: RecipeFile,
  nodes: readonly Node[],
  input: UpInput,
): Promise<End> {
  let engine: EngineName = file.recipe.engines[0] ?? 'sglang';
  let left = file.recipe.engines.slice(1);
  let edits: readonly RecipeEdit[] = [];
  let attempt = 0;
  let pending: Pending | undefined;
  let worked = false;
  const tried: Tried[] = [];
  const stopped = new Map<string, number>();
  const rootless = new Set<string>();

  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    world.signal.throwIfAborted();
    const facts = await lookNow();
    const unreached = facts.find((node) => !node.reached);
    if (unreached && !unreached.reached) return unreachable(unreached);

    const running = runningEdits(facts, file.digest);
    if (running !== undefined && attempt === 0) {
      edits = running.edits;
      engine = running.engine;
      left = file.recipe.engines.filter(
        (other) => file.recipe.engines.indexOf(other) > file.recipe.engines.indexOf(engine),
      );
    }
    const next = planNow(facts);
    recorder.emit({ type: 'planned', attempt: attempt + 1, plan: next });
    if (turn === 0 && input.plan !== undefined && next.digest !== input.plan && next.state !== 'empty') {
      throw new UserError(
        'plan-changed',
        `the plan is now ${next.digest}, not ${input.plan}; nothing was changed`,
        `look at it: firstlight plan ${file.file}`,
      );
    }
    const stray = strayRanks(facts, {
      recipe: file.recipe.recipe,
      recipeDigest: file.digest,
      replace: input.replace,
    });
    if (stray.length > 0) {
      await stopRanks(world, recorder, stray, 'it is half of a job of ours that does not run');
      await awaitMemory(world, recorder, memoryTargets(stray, facts));
      worked = true;
      continue;
    }
    if (next.state === 'blocked') {
      const end = await blocked(next.blockers);
      if (end !== undefined) return end;
      continue;
    }
    if (next.state === 'empty') {
      const services = allServices(next);
      attempt += 1;
      announce(services, true);
      const done = !worked && servedAlready(services, facts);
      const end = await followAndProve(next, services, facts, done ? 'nothing-to-do' : undefined);
      if (end !== undefined) return end;
      worked = true;
      continue;
    }
    const phase = next.phases.find((candidate) => candidate.steps.length + candidate.services.length > 0);
    if (phase === undefined) throw new Error('a plan with work has no phase with work');
    worked = true;
    if (phase.kind !== 'launch') {
      const end = await clear(phase, next, facts);
      if (end !== undefined) return end;
      continue;
    }
    for (const step of phase.steps) await applyStep(world, recorder, step);
    if (attempt >= MOST_ATTEMPTS)
      return notServing(
        `it was launched ${MOST_ATTEMPTS} times; each failed start costs memory, so this run stops here`,
      );
    attempt += 1;
    const started = await launch(phase.services);
    if (started !== undefined) return started;
    const end = await followAndProve(next, phase.services, facts, undefined);
    if (end !== undefined) return end;
  }
  return notServing(`nothing settled in ${MOST_TURNS} looks; something undoes what the steps do`);

  async function lookNow(): Promise<readonly NodeFacts[]> {
    const started = world.clock.now();
    const facts = await look(world, nodes, editRecipe(file.recipe, edits));
    recorder.emit({ type: 'looked', attempt: attempt + 1, milliseconds: world.clock.now() - started, facts });
    return facts;
  }

  function planNow(facts: readonly NodeFacts[]): Plan {
    return plan({
      cluster: world.cluster,
      nodes,
      recipe: editRecipe(file.recipe, edits),
      recipeDigest: file.digest,
      edits,
      engine,
      facts,
      sudo: Object.fromEntries(nodes.map((node) => [node.name, !rootless.has(node.name)])),
      replace: input.replace,
    });
  }

  function unreachable(facts: Extract<NodeFacts, { reached: false }>): End {
    const { failure } = facts;
    finding({
      cause: sshCause(failure.why),
      node: facts.node,
      title: failure.sentence,
      why: failure.text.trim().split('\n').slice(-2).join(' '),
      advice: [failure.remedy],
    });
    if (failure.why === 'host-key-unknown' || failure.why === 'host-key-changed') {
      const key = failure.hostKey ? ` (${failure.hostKey.type} ${failure.hostKey.fingerprint})` : '';
      throw new UserError(failure.why, `${failure.sentence}${key}`, failure.remedy);
    }
    return { outcome: 'not-serving', why: sentences(failure.sentence, failure.remedy), exit: 1 };
  }

  /** A finding that rests on facts, not on logs. */
  function finding(said: {
    cause: string;
    node: string | undefined;
    title: string;
    why: string;
    advice: readonly string[];
  }): void {
    const rank = nodes.findIndex((node) => node.name === said.node);
    recorder.emit({
      type: 'finding',
      attempt: attempt + 1,
      ...said,
      rank: rank === -1 ? undefined : rank,
      role: rank === -1 ? undefined : rank === 0 ? 'head' : 'worker',
      stage: undefined,
      final: true,
      confidence: 1,
      quotes: [],
      consequences: [],
      values: {},
    });
  }

  async function blocked(blockers: readonly Blocker[]): Promise<End | undefined> {
    for (const blocker of blockers) {
      finding({
        cause: blocker.cause,
        node: blocker.node,
        title: blocker.title,
        why: '',
        advice: blocker.advice,
      });
    }
    const first = blockers[0];
    if (first === undefined) throw new Error('a blocked plan has no blocker');
    // What lies with one engine's image or program does not lie with the next one's.
    const engineOnly = blockers.every((blocker) => blocker.engineOnly === true);
    if (engineOnly && changeEngine(first.title)) return undefined;
    if (first.cause === 'needs-replace')
      throw new UserError('needs-replace', first.title, first.advice[0] ?? 'firstlight up --replace');
    return {
      outcome: 'not-serving',
      why: sentences(first.title, first.advice[0]),
      exit: first.userError ? 2 : 1,
    };
  }

  function changeEngine(why: string): boolean {
    const to = left[0];
    if (to === undefined) return false;
    recorder.emit({ type: 'engine-changed', from: engine, to, why });
    engine = to;
    left = left.slice(1);
    return true;
  }

  async function clear(phase: Phase, next: Plan, facts: readonly NodeFacts[]): Promise<End | undefined> {
    const came = phase.steps.find(
      (step) => step.target !== undefined && (stopped.get(holderKey(step)) ?? 0) >= 2,
    );
    if (came?.target) {
      const title = `${came.target.name} on ${came.node} came back each time it was stopped`;
      finding({
        cause: 'leftover-process-holds-gpu-memory',
        node: came.node,
        title,
        why: 'Something starts it again, and that something was not seen.',
        advice: [`find what starts it: on ${came.node}, systemctl status ${came.target.pid}`],
      });
      return notServing(title);
    }
    const consent = await consentTo(world, recorder, {
      phase,
      next,
      facts,
      given: input.consent,
      wait: input.wait,
    });
    if (consent !== undefined) return consent;
    const root = await rootFor(phase, facts);
    if (root === 'again') return undefined;
    if (root !== undefined) return root;
    for (const step of phase.steps) {
      world.signal.throwIfAborted();
      const applied = await applyStep(world, recorder, step);
      if (applied.result === 'done' && step.target)
        stopped.set(holderKey(step), (stopped.get(holderKey(step)) ?? 0) + 1);
      if (applied.result === 'failed' && step.optional !== true) {
        if (step.kind === 'await-memory') break; // the next look says who holds it now
        if (applied.refused)
          return {
            outcome: 'consent-needed',
            why: `${step.title} on ${step.node} needs root, and sudo did not let it: ${applied.text}`,
            exit: 2,
          };
        finding({
          cause:
            step.kind === 'drop-cache'
              ? 'page-cache-hides-unified-memory'
              : 'leftover-process-holds-gpu-memory',
          node: step.node,
          title: `${step.title} on ${step.node} did not work`,
          why: applied.text,
          advice: [`look at it there: ${applied.text}`],
        });
        return notServing(`${step.title} on ${step.node} did not work: ${applied.text}`);
      }
      if (applied.result === 'failed' && step.optional === true) {
        // Told, and not proposed again: the next plan does without.
        rootless.add(step.node);
        continue;
      }
      if (applied.result !== 'done') break; // something changed under us: look again
    }
    return undefined;
  }

  /** Whether root can be had where this phase needs it: the password is asked for here, once. */
  async function rootFor(phase: Phase, facts: readonly NodeFacts[]): Promise<End | 'again' | undefined> {
    let again = false;
    for (const node of new Set(phase.steps.filter((step) => needsRoot(step)).map((step) => step.node))) {
      const seen = facts.find((candidate) => candidate.node === node);
      const how = seen?.reached && seen.sudo.known ? seen.sudo.value : 'none';
      if (how === 'free' || (how === 'password' && (await world.secrets.sudoPassword(node)) !== undefined))
        continue;
      const must = phase.steps.filter(
        (step) => step.node === node && needsRoot(step) && step.optional !== true,
      );
      if (must.length > 0) {
        const what = must.map((step) => step.title).join(', ');
        const why =
          how === 'none'
            ? `${what} on ${node} needs root, and sudo does not let this user have it`
            : `${what} on ${node} needs sudo's password; give it on a terminal, or with --sudo-password-file ${node}=FILE`;
        return { outcome: 'consent-needed', why, exit: 2 };
      }
      rootless.add(node);
      again = true;
    }
    return again ? 'again' : undefined;
  }

  function announce(services: readonly Service[], followed: boolean): void {
    for (const service of services) {
      recorder.emit({
        type: 'rank-started',
        attempt,
        node: service.node,
        rank: service.rank,
        role: service.role,
        engine: service.engine,
        name: service.name,
        log: world.journal.logFile(recorder.run, attempt, service.rank),
        followed,
        limits: Object.fromEntries(
          STAGES.map((stage) => [stage, engines[service.engine].stallSeconds(stage)]),
        ),
      });
    }
  }

  async function launch(services: readonly Service[]): Promise<End | undefined> {
    world.signal.throwIfAborted();
    // From here Ctrl-C detaches: all ranks are started or none.
    const whole = new AbortController().signal;
    for (const service of services.filter((one) => one.running !== true)) {
      const started = world.clock.now();
      const step = {
        id: service.name,
        node: service.node,
        title: `start rank ${service.rank}, ${service.engine}`,
        kind: 'start-rank',
      };
      recorder.emit({ type: 'step-started', ...step, phase: 'launch', undo: 'command' });
      const ran = await startRank(
        world.hosts.of(service.node),
        service,
        { run: recorder.run, attempt, startedAt: new Date(started).toISOString() },
        { signal: whole },
      );
      const text =
        ran.kind === 'ran'
          ? ran.code === 0
            ? ran.stdout.trim()
            : `${ran.stderr} ${ran.stdout}`.trim()
          : ran.kind === 'lost'
            ? ran.failure.sentence
            : ran.kind === 'refused'
              ? ran.text
              : `no end after ${ran.seconds} s`;
      const fine = ran.kind === 'ran' && ran.code === 0;
      recorder.emit({
        type: 'step-ended',
        ...step,
        result: fine ? 'done' : ran.kind === 'lost' ? 'lost' : 'failed',
        text,
        milliseconds: world.clock.now() - started,
      });
      if (!fine) {
        await stopAll(services, 'another rank could not be started');
        finding({
          cause: 'unknown',
          node: service.node,
          title: `Rank ${service.rank} could not be started on ${service.node}`,
          why: text,
          advice: [`look at it there: ${text}`],
        });
        return notServing(`rank ${service.rank} could not be started on ${service.node}: ${text}`);
      }
    }
    announce(services, false);
    return undefined;
  }

  async function followAndProve(
    next: Plan,
    services: readonly Service[],
    facts: readonly NodeFacts[],
    quietOutcome: 'nothing-to-do' | undefined,
  ): Promise<End | undefined> {
    const end = await followAttempt(
      world,
      recorder,
      { attempt, engine: next.engine, recipe: next.recipe, services, before: facts },
      judge,
    );
    if (end.kind === 'detached')
      return {
        outcome: 'cancelled',
        why: 'left while the ranks run on; firstlight up takes it up again, firstlight down stops them',
        exit: 1,
      };
    if (end.kind === 'node-lost') {
      finding({
        cause: 'unknown',
        node: end.node,
        title: `${end.node} does not answer any more`,
        why: end.sentence,
        advice: [`see whether ${end.node} is up; then firstlight up goes on from what runs`],
      });
      return notServing(end.sentence);
    }
    if (end.kind === 'failed') return failedAttempt(services, end.evidence);
    const head = services.find((service) => service.rank === 0);
    if (head === undefined) throw new Error('a job without a head');
    const proof = await verify(world, next.recipe, head);
    if (proof.kind === 'failed') {
      finding({
        cause:
          proof.step === 'answer' && proof.why.includes('empty') ? 'reasoning-consumes-output' : 'unknown',
        node: head.node,
        title: `The model on ${head.node} does not answer as it should: ${proof.why}`,
        why: proof.text,
        advice: ['firstlight chat "…" asks it by hand', 'the ranks run on; firstlight down stops them'],
      });
      return notServing(proof.why);
    }
    judge(end.evidence);
    if (pending !== undefined) tell('remedy-proved', pending, 'it serves');
    pending = undefined;
    const network = networkInUse(end.evidence, facts);
    recorder.emit({
      type: 'serving',
      model: next.recipe.model,
      engine: next.engine,
      head: head.node,
      port: head.healthPort ?? next.recipe.serve.port,
      listen: next.recipe.serve.listen,
      network: network.kind,
      networkText: network.text,
      answer: proof.chat.answer,
      reasoning: proof.chat.reasoning,
      edits,
    });
    if (network.warning !== undefined)
      recorder.emit({ type: 'note', level: 'warning', node: undefined, text: network.warning });
    if (proof.speed.firstTokenSeconds !== undefined && proof.speed.tokensPerSecond !== undefined) {
      recorder.emit({
        type: 'measured',
        firstTokenSeconds: proof.speed.firstTokenSeconds,
        tokensPerSecond: proof.speed.tokensPerSecond,
        promptTokens: proof.speed.promptTokens ?? 0,
        outputTokens: proof.speed.outputTokens ?? 0,
        streams: 1,
      });
    } else
      recorder.emit({
        type: 'note',
        level: 'warning',
        node: head.node,
        text: 'the server sent no usage, so its speed is unknown',
      });
    const since = new Date(world.clock.now()).toISOString();
    if (quietOutcome === undefined)
      await Promise.all(
        services.map((service) =>
          markServing(world.hosts.of(service.node), service.name, since, { signal: world.signal }),
        ),
      );
    return quietOutcome === undefined
      ? { outcome: 'serving', why: `${next.recipe.recipe} answers on ${head.node}`, exit: 0 }
      : {
          outcome: 'nothing-to-do',
          why: `${next.recipe.recipe} serves already on ${head.node}, and answers`,
          exit: 0,
        };
  }

  /** Called whenever a rank moved on: a remedy is proved when its stage is passed without its evidence. */
  function judge(evidence: Evidence): void {
    if (pending === undefined || pending.attempt >= attempt) return;
    const verdict = proved(pending, evidence);
    if (verdict === 'proved') {
      tell('remedy-proved', pending, `past ${pending.finding.stage ?? 'the launch'} this time`);
      pending = undefined;
    }
  }

  function tell(
    type: 'remedy-applied' | 'remedy-proved' | 'remedy-failed',
    what: Pending,
    why: string,
  ): void {
    const { remedy, cause, node, title, edits: changes } = what.treatment;
    recorder.emit({ type, attempt: what.attempt, cause, node, remedy, title, edits: changes, why });
  }

  async function failedAttempt(services: readonly Service[], evidence: Evidence): Promise<End | undefined> {
    const after = await look(world, nodes, evidence.recipe);
    const whole: Evidence = { ...evidence, after };
    const found = diagnose(whole, { final: true });
    recorder.emit({ type: 'finding', attempt, ...found });
    await stopAll(services, 'one rank ended, so all are stopped');
    await awaitMemory(world, recorder, memoryTargets(services, evidence.before, after));
    if (pending !== undefined) {
      const same = found.cause === pending.finding.cause;
      tell(
        'remedy-failed',
        pending,
        same ? 'the same cause again' : `it did not get past ${pending.finding.stage ?? 'the launch'}`,
      );
      // A remedy that did not help is taken back, so that it does not colour what comes next.
      const useless = pending.treatment.edits;
      edits = edits.filter((edit) => !useless.includes(edit));
      pending = undefined;
    }
    const recipe = editRecipe(file.recipe, edits);
    const treatment = treat({ recipe, finding: found, facts: after, evidence: whole, tried, engine });
    if (treatment !== undefined) {
      tried.push({ engine, remedy: treatment.remedy, cause: treatment.cause });
      edits = [...edits, ...treatment.edits];
      pending = { finding: found, treatment, attempt };
      tell('remedy-applied', pending, found.title);
      return undefined;
    }
    if (changeEngine(`${engine} has no remedy left: ${found.title}`)) return undefined;
    return notServing(sentences(found.title, found.advice[0]));
  }

  /** All ranks are one unit: what still runs of this attempt is stopped, and told to have been asked to. */
  async function stopAll(services: readonly Service[], why: string): Promise<void> {
    const fine = await stopRanks(world, recorder, services, why);
    if (!fine) return;
    const over = recorder.state().attempts.find((one) => one.attempt === attempt)?.ranks ?? [];
    for (const rank of over.filter((one) => one.ended === undefined)) {
      recorder.emit({
        type: 'rank-ended',
        attempt,
        node: rank.node,
        rank: rank.rank,
        code: undefined,
        requested: true,
      });
    }
  }

  function notServing(why: string): End {
    return { outcome: 'not-serving', why, exit: 1 };
  }
}

/** Every service of a plan, worker first, head last. */
function allServices(next: Plan): readonly Service[] {
  return next.phases.flatMap((phase) => phase.services);
}

/** Whether each of these ranks was seen to answer before, as its node remembers. */
function servedAlready(services: readonly Service[], facts: readonly NodeFacts[]): boolean {
  const records = facts.flatMap((node) => (node.reached ? (valueIf(node.ranks) ?? []) : []));
  return services.every((service) =>
    records.some((record) => record.name === service.name && record.servingSince !== undefined),
  );
}

function holderKey(step: Step): string {
  return `${step.node} ${step.kind} ${step.target?.name}`;
}

function needsRoot(step: Step): boolean {
  return step.command.sudo === true;
}

/** The closed list's word for a connection that failed. */
function sshCause(why: string): string {
  switch (why) {
    case 'key-refused':
    case 'passphrase-needed':
      return 'ssh-key-not-available';
    case 'host-key-unknown':
      return 'ssh-host-key-unknown';
    case 'host-key-changed':
      return 'ssh-host-key-changed';
    case 'too-many-connections':
      return 'ssh-server-limits-connections';
    case 'jump-may-not-forward':
      return 'ssh-jump-forwarding-disabled';
    case 'timeout-banner':
      return 'unified-memory-exhausted-host-freeze';
    default:
      return 'ssh-wrong-address';
  }
}
