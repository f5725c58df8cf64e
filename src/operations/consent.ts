import type { NodeFacts } from '../domain/facts.ts';
import type { Phase, Plan, Step } from '../domain/plan.ts';
import { ruleFor } from '../domain/policy.ts';
import { policyPath, readPolicy } from '../files/policy-file.ts';
import type { RunEnd } from './in-run.ts';
import type { Recorder } from './recorder.ts';
import type { World } from './world.ts';

export type ConsentQuestion = {
  readonly phase: Phase;
  readonly next: Plan;
  readonly facts: readonly NodeFacts[];
  /** Ids allowed on the command line. */
  readonly given: readonly string[];
  readonly wait: boolean;
  /** The recipe's file, for the command that allows them. */
  readonly file: string;
};

/**
 * Undefined when every step of the phase that stops foreign work is allowed by its very id; else how the run
 * ends. Whoever waits polls the journal, so that any face can answer; the first answer wins.
 */
export async function consentTo(
  world: World,
  recorder: Recorder,
  question: ConsentQuestion,
): Promise<RunEnd | undefined> {
  const asks = question.phase.steps.filter((step) => step.needsConsent);
  const open = () => asks.filter((step) => !recorder.state().consented.includes(step.id));
  const flagged = open().filter((step) => question.given.includes(step.id));
  if (flagged.length > 0) {
    recorder.emit({
      type: 'consent-given',
      steps: flagged.map((step) => step.id),
      refused: [],
      by: `${world.controller.user} ${world.face ?? 'on the command line'}`,
    });
  }
  takePolicy(world, recorder, open());
  if (open().length === 0) return undefined;
  const asked = recorder.emit({
    type: 'consent-asked',
    plan: question.next.digest,
    steps: open().flatMap(asAsked),
  });
  if (question.wait) {
    let from = asked.seq;
    while (open().length > 0) {
      const answers = world.journal
        .read(recorder.run, from)
        .filter((event) => event.type === 'consent-given');
      const answer = answers[0];
      if (answer?.type === 'consent-given') {
        from = answer.seq;
        recorder.take(answer);
        if (answer.refused.length > 0 || answer.steps.length === 0) break;
        continue;
      }
      await world.clock.wait(200, world.signal);
    }
  }
  const missing = open();
  if (missing.length === 0) return undefined;
  const names = missing.map((step) => `${step.id} (${step.title} on ${step.node})`).join(', ');
  const state = recorder.state();
  const refused = missing.some((step) => state.refused.includes(step.id));
  // What was allowed now is asked for again by the next run: its command names all.
  return {
    outcome: 'consent-needed',
    why: `${refused ? 'Consent was not given' : 'Consent is needed'} to ${names}. Nothing of these was stopped. Allow them: firstlight up ${quoted(question.file)} --consent ${asks.map((step) => step.id).join(',')}`,
    exit: 2,
  };
}

/** What the policy file says of a step, with the number and line of the rule. */
type Rule = { readonly rule: number; readonly line: number };

/**
 * What the owner's policy file allows of these steps, by their ids. This is the one place that reads it, for every
 * face: no face can allow a step by itself. Throws a UserError for a file that is not in order, whatever the steps.
 */
export function allowedBeforehand(world: World, steps: readonly Step[]): ReadonlyMap<string, Rule> {
  const nodes = world.cluster.nodes.map((node) => node.name);
  const read = readPolicy(world.clusterFile, nodes);
  const allowed = new Map<string, Rule>();
  if (read === undefined) return allowed;
  for (const step of steps) {
    const rule = ruleFor(read.policy, step);
    if (rule !== undefined) allowed.set(step.id, { rule, line: read.lines[rule - 1] ?? 0 });
  }
  return allowed;
}

/** What the policy allows needs no further answer; each rule is told once. */
function takePolicy(world: World, recorder: Recorder, open: readonly Step[]): void {
  if (open.length === 0) return;
  const byRule = new Map<string, readonly string[]>();
  for (const [id, { rule, line }] of allowedBeforehand(world, open)) {
    const by = `${policyPath(world.clusterFile)}, rule ${rule} (line ${line})`;
    byRule.set(by, [...(byRule.get(by) ?? []), id]);
  }
  for (const [by, steps] of byRule) recorder.emit({ type: 'consent-given', steps, refused: [], by });
}

/** A path as a shell takes it. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function asAsked(step: Step) {
  if (step.target === undefined) return [];
  return [
    {
      id: step.id,
      node: step.node,
      title: step.title,
      target: step.target,
      undo: step.undo,
      how: means(step),
    },
  ];
}

/** How the step stops it, as a person would do it by hand. */
function means(step: Step): string {
  switch (step.kind) {
    case 'stop-unit':
      return 'systemctl stop';
    case 'stop-container':
      return step.command.argv.includes('hold') ? 'restart policy to no, docker stop' : 'docker stop';
    case 'stop-process':
      return 'TERM, after 20 s KILL';
    default:
      return step.why;
  }
}

/** An answer, given by any face; the waiting run finds it in the journal. */
export function giveConsent(
  world: Pick<World, 'journal'>,
  run: string,
  answer: { readonly allowed: readonly string[]; readonly refused: readonly string[]; readonly by: string },
): void {
  world.journal.append(run, {
    type: 'consent-given',
    steps: answer.allowed,
    refused: answer.refused,
    by: answer.by,
  });
}
