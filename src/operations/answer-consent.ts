import type { Event } from '../domain/event.ts';
import { foldAll, type RunState } from '../domain/run-state.ts';
import { list, plural } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { giveConsent } from './consent.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { findRun } from './past-run.ts';

/**
 * `firstlight consent RUN ID…`: a person's answer to a run that waits for it, wherever that run works. Only ids that
 * this very question names are taken; the run finds the answer in the journal.
 */
export const consent: Operation<typeof inputs.consent> = {
  name: 'consent',
  summary: 'allow or refuse what a waiting run asks for',
  effect: 'destroys',
  input: inputs.consent,
  async run(input, world) {
    const { run, events } = findRun(world.journal, input.run);
    const state = foldAll(events);
    const asked = openQuestion(run, state, events);
    const ids = asked.steps.map((step) => step.id);
    if (input.plan !== undefined && input.plan !== asked.plan)
      throw new UserError(
        'plan-changed',
        `run ${run} asks about plan ${asked.plan} now, not ${input.plan}`,
        'look at what it asks for now, and answer that',
      );
    const strange = input.allow.filter((id) => !ids.includes(id));
    if (strange.length > 0)
      throw new UserError('bad-input', `run ${run} does not ask for ${list(strange)}`, asksFor(asked));
    if (input.allow.length === 0 && !input.refuse)
      throw new UserError('bad-input', 'nothing is named, so nothing is allowed', asksFor(asked));
    const allowed = ids.filter((id) => input.allow.includes(id));
    const rest = ids.filter((id) => !allowed.includes(id));
    const refused = input.refuse ? rest : [];
    const by = `${world.controller.user} ${world.face ?? 'on the command line'} on ${world.controller.host}`;
    giveConsent(world, run, { allowed, refused, by });
    const still = rest.length - refused.length;
    const said = [
      allowed.length > 0 ? `${plural(allowed.length, 'step')} of run ${run} allowed` : undefined,
      refused.length > 0 ? `${plural(refused.length, 'step')} of run ${run} refused` : undefined,
      still > 0 ? `${plural(still, 'step')} still asked` : undefined,
    ].filter((part) => part !== undefined);
    return { report: { kind: 'said', text: said.join(', ') }, exit: 0 };
  },
};

type Asked = Extract<Event, { type: 'consent-asked' }>;

/** The steps that the run still waits for. Throws a UserError where it waits for none. */
function openQuestion(run: string, state: RunState, events: readonly Event[]): Asked {
  if (state.ended !== undefined)
    throw new UserError(
      'bad-input',
      `run ${run} has ended: ${state.ended.outcome}`,
      'a new run asks again: firstlight up RECIPE --wait',
    );
  // An answer that allowed a part leaves the rest of the question open.
  const asked = events.findLast((event) => event.type === 'consent-asked');
  const done = new Set([...state.consented, ...state.refused]);
  const steps = asked?.type === 'consent-asked' ? asked.steps.filter((step) => !done.has(step.id)) : [];
  if (asked?.type !== 'consent-asked' || steps.length === 0) {
    const answer = events.findLast((event) => event.type === 'consent-given');
    throw new UserError(
      'bad-input',
      answer?.type === 'consent-given'
        ? `run ${run} was answered already, by ${answer.by}`
        : `run ${run} asks for nothing`,
      `firstlight show ${run} tells what it does`,
    );
  }
  return { ...asked, steps };
}

function asksFor(asked: Asked): string {
  const each = asked.steps.map((step) => `${step.id} (${step.title} on ${step.node})`);
  return `it asks for ${list(each)}`;
}
