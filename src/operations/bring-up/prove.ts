import { hostAway, lostHost } from '../../diagnosis/host-away.ts';
import { linkDown } from '../../diagnosis/link-down.ts';
import { restarted } from '../../diagnosis/restarted.ts';
import { treat as chooseRemedy, proved } from '../../diagnosis/treat.ts';
import type { Evidence } from '../../domain/evidence.ts';
import type { NodeFacts } from '../../domain/facts.ts';
import type { Finding } from '../../domain/finding.ts';
import type { Plan, Service } from '../../domain/plan.ts';
import { sentences } from '../../domain/units.ts';
import { markServing } from '../../remote/rank-runner.ts';
import { followAttempt } from '../follow.ts';
import type { RunEnd } from '../in-run.ts';
import { look } from '../look.ts';
import { measureMemory } from '../measure-memory.ts';
import { networkInUse } from '../network-in-use.ts';
import { namesToolParser } from '../offer-tool.ts';
import { type Verified, verify } from '../verify.ts';
import { cure } from './cure.ts';
import { type Misread, misreadAnswer } from './misread-answer.ts';
import { type BringUp, ended, type Move, notServing, type Progress } from './progress.ts';
import { tellFinding } from './tell-finding.ts';
import { tellRemedy } from './tell-remedy.ts';

export type Launched = {
  readonly plan: Plan;
  readonly services: readonly Service[];
  /** What the look before the launch saw. */
  readonly facts: readonly NodeFacts[];
  /** They were seen to answer before this run came, which has done nothing. */
  readonly served: boolean;
};

/** Follows the ranks until they serve, and has the model answer; an attempt that fails goes to the cure. */
export async function prove(up: BringUp, progress: Progress, launched: Launched): Promise<Move> {
  const { world, recorder } = up;
  const { attempt } = progress;
  const { plan, services, facts } = launched;
  let { pending } = progress;
  const head = services.find((service) => service.rank === 0);
  if (head === undefined) throw new Error('a job without a head');
  // Calls of tools are tried where somebody named a parser, and where a remedy is to be proved by one.
  const tools =
    namesToolParser(plan.recipe, plan.engine) || pending?.finding.cause.startsWith('tool-parser') === true;
  const followed = await followAttempt(
    world,
    recorder,
    {
      attempt,
      engine: plan.engine,
      recipe: plan.recipe,
      services,
      before: facts,
      verify: () => verify(world, plan.recipe, head, tools),
    },
    judge,
  );
  if (followed.kind === 'detached') {
    const why = 'left while the ranks run on; firstlight up takes it up again, firstlight down stops them';
    return ended({ outcome: 'cancelled', why, exit: 1 });
  }
  if (followed.kind === 'node-lost') {
    const { node, failure, evidence } = followed;
    return ended(gone(up, attempt, lostHost(evidence, { node, failure }, true)));
  }
  if (followed.kind === 'failed' || followed.kind === 'serving')
    measureMemory(recorder, attempt, followed.evidence, followed.kind === 'serving');
  if (followed.kind === 'failed') return cure(up, { ...progress, pending }, services, followed.evidence);

  const { proof } = followed;
  if (proof.kind === 'failed') {
    const after = await look(world, up.nodes, plan.recipe);
    const seen = { ...followed.evidence, after };
    const lost = restarted(seen, true) ?? hostAway(seen, true) ?? linkDown(seen, true);
    const misread = lost === undefined ? misreadAnswer(followed.evidence, proof) : undefined;
    const cured = misread === undefined ? undefined : await cureMisread(misread);
    if (cured !== undefined) return cured;
    const found = lost ?? misread?.finding;
    return ended(found === undefined ? unanswered(up, attempt, head.node, proof) : gone(up, attempt, found));
  }
  const misread = misreadAnswer(followed.evidence, proof);
  const cured = misread === undefined ? undefined : await cureMisread(misread);
  if (cured !== undefined) return cured;
  if (misread !== undefined) tellMisread(misread.finding);
  judge(followed.evidence);
  if (pending !== undefined) tellRemedy(recorder, 'remedy-proved', pending, 'it serves');
  tellServing(up, progress, launched, { head, proof, evidence: followed.evidence });
  const { recipe } = plan.recipe;
  if (launched.served) {
    const why = `${recipe} serves already on ${head.node}, and answers`;
    return ended({ outcome: 'nothing-to-do', why, exit: 0 });
  }
  const since = new Date(world.clock.now()).toISOString();
  await Promise.all(
    services.map(({ node, name }) =>
      markServing(world.hosts.of(node), name, since, { signal: world.signal }),
    ),
  );
  return ended({ outcome: 'serving', why: `${recipe} answers on ${head.node}`, exit: 0 });

  /** Where something is left to be done about a parser; ranks that served before are left alone. */
  async function cureMisread({ evidence, finding }: Misread): Promise<Move | undefined> {
    const { treat = chooseRemedy } = up;
    const { engine, tried } = progress;
    const left = treat({ recipe: plan.recipe, finding, facts, evidence, tried, engine });
    return left === undefined || launched.served
      ? undefined
      : cure(up, { ...progress, pending }, services, evidence);
  }

  /** It answers, and a parser that nothing is left for does not fit. */
  function tellMisread({ cause, node, title, advice }: Finding): void {
    if (pending?.finding.cause === cause) {
      tellRemedy(recorder, 'remedy-failed', pending, 'the same cause again');
      pending = undefined;
    }
    recorder.emit({ type: 'note', level: 'warning', node, text: sentences(title, advice[0]) });
  }

  /** Called whenever a rank moved on: a remedy is proved when its stage is passed without its evidence. */
  function judge(evidence: Evidence): void {
    if (pending === undefined || pending.attempt >= attempt) return;
    if (proved(pending, evidence) !== 'proved') return;
    tellRemedy(recorder, 'remedy-proved', pending, `past ${pending.finding.stage ?? 'the launch'} this time`);
    pending = undefined;
  }
}

function gone({ recorder }: BringUp, attempt: number, finding: Finding): RunEnd {
  recorder.emit({ type: 'finding', attempt, ...finding });
  return notServing(sentences(sentences(finding.title, finding.why), finding.advice[0]));
}

function unanswered(
  up: BringUp,
  attempt: number,
  node: string,
  { step, why, text }: Extract<Verified, { kind: 'failed' }>,
): RunEnd {
  tellFinding(up, attempt, {
    cause: step === 'answer' && why.includes('empty') ? 'reasoning-consumes-output' : 'unknown',
    node,
    title: `The model on ${node} does not answer as it should: ${why}`,
    why: text,
    advice: ['firstlight chat "…" asks it by hand', 'the ranks run on; firstlight down stops them'],
  });
  return notServing(why);
}

function tellServing(
  { recorder }: BringUp,
  { edits }: Progress,
  { plan, facts }: Launched,
  seen: {
    readonly head: Service;
    readonly proof: Extract<Verified, { kind: 'proved' }>;
    readonly evidence: Evidence;
  },
): void {
  const { recipe, engine } = plan;
  const { head, proof } = seen;
  const network = networkInUse(seen.evidence, facts);
  recorder.emit({
    type: 'serving',
    model: recipe.model,
    engine,
    head: head.node,
    port: head.healthPort ?? recipe.serve.port,
    listen: recipe.serve.listen,
    network: network.kind,
    networkText: network.text,
    answer: proof.chat.answer,
    reasoning: proof.chat.reasoning,
    edits,
  });
  if (network.warning !== undefined)
    recorder.emit({ type: 'note', level: 'warning', node: undefined, text: network.warning });
  const { firstTokenSeconds, tokensPerSecond, promptTokens, outputTokens } = proof.speed;
  if (firstTokenSeconds === undefined || tokensPerSecond === undefined) {
    const text = 'the server sent no usage, so its speed is unknown';
    recorder.emit({ type: 'note', level: 'warning', node: head.node, text });
    return;
  }
  recorder.emit({
    type: 'measured',
    firstTokenSeconds,
    tokensPerSecond,
    promptTokens: promptTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    streams: 1,
  });
}
