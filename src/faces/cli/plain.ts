import type { Event } from '../../domain/event.ts';
import { guardWords } from '../../domain/guard-words.ts';
import { nowLine } from '../../domain/now-line.ts';
import type { RunState } from '../../domain/run-state.ts';
import { edit, lowerFirst, STAGE_WORDS } from '../../domain/run-words.ts';
import { brief, clock, duration, gib, plural, rate } from '../../domain/units.ts';

const TYPE_COLUMNS = 14;

/**
 * One event as a line without a line break: clock, type, text. `state` is the state before the event; undefined
 * where the event says nothing new to a reader (weights between two tenths).
 */
export function plainLine(event: Event, state: RunState): string | undefined {
  const text = textOf(event, state);
  if (text === undefined) return undefined;
  const line = `${clock(event.at)}  ${typeOf(event).padEnd(TYPE_COLUMNS)} ${text}`;
  return line.replace(/\s*\n\s*/g, ' ').trimEnd();
}

/** A line for when no event came for long: what is waited for still; undefined while nothing is or a question stands. */
export function signOfLife(state: RunState, now: number): string | undefined {
  if (state.startedAt === undefined || state.ended || state.asked) return undefined;
  const line = nowLine(state, now);
  const text = [line.sentence, line.next].filter((part) => part !== '').join('; ');
  return `${clock(new Date(now).toISOString())}  ${'still'.padEnd(TYPE_COLUMNS)} ${text}`;
}

/** A line for a host that is slow to answer, or gone: what happens meanwhile. */
export function quietLine(host: string, now: number): string {
  return `${clock(new Date(now).toISOString())}  ${'still'.padEnd(TYPE_COLUMNS)} ${host} says nothing; looking whether it is there`;
}

function typeOf(event: Event): string {
  switch (event.type) {
    case 'step-started':
    case 'step-ended':
      return 'step';
    case 'rank-started':
    case 'rank-stage':
    case 'rank-ended':
      return 'rank';
    case 'remedy-applied':
    case 'remedy-proved':
    case 'remedy-failed':
      return 'remedy';
    default:
      return event.type;
  }
}

function textOf(event: Event, state: RunState): string | undefined {
  switch (event.type) {
    case 'run-started':
      return `run ${event.run}: ${event.operation}${event.recipe === undefined ? '' : ` ${event.recipe}`} on ${event.cluster} (${event.nodes.join(', ')})`;
    case 'looked': {
      const unseen = event.facts.filter((facts) => !facts.reached).map((facts) => facts.node);
      const seen = `${plural(event.facts.length - unseen.length, 'node')} in ${brief(event.milliseconds)}`;
      return unseen.length > 0 ? `${seen}; not reached: ${unseen.join(', ')}` : seen;
    }
    case 'planned':
      return planned(event);
    case 'consent-asked':
      return event.steps
        .map((step) => `${step.id} ${lowerFirst(step.title)} on ${step.node} (${gib(step.target.bytes)})`)
        .join('; ');
    case 'consent-given':
      return consent(event);
    case 'step-started':
      return `${event.node}: ${lowerFirst(event.title)}`;
    case 'step-ended':
      return `${event.node}: ${lowerFirst(event.title)}: ${event.result} after ${duration(event.milliseconds)}${event.text && event.result !== 'done' ? `: ${event.text}` : ''}`;
    case 'rank-started':
      return `${rank(event)} ${event.followed ? 'runs already and is followed' : 'started'}, ${event.engine}, ${event.role}, attempt ${event.attempt}`;
    case 'rank-stage':
      return stage(event, state);
    case 'rank-ended':
      return `${rank(event)} ended${event.code === undefined ? '' : ` with ${event.code}`}${event.requested ? ', as asked' : ''}`;
    case 'memory-measured':
      return undefined;
    case 'guard':
      return guard(event, state);
    case 'finding': {
      const quote = event.quotes[0];
      const seen = quote ? ` | rank ${quote.rank} line ${quote.line}: ${quote.text.trim()}` : '';
      return `${event.final ? '' : 'provisional: '}${event.title} [${event.cause}]${seen}`;
    }
    case 'remedy-applied':
      return `applied, not yet proved: ${remedy(event)}`;
    case 'remedy-proved':
      return `proved: ${remedy(event)}`;
    case 'remedy-failed':
      return `no effect: ${remedy(event)}${event.why ? `: ${event.why}` : ''}`;
    case 'engine-changed':
      return `${event.from} → ${event.to}: ${event.why}`;
    case 'serving':
      return `${event.model} with ${event.engine} on ${event.head}, port ${event.port}; ${event.networkText}`;
    case 'measured':
      return `first token ${event.firstTokenSeconds.toFixed(2)} s, ${rate(event.tokensPerSecond)} tok/s, ${plural(event.streams, 'stream')}, ${event.outputTokens} tokens by usage`;
    case 'note':
      return `${event.level === 'warning' ? 'warning: ' : ''}${event.node ? `${event.node}: ` : ''}${event.text}`;
    case 'run-ended':
      return `${event.outcome}: ${event.why}${event.owed.length > 0 ? ` (${plural(event.owed.length, 'thing')} ${event.givesBack ? 'to give back next' : 'owed'})` : ''}`;
    default:
      return '';
  }
}

function planned(event: Extract<Event, { type: 'planned' }>): string {
  const { plan } = event;
  if (plan.state === 'blocked')
    return `${plan.digest}: in the way: ${plan.blockers.map((one) => one.title).join('; ')}`;
  if (plan.state === 'empty') return `${plan.digest}: nothing to do, the ranks run`;
  const steps = plan.phases.flatMap((phase) => phase.steps);
  const ranks = plan.phases.reduce((sum, phase) => sum + phase.services.length, 0);
  const asks = steps.filter((step) => step.needsConsent).length;
  const parts = [
    steps.length > 0 ? plural(steps.length, 'step') : '',
    asks > 0 ? `${asks} ${asks === 1 ? 'asks' : 'ask'} you` : '',
    ranks > 0 ? `${plural(ranks, 'rank')} with ${plan.engine}` : '',
  ];
  return `${plan.digest}: ${parts.filter((part) => part !== '').join(', ')}`;
}

function consent(event: Extract<Event, { type: 'consent-given' }>): string {
  const allowed = event.steps.length > 0 ? `allowed ${event.steps.join(', ')}` : 'allowed nothing';
  return `${allowed}${event.refused.length > 0 ? `, refused ${event.refused.join(', ')}` : ''}, by ${event.by}`;
}

function stage(event: Extract<Event, { type: 'rank-stage' }>, state: RunState): string | undefined {
  const before = state.attempts
    .find((attempt) => attempt.attempt === event.attempt)
    ?.ranks.find((other) => other.rank === event.rank);
  const same = before?.stage === event.stage;
  const words = STAGE_WORDS[event.stage];
  if (event.percent === undefined) return same ? undefined : `${rank(event)}: ${words}`;
  if (same && Math.floor(event.percent / 10) <= Math.floor((before.percent ?? -1) / 10)) return undefined;
  return `${rank(event)}: ${words} ${Math.floor(event.percent)} %`;
}

/** What it can do is told once; later only how low memory was. */
function guard(event: Extract<Event, { type: 'guard' }>, state: RunState): string {
  const before = state.attempts
    .find((attempt) => attempt.attempt === event.attempt)
    ?.ranks.find((other) => other.rank === event.rank)?.guard;
  const lowest = `lowest ${gib(event.guard.lowestBytes)} available`;
  return before?.state === event.guard.state
    ? `${rank(event)}: ${lowest}`
    : `${rank(event)}: ${guardWords(event.guard)}; ${lowest}`;
}

function rank(event: { readonly rank: number; readonly node: string }): string {
  return `${event.rank} on ${event.node}`;
}

function remedy(
  event: Extract<Event, { type: 'remedy-applied' | 'remedy-proved' | 'remedy-failed' }>,
): string {
  return event.edits.length > 0 ? event.edits.map(edit).join(', ') : event.title;
}
