import { valueIf } from '../../domain/facts.ts';
import type { Finding } from '../../domain/finding.ts';
import { memorySentences } from '../../domain/guard-words.ts';
import { nowLine } from '../../domain/now-line.ts';
import type { RecipeEdit } from '../../domain/recipe.ts';
import type { RankState, RemedyState, RunState } from '../../domain/run-state.ts';
import { edit, lowerFirst } from '../../domain/run-words.ts';
import { gibNumber, list, plural, rate, stopwatch } from '../../domain/units.ts';
import { labelled, spread, table } from './labelled.ts';
import { nowMark } from './now-mark.ts';
import { quotedLine, quoteLines } from './quotes.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { width } from './width.ts';

/** The end of up, down or restore: what came of it, why, what is owed, what to type next. */
export function renderRun(state: RunState, style: Style): string {
  const { paint, glyphs } = style;
  const line = nowLine(state, style.now);
  const mark = nowMark(line.glyph, style);
  const took =
    state.startedAt && state.lastAt ? stopwatch(Date.parse(state.lastAt) - Date.parse(state.startedAt)) : '';
  const right = [`run ${state.run}`, took].filter((part) => part !== '').join(` ${glyphs.dot} `);
  const sentence = state.ended
    ? line.sentence
    : `Run ${state.run} has no end here: it still runs, or was cut off`;
  const left = `${mark === '' ? '' : `${mark} `}${paint.strong(sentence)}`;
  return finish(['', ...spread(left, paint.quiet(right), style), ...body(state, style)], style);
}

function body(state: RunState, style: Style): readonly string[] {
  switch (state.ended?.outcome) {
    case 'serving':
    case 'nothing-to-do':
    case 'adopted':
      return served(state, style);
    case 'stopped':
    case 'restored':
      return closed(state, style);
    default:
      return failed(state, style);
  }
}

function served(state: RunState, style: Style): readonly string[] {
  const { serving, measured } = state;
  const speed = measured
    ? `first token ${measured.firstTokenSeconds.toFixed(2)} s, ${rate(measured.tokensPerSecond)} tok/s, ${measured.streams === 1 ? 'one stream' : plural(measured.streams, 'stream')}, ${measured.outputTokens} tokens by usage`
    : 'unknown: it was not measured';
  return [
    ...labelled(
      'API',
      serving ? [`${api(state)} on ${serving.head}      from here: firstlight chat`] : [],
      style,
    ),
    ...labelled('Proved', serving ? [proof(serving.reasoning)] : [], style),
    ...labelled('Speed', serving ? [speed] : [], style),
    ...labelled('Network', serving ? [serving.networkText] : [], style),
    ...labelled('Memory', serving ? memorySentences(state.attempts.at(-1)?.ranks ?? []) : [], style),
    ...labelled('Cured', cured(state), style),
    ...labelled('Noted', warnings(state), style),
    ...labelled('Owed', owed(state), style),
    ...labelled('Next', ['firstlight status      firstlight down --restore'], style),
  ];
}

function api(state: RunState): string {
  const { serving, plan } = state;
  if (!serving) return '';
  const head = plan?.phases.flatMap((phase) => phase.services).find((service) => service.rank === 0);
  const host = serving.listen === 'loopback' ? '127.0.0.1' : (head?.healthAddress ?? serving.head);
  return `http://${host.includes(':') ? `[${host}]` : host}:${serving.port}/v1`;
}

function proof(reasoning: string): string {
  return reasoning === ''
    ? 'answered as expected, without reasoning'
    : 'answered as expected, reasoning told apart from the answer';
}

function cured(state: RunState): readonly string[] {
  return state.attempts.flatMap(({ remedy }) => {
    if (remedy?.state !== 'proved') return [];
    const cause = remedy.cause.replaceAll('-', ' ');
    if (remedy.edits.length === 0) return [`${cause}: ${remedy.title}`];
    return [`${cause}: ${remedy.edits.map(edit).join(', ')}. Keep it: ${kept(remedy.edits)}`];
  });
}

/** What to do in the recipe's file so that the next run begins with it. */
function kept(edits: readonly RecipeEdit[]): string {
  if (edits.every(({ to }) => to !== undefined)) return 'set it in the recipe';
  return edits.every(({ to }) => to === undefined) ? 'take it out of the recipe' : 'change the recipe so';
}

function warnings(state: RunState): readonly string[] {
  return [...new Set(state.notes.filter((note) => note.level === 'warning').map((note) => note.text))].slice(
    -4,
  );
}

/** "2 things on spark-b can be given back; 1 cannot" */
function owed(state: RunState, command = ''): readonly string[] {
  const things = state.ended?.owed ?? [];
  const forever = state.steps.filter((step) => step.result === 'done' && step.undo === 'irreversible').length;
  const nodes = [...new Set(things.map((thing) => thing.node))];
  const can =
    things.length > 0
      ? `${plural(things.length, 'thing')} on ${list(nodes)} can be given back${command}`
      : '';
  const cannot =
    forever > 0
      ? `${can === '' ? plural(forever, 'thing') : forever} cannot${can === '' ? ' be given back' : ''}`
      : '';
  const said = [can, cannot].filter((part) => part !== '').join('; ');
  return said === '' ? [] : [said];
}

function failed(state: RunState, style: Style): readonly string[] {
  const { ended } = state;
  // Where several things are in the way before any launch, the run ends with the first of them, not with the last.
  const said = ended?.why ?? '';
  const launched = state.attempts.length > 0;
  const finding =
    launched || (state.finding && said.includes(bare(state.finding.title))) ? state.finding : undefined;
  const explained = ended?.outcome === 'not-serving' && finding !== undefined;
  const sure = finding && finding.confidence >= 0.9 ? 'sure' : 'likely';
  const [reason = ''] = said.split(ALLOW);
  const why = explained && finding.why !== '' ? `${sure}: ${lowerFirst(finding.why)}` : reason;
  const { rest, next } = unheard(why, nowLine(state, style.now).sentence);
  return [
    ...labelled('Last', ended ? [] : [nowLine(state, style.now).sentence], style),
    ...labelled('Why', [rest], style),
    ...labelled('Next', [next], style),
    ...(explained ? quoteLines(finding.quotes, style) : []),
    ...labelled('Then', explained ? finding.consequences : [], style),
    ...labelled('Tried', tried(state, style), style),
    ...labelled('Do', explained ? finding.advice : advice(state), style),
    ...labelled('State', [stateNow(state)], style),
    ...labelled(
      'Owed',
      owed(state, ranksLeft(state).length > 0 ? ': firstlight down --restore' : ': firstlight restore'),
      style,
    ),
    ...labelled('More', more(state, explained ? finding : undefined, style), style),
  ];
}

/** The reason, less what the Now line has said of it already: what follows that is what to do next. */
function unheard(why: string, sentence: string): { readonly rest: string; readonly next: string } {
  const [first = '', ...more] = why.split('; ');
  const said = (text: string): boolean => bare(text).toLowerCase() === bare(sentence).toLowerCase();
  if (said(why)) return { rest: '', next: '' };
  return said(first) ? { rest: '', next: more.join('; ') } : { rest: why, next: '' };
}

/** Per engine what was tried and what came of it; an engine without a remedy says so. */
function tried(state: RunState, style: Style): readonly string[] {
  if (!state.attempts.some((attempt) => attempt.remedy)) return [];
  const engines = [...new Set(state.attempts.map((attempt) => attempt.engine))];
  const last = state.finding?.cause;
  return table(
    engines.flatMap((engine) => {
      const attempts = state.attempts.filter((attempt) => attempt.engine === engine);
      const cures = attempts.flatMap((attempt) =>
        attempt.remedy ? [cure(engine, attempt.remedy, style)] : [],
      );
      if (cures.length > 0) return cures;
      const finding = attempts.findLast((attempt) => attempt.finding)?.finding;
      if (!finding) return [];
      const cause = finding.cause === last && engines.length > 1 ? 'the same cause' : finding.cause;
      return [[engine, 'no remedy left', style.paint.bad(`${style.glyphs.failed} ${cause}`)]];
    }),
    3,
  );
}

function cure(engine: string, remedy: RemedyState, style: Style): readonly string[] {
  const { glyphs, paint } = style;
  const what = remedy.edits.length > 0 ? remedy.edits.map(edit).join(', ') : remedy.title;
  const result =
    remedy.state === 'proved'
      ? paint.ok(`${glyphs.done} proved`)
      : remedy.state === 'failed'
        ? paint.bad(`${glyphs.failed} failed: ${remedy.why}`)
        : `${glyphs.working} applied, not proved`;
  return [engine, what, result];
}

/** Where the reason of a run that lacks consent turns to the command that gives it. */
const ALLOW = / Allow them: /;

function advice(state: RunState): readonly string[] {
  const [, command] = (state.ended?.why ?? '').split(ALLOW);
  if (command !== undefined) return [command];
  const steps = state.plan?.phases.flatMap((phase) => phase.steps) ?? [];
  const asked = steps.filter((step) => step.needsConsent);
  const open = asked.some((step) => !state.consented.includes(step.id));
  if (state.ended?.outcome !== 'consent-needed' || !open) return [];
  return [`firstlight up RECIPE --consent ${asked.map((step) => step.id).join(',')}`];
}

/** Ranks of the last attempt of which no end was seen. */
function ranksLeft(state: RunState): readonly RankState[] {
  return state.attempts.at(-1)?.ranks.filter((rank) => !rank.ended) ?? [];
}

function stateNow(state: RunState): string {
  const running = ranksLeft(state);
  const ours =
    state.operation !== 'up'
      ? ''
      : running.length === 0
        ? 'Nothing of ours runs.'
        : `${plural(running.length, 'rank')} of ours may still run on ${list([...new Set(running.map((rank) => rank.node))])}.`;
  const memory = state.facts.flatMap((facts) => {
    const seen = facts.reached ? valueIf(facts.memory) : undefined;
    return seen ? [`${facts.node} ${gibNumber(seen.availableBytes)} GiB`] : [];
  });
  const had = memory.length > 0 ? `Available at the last look: ${memory.join(', ')}.` : '';
  return [ours, had].filter((part) => part !== '').join(' ');
}

/** The commands that show more; a later attempt than that of the finding makes its number necessary. */
function more(state: RunState, finding: Finding | undefined, style: Style): readonly string[] {
  const attempt = state.attempts.findLast((one) => one.finding === finding)?.attempt;
  const latest = attempt === undefined || attempt === state.attempts.at(-1)?.attempt;
  const quotes = finding?.quotes ?? [];
  const commands = [
    quotedLine(state.run, latest ? { quotes } : { quotes, attempt }),
    `firstlight show ${state.run}`,
  ].filter((command) => command !== '');
  const together = commands.join('    ');
  return width(together) + 9 <= style.columns ? [together] : commands;
}

function closed(state: RunState, style: Style): readonly string[] {
  const things = state.ended?.givesBack ? [] : (state.ended?.owed ?? []);
  const next = things.length > 0 ? 'firstlight restore' : 'firstlight status';
  return [
    ...labelled('Why', [state.ended?.why ?? ''], style),
    ...labelled(
      'Owed',
      things.map((thing) => `${thing.id}  ${thing.node}: ${lowerFirst(thing.title)}`),
      style,
    ),
    ...labelled('Next', state.ended?.givesBack ? [] : [`${next}      firstlight show ${state.run}`], style),
  ];
}

function bare(text: string): string {
  return text.trim().replace(/[.\s]+$/, '');
}
