import type { Outcome } from './event.ts';
import type { NodeFacts } from './facts.ts';
import type { Finding, Stage } from './finding.ts';
import { STAGES } from './finding.ts';
import type { Plan } from './plan.ts';
import type { AttemptState, RankState, RunState } from './run-state.ts';
import { edit, fitWords, lowerFirst, onEach, STAGE_WORDS, silence } from './run-words.ts';
import { clock, gib, list, plural, stopwatch } from './units.ts';

/** ✓ done, ◔ working, ◐ waits for a person, ! slow, ✕ failed, ? unknown, '' none of these. */
type NowGlyph = '✓' | '◔' | '◐' | '!' | '✕' | '?' | '';

/** The sentence that every face opens with; `next` says what is awaited and by when, or is empty. */
export type NowLine = { readonly glyph: NowGlyph; readonly sentence: string; readonly next: string };

/** Longest sentence, in characters. */
export const NOW_CHARACTERS = 70;

/** Says where a run stands, in one sentence of at most 70 characters. `now` is milliseconds since the epoch. */
export function nowLine(state: RunState, now: number): NowLine {
  const line = state.ended ? ended(state) : going(state, now);
  return { ...line, sentence: cut(line.sentence) };
}

/** Stands for the line of a run that a face could not read; `all` says where the runs are listed. */
export function unreadLine(run: string, all: string): NowLine {
  return say('?', cut(`Run ${run} cannot be shown`), `All runs: ${all}`);
}

function going(state: RunState, now: number): NowLine {
  const attempt = state.attempts.at(-1);
  const lost = state.facts.find((facts) => !facts.reached);
  if (state.startedAt === undefined) {
    return say('', 'No run yet. Bring a model up with `firstlight up RECIPE`', '');
  }
  if (state.phase === 'waiting' && state.asked) return waiting(state, state.asked.steps);
  if (lost && !lost.reached && (state.phase === 'looking' || state.phase === 'planned'))
    return outOfSight(lost);
  if (state.serving) return serving(state);
  const between = state.phase === 'looking' || state.phase === 'planned' || state.phase === 'launching';
  if (attempt?.finding && (between || attempt.finding.final)) return curing(attempt, attempt.finding);
  switch (state.phase) {
    case 'planned':
      return planned(state.plan);
    case 'clearing':
      return clearing(state, now);
    case 'launching':
      return say('◔', 'Starting the ranks', 'Awaited: worker first, then head');
    case 'following':
    case 'proving':
      return attempt ? following(attempt, state, now) : say('◔', 'Following the ranks', '');
    default:
      return looking(state);
  }
}

function looking(state: RunState): NowLine {
  if (state.operation === 'down') return say('◔', `Stopping what runs on ${onAll(state.nodes)}`, '');
  if (state.operation === 'restore')
    return say('◔', `Giving back what was stopped on ${onAll(state.nodes)}`, '');
  return say('◔', `Looking at ${onAll(state.nodes)}`, 'Awaited: what each node holds, within 20 s');
}

function planned(plan: Plan | undefined): NowLine {
  if (!plan) return say('◔', 'Planning', '');
  const blocker = plan.blockers[0];
  if (blocker) return say('✕', bare(blocker.title), blocker.advice[0] ?? '');
  if (plan.state === 'empty') return say('✓', 'Nothing to do: all ranks run already', '');
  const steps = plan.phases.flatMap((phase) => phase.steps);
  const count = steps.length + plan.phases.reduce((sum, phase) => sum + phase.services.length, 0);
  const asks = steps.filter((step) => step.needsConsent).length;
  const tail = `${plural(count, 'step')}, ${asks === 0 ? 'none asks you' : `${asks} ask${asks === 1 ? 's' : ''} you`}`;
  return say('◔', `${fitWords(plan)}; ${tail}`, 'Awaited: the first step');
}

function waiting(
  state: RunState,
  steps: readonly { readonly node: string; readonly target: { readonly bytes: number } }[],
): NowLine {
  const nodes = [...new Set(steps.map((step) => step.node))];
  const bytes = steps.reduce((sum, step) => sum + step.target.bytes, 0);
  const where = nodes.length > 2 ? `${nodes.length} nodes` : list(nodes);
  const verb = steps.length === 1 ? 'holds' : 'hold';
  const since = state.lastAt ? `asked ${clock(state.lastAt)}; nothing is stopped without your answer` : '';
  return say(
    '◐',
    `Waiting for you: ${plural(steps.length, 'thing')} on ${where} ${verb} ${gib(bytes)}`,
    since,
  );
}

function clearing(state: RunState, now: number): NowLine {
  const running = state.steps.findLast((step) => step.result === 'running');
  const done = state.steps.filter((step) => step.result !== 'running').length;
  if (!running) {
    const doing =
      state.operation === 'restore'
        ? 'Giving back what was stopped'
        : state.operation === 'down'
          ? 'Stopping what runs'
          : 'Clearing the nodes';
    return say('◔', doing, `${plural(done, 'step')} done`);
  }
  const since = stopwatch(now - Date.parse(running.startedAt));
  return say(
    '◔',
    `On ${running.node}: ${lowerFirst(running.title)}`,
    `for ${since}; ${plural(done, 'step')} done`,
  );
}

function following(attempt: AttemptState, state: RunState, now: number): NowLine {
  const still = stalled(attempt, now);
  if (still) return still;
  const alive = attempt.ranks.filter((rank) => !rank.ended);
  const dead = attempt.ranks.find((rank) => rank.ended && !rank.ended.requested);
  if (dead) {
    const code = dead.ended?.code === undefined ? '' : `, exit ${dead.ended.code}`;
    return say('✕', `Rank ${dead.rank} on ${dead.node} ended${code}`, 'Awaited: the cause, within 5 s');
  }
  const least = alive.toSorted((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage))[0];
  if (!least) return say('◔', 'Following the ranks', '');
  const there = alive.filter((rank) => rank.stage === least.stage);
  const next = awaited(least, now);
  if (least.stage === 'weights') return say('◔', weights(alive, there), next);
  if (least.stage === 'serving')
    return say('◔', `Proving the answer of ${state.recipe ?? 'the model'}`, next);
  return say('◔', `${DOING[least.stage]} on ${onEach(there.map((rank) => rank.node))}`, next);
}

const DOING: Readonly<Record<Stage, string>> = {
  start: 'Starting the engine',
  rendezvous: 'Waiting for the ranks to meet',
  weights: 'Loading weights',
  kv: 'Setting up the KV cache',
  graphs: 'Capturing graphs',
  warmup: 'Warming up',
  serving: 'Serving',
};

/** "Loading weights: 64 % on spark-a, 52 % on spark-b"; many or long-named nodes as a range. */
function weights(alive: readonly RankState[], loading: readonly RankState[]): string {
  const parts = alive
    .filter((rank) => rank.percent !== undefined && rank.stage === 'weights')
    .map((rank) => `${Math.floor(rank.percent ?? 0)} % on ${rank.node}`);
  const all = `Loading weights: ${parts.join(', ')}`;
  if (parts.length === 0) return `Loading weights on ${onEach(loading.map((rank) => rank.node))}`;
  if (all.length <= NOW_CHARACTERS) return all;
  const percents = loading.map((rank) => Math.floor(rank.percent ?? 0));
  return `Loading weights: ${Math.min(...percents)} to ${Math.max(...percents)} % on ${loading.length} nodes`;
}

function awaited(rank: RankState, now: number): string {
  const after = STAGES[STAGES.indexOf(rank.stage) + 1];
  const since = stopwatch(now - Date.parse(rank.entered[rank.stage] ?? rank.movedAt));
  return after === undefined ? `for ${since}` : `for ${since}; then ${STAGE_WORDS[after]}`;
}

function stalled(attempt: AttemptState, now: number): NowLine | undefined {
  const quiet = attempt.ranks
    .map((rank) => ({ rank, silence: silence(rank, now) }))
    .toSorted((a, b) => (b.silence?.still ?? 0) - (a.silence?.still ?? 0))[0];
  if (!quiet?.silence) return undefined;
  const { still, limit } = quiet.silence;
  const by = limit === undefined ? '' : `; at ${stopwatch(limit)} this is a finding`;
  const doing = `rank ${quiet.rank.rank} is at ${STAGE_WORDS[quiet.rank.stage]}`;
  return say('!', `${quiet.rank.node} has shown no progress for ${stopwatch(still)}${by}`, doing);
}

function curing(attempt: AttemptState, finding: Finding): NowLine {
  const remedy = attempt.remedy;
  const title = bare(finding.title);
  if (!remedy || remedy.state === 'failed') {
    return say(
      '✕',
      title,
      finding.final ? 'Looking for a remedy' : 'Provisional: the last lines are awaited',
    );
  }
  const change = remedy.edits.length > 0 ? remedy.edits.map(edit).join(', ') : remedy.title;
  const whole = `${title}; trying again: ${lowerFirst(bare(remedy.title))}`;
  const brief = `${title}; trying again`;
  return say(
    '✕',
    whole.length <= NOW_CHARACTERS ? whole : brief.length <= NOW_CHARACTERS ? brief : title,
    `Remedy: ${change}; proved when every rank gets past ${STAGE_WORDS[finding.stage ?? 'start']}`,
  );
}

function outOfSight(facts: Extract<NodeFacts, { reached: false }>): NowLine {
  const words = REASON[facts.failure.why];
  const sentence = words ? `${facts.node} does not answer: ${words}` : bare(facts.failure.sentence);
  return say('?', sentence, facts.failure.remedy);
}

const REASON: Readonly<Record<string, string | undefined>> = {
  'no-route': 'there is no route to it',
  refused: 'it refuses the connection',
  'timeout-connect': 'no TCP connection in time',
  'timeout-banner': 'TCP connects, no SSH banner',
  closed: 'the connection was closed',
  'jump-unreachable': 'its jump host cannot be reached',
};

function serving(state: RunState): NowLine {
  const event = state.serving;
  const at = event ? ` since ${clock(event.at)}` : '';
  const next = state.measured ? '' : state.ended ? '' : 'Awaited: the speed of one stream';
  return say('✓', `Serving ${state.recipe ?? event?.model ?? 'the model'}${at}`, next);
}

function ended(state: RunState): NowLine {
  const outcome: Outcome | undefined = state.ended?.outcome;
  const why = bare(state.ended?.why ?? '');
  const owed = state.ended?.owed ?? [];
  switch (outcome) {
    case 'serving':
      return state.serving ? serving(state) : say('✓', `Serving ${state.recipe ?? 'the model'}`, '');
    case 'nothing-to-do':
    case 'adopted':
      return say('✓', why || 'Nothing to do', '');
    case 'not-serving':
      return notServing(state, why);
    case 'consent-needed':
      return state.plan ? consentNeeded(state, why) : say('◐', why || 'Consent is needed', '');
    case 'restored':
      return say('✓', owed.length > 0 ? `Given back; ${stillOwed(owed)}` : 'Everything is given back', '');
    case 'stopped':
      return say(
        '',
        owed.length > 0
          ? `Stopped. ${upperFirst(stillOwed(owed, state.ended?.givesBack))}`
          : 'Stopped. Nothing is owed',
        state.ended?.givesBack ? '' : owedNext(owed),
      );
    default:
      return say('', upperFirst(briefly(why)) || 'Ended', owedNext(owed));
  }
}

function notServing(state: RunState, why: string): NowLine {
  if (state.operation === 'down') return say('✕', `Not all is stopped: ${lowerFirst(why)}`, '');
  if (state.operation === 'restore') return say('✕', `Not all is given back: ${lowerFirst(why)}`, '');
  const last = state.attempts.findLast((attempt) => attempt.finding);
  if (!last?.finding) return say('✕', `Not serving: ${lowerFirst(why)}`, '');
  const same = state.attempts.filter((attempt) => attempt.finding?.cause === last.finding?.cause);
  const engines = new Set(same.map((attempt) => attempt.engine)).size;
  const tail = engines === 2 ? ', in both engines' : engines > 2 ? `, in ${engines} engines` : '';
  const title = bare(last.finding.title);
  const whole = `Not serving: ${title}${tail}`;
  return say(
    '✕',
    whole.length <= NOW_CHARACTERS ? whole : `Not serving: ${title}`,
    last.finding.advice[0] ?? '',
  );
}

function consentNeeded(state: RunState, why: string): NowLine {
  const steps = state.plan?.phases.flatMap((phase) => phase.steps) ?? [];
  const open = steps.filter((step) => step.needsConsent && !state.consented.includes(step.id));
  const first = open[0];
  if (!first) return say('◐', why || 'Consent is needed', '');
  const nodes = [...new Set(open.map((step) => step.node))];
  const where = nodes.length > 2 ? `${nodes.length} nodes` : list(nodes);
  return say(
    '◐',
    `Not started: ${plural(open.length, 'thing')} on ${where} ${open.length === 1 ? 'needs' : 'need'} your consent`,
    why,
  );
}

/** `next`: a run that gives it back follows at once, and says at its end what is owed still. */
function stillOwed(owed: readonly { readonly node: string }[], next: true | undefined = undefined): string {
  const nodes = [...new Set(owed.map((one) => one.node))];
  const verb = owed.length === 1 ? 'is' : 'are';
  const where = nodes.length > 2 ? `${nodes.length} nodes` : list(nodes);
  return `${plural(owed.length, 'thing')} on ${where} ${verb} ${next ? 'given back next' : 'not given back yet'}`;
}

function owedNext(owed: readonly unknown[]): string {
  return owed.length > 0 ? 'Give back with: firstlight restore' : '';
}

function onAll(nodes: readonly string[]): string {
  return nodes.length > 3 ? `${nodes.length} nodes` : list(nodes) || 'the nodes';
}

function say(glyph: NowGlyph, sentence: string, next: string): NowLine {
  return { glyph, sentence, next };
}

/** A sentence without its period, to stand inside another. */
function bare(text: string): string {
  return text.trim().replace(/[.\s]+$/, '');
}

/** A reason that is too long for the line, up to its first part. */
function briefly(why: string): string {
  return why.length <= NOW_CHARACTERS ? why : (why.split('; ')[0] ?? why);
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function cut(text: string): string {
  const characters = [...text];
  return characters.length <= NOW_CHARACTERS
    ? text
    : `${characters
        .slice(0, NOW_CHARACTERS - 1)
        .join('')
        .trimEnd()}…`;
}
