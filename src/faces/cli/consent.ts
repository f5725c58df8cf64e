import type { Event } from '../../domain/event.ts';
import type { NodeFacts } from '../../domain/facts.ts';
import { valueIf } from '../../domain/facts.ts';
import { allowedBytes, type Plan } from '../../domain/plan.ts';
import { lowerFirst } from '../../domain/run-words.ts';
import { age, clock, gib, gibNumber, list, plural } from '../../domain/units.ts';
import { cleanAll } from './clean.ts';
import type { Style } from './style.ts';
import { finish, written } from './style.ts';
import { pad, width, wrap } from './width.ts';

export type Asked = Extract<Event, { type: 'consent-asked' }>;
type AskedStep = Asked['steps'][number];

export type Question = {
  readonly asked: Asked;
  readonly plan: Plan | undefined;
  readonly facts: readonly NodeFacts[];
  /** Ids of steps that were allowed already. */
  readonly consented?: readonly string[];
};

export type ConsentAnswer = { readonly allowed: readonly string[]; readonly refused: readonly string[] };

/** Where a question is put and its answer read. `readLine` gives undefined at the end of input. */
export type LineIo = {
  readonly write: (text: string) => void;
  readonly readLine: (signal: AbortSignal) => Promise<string | undefined>;
};

/**
 * Puts the question and reads one line: numbers, ids, none, or d for details. Nothing is chosen by default; an
 * empty line and the end of input mean none; what is not understood is asked again. Rejects when `signal` aborts.
 */
export async function askConsent(
  question: Question,
  io: LineIo,
  style: Style,
  signal: AbortSignal,
): Promise<ConsentAnswer> {
  const safe = cleanAll(question);
  io.write(consentText(safe, style));
  for (;;) {
    io.write(`${finish(promptOf(safe.asked, style), style).trimEnd()} `);
    const line = await io.readLine(signal);
    if (line === undefined) io.write('\n'); // Ctrl-D leaves the cursor behind the question
    const read = readAnswer(line ?? '', safe.asked.steps);
    if (read.kind === 'answer') return read.answer;
    io.write(
      read.kind === 'details'
        ? finish(
            safe.asked.steps.flatMap((step, index) => details(step, index, style)),
            style,
          )
        : finish(wrap(read.why, style.columns), style),
    );
  }
}

/** The question as text: what is held, by whom, how it is stopped, how it comes back. */
export function consentText(question: Question, style: Style): string {
  const { asked } = question;
  const { paint, glyphs, columns } = style;
  const nodes = [...new Set(asked.steps.map((step) => step.node))];
  const head = `${glyphs.waits} Waiting for you`;
  const at = `asked ${clock(asked.at)}`;
  const gap = ' '.repeat(Math.max(2, columns - width(head) - width(at)));
  const names = Math.max(...asked.steps.map((step) => width(step.target.name)), 8);
  return finish(
    [
      '',
      `${paint.wait(head)}${gap}${paint.quiet(at)}`,
      ...wrap(written(sentence(question, nodes), style), columns),
      ...asked.steps.flatMap((step, index) =>
        row(step, index, { names, severalNodes: nodes.length > 1 }, style),
      ),
      ...wrap(enough(question), columns),
    ],
    style,
  );
}

function sentence(question: Question, nodes: readonly string[]): string {
  const { asked, plan } = question;
  const bytes = asked.steps.reduce((sum, step) => sum + step.target.bytes, 0);
  const it = asked.steps.length === 1 ? 'It holds' : 'They hold';
  const first = `Stop ${plural(asked.steps.length, 'thing')} on ${list(nodes)}? ${it} ${gib(bytes)}.`;
  const memory = plan?.memory.filter((node) => nodes.includes(node.node)) ?? [];
  const need = memory.find(({ verdict }) => verdict !== 'unknown');
  if (!plan || memory.length === 0) return first;
  if (!need) return `${first} What the plan needs there is not known.`;
  const has = nodes.flatMap((node) => {
    const facts = question.facts.find((one) => one.node === node);
    const seen = facts?.reached ? valueIf(facts.memory) : undefined;
    return seen ? [`${node} has ${gibNumber(seen.availableBytes)} available`] : [];
  });
  const reserve = Math.round((plan.recipe.memory.reserve / 2 ** 30) * 10) / 10;
  const unsure = memory.filter(({ verdict }) => verdict === 'unknown').map(({ node }) => node);
  const where =
    unsure.length === 0 ? 'each node' : `${need.node}; what it needs on ${list(unsure)} is not known`;
  const needs = `The plan needs ${gibNumber(need.sumBytes)} ± ${gibNumber(need.errorBytes)} GiB on ${where}`;
  return `${first} ${needs}${has.length > 0 ? `; ${has.join(', ')} and keeps ${reserve} in reserve` : ''}.`;
}

function row(
  step: AskedStep,
  index: number,
  layout: { readonly names: number; readonly severalNodes: boolean },
  style: Style,
): readonly string[] {
  const { target } = step;
  const { paint, glyphs, columns } = style;
  const ran = target.ageSeconds === undefined ? '' : `, for ${age(target.ageSeconds)}`;
  const where = layout.severalNodes ? `${step.node}: ` : '';
  const known = target.kind !== 'process' || new RegExp(`\\b${target.pid}\\b`).test(target.what);
  const pid = known ? '' : `, pid ${target.pid}`;
  const head = `${paint.strong(pad(String(index + 1), 2))} ${pad(target.name, layout.names)}  ${gib(target.bytes).padStart(9)}   `;
  const what = `${where}${target.what}${pid}${ran}`;
  const under = (text: string, hang = '', paintIt = (part: string) => part): readonly string[] =>
    wrap(written(text, style), columns - 5 - hang.length).map(
      (part, at) => `     ${paintIt(at === 0 ? part : `${hang}${part}`)}`,
    );
  const beside = width(head) + width(what) <= columns;
  const lines = beside ? [`${head}${what}`] : [...named(head, step, index, style), ...under(what)];
  if (target.listens.length > 0) {
    const ports = list(target.listens.map(String));
    lines.push(...under(`answers on port ${ports}; who is connected is not known`));
  }
  if (target.job && target.job.length > 0)
    lines.push(...under(`half of one job with ${list(target.job)}: stopping one ends both`));
  for (const { what: by, keepAway } of target.returns ?? [])
    lines.push(...under(`would come back by ${by}; to keep it away: ${keepAway}`));
  const how = `how: ${step.how}`;
  const back = step.undo.kind === 'command' ? `back: ${lowerFirst(step.undo.title)}` : '';
  if (back !== '' && width(how) + width(back) + 13 <= columns) lines.push(`     ${pad(how, 26)}    ${back}`);
  else lines.push(...under(how, '     '), ...(back === '' ? [] : under(back, '      ')));
  if (step.undo.kind === 'irreversible')
    lines.push(...under(`${glyphs.failed} cannot be brought back: ${step.undo.why}`, '', paint.bad));
  return lines;
}

/** Number, name and size of what would be stopped; a long name takes lines of its own. */
function named(head: string, { target }: AskedStep, index: number, style: Style): readonly string[] {
  if (width(head.trimEnd()) <= style.columns) return [head.trimEnd()];
  const lines = wrap(`${target.name}, ${gib(target.bytes)}`, style.columns - 3);
  return lines.map(
    (line, at) => `${at === 0 ? style.paint.strong(pad(String(index + 1), 2)) : '  '} ${line}`,
  );
}

/** Which choice is enough, as far as the plan's numbers tell. */
function enough(question: Question): string {
  const { asked, plan, consented = [] } = question;
  if (!plan) return '';
  const sets = plan.memory.flatMap((node) => {
    const here = asked.steps
      .map((step, index) => ({ number: index + 1, bytes: step.node === node.node ? step.target.bytes : 0 }))
      .filter((step) => step.bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
    if (here.length === 0 || node.verdict === 'unknown') return [];
    const canGet = node.canGetBytes + allowedBytes(plan, consented, node.node);
    const all = here.reduce((sum, step) => sum + step.bytes, canGet);
    // With its error bar it fits, as the plan asks for it; where that is not to be had it may boot by the bare sum.
    const sure = node.sumBytes + node.errorBytes;
    let missing = (all >= sure ? sure : node.sumBytes) - canGet;
    const chosen = here.filter((step) => {
      if (missing <= 0) return false;
      missing -= step.bytes;
      return true;
    });
    return [{ fits: missing <= 0, chosen: chosen.map((step) => step.number), all: here.length }];
  });
  if (sets.length === 0) return '';
  if (sets.some((set) => !set.fits)) return 'By these numbers the plan would not fit even with all of them.';
  const numbers = sets.flatMap((set) => set.chosen).sort((a, b) => a - b);
  if (numbers.length === asked.steps.length) {
    return asked.steps.length === 1
      ? 'The plan fits only with it.'
      : `The plan fits only with ${ALL[asked.steps.length] ?? `all ${asked.steps.length}`}.`;
  }
  if (numbers.length === 0)
    return 'The memory would be enough as it is; they are in the way of something else.';
  return `By the plan's numbers ${list(numbers.map(String))} would be enough.`;
}

const ALL: Readonly<Record<number, string>> = { 2: 'both', 3: 'all three', 4: 'all four', 5: 'all five' };

function promptOf(asked: Asked, style: Style): readonly string[] {
  const numbers = asked.steps.map((_, index) => index + 1).join(',');
  const { dot } = style.glyphs;
  const [ask, warn] = [
    `Allow which?  ${numbers} ${dot} none ${dot} d details`,
    'nothing is chosen for you >',
  ];
  const line = `${ask}        ${warn}`;
  // An answer of some letters has room behind it.
  return width(line) + 5 <= style.columns ? [line] : [...wrap(ask, style.columns), warn];
}

function details(step: AskedStep, index: number, style: Style): readonly string[] {
  const { target } = step;
  const lines = [
    `id ${step.id} on ${step.node}: ${lowerFirst(step.title)}`,
    `${target.kind} of ${target.user}, pid ${target.pid}, ${target.identity}`,
    ...(target.image ? [`image ${target.image}`] : []),
    ...(step.undo.kind === 'command' ? [`back: ${lowerFirst(step.undo.title)}`] : []),
    `the same from elsewhere: firstlight up … --consent ${step.id}`,
  ];
  return lines.flatMap((line, at) =>
    wrap(line, style.columns - 3).map(
      (part, n) => `${at === 0 && n === 0 ? pad(String(index + 1), 3) : '   '}${part}`,
    ),
  );
}

type Read =
  | { readonly kind: 'answer'; readonly answer: ConsentAnswer }
  | { readonly kind: 'details' }
  | { readonly kind: 'nonsense'; readonly why: string };

/** "1,3", "1 3", "7f3a", "none", "" or "d". A number that is not there makes the whole line nonsense. */
function readAnswer(line: string, steps: readonly { readonly id: string }[]): Read {
  const text = line.trim().toLowerCase();
  const ids = steps.map((step) => step.id);
  if (text === '' || text === 'none' || text === 'n' || text === 'no') {
    return { kind: 'answer', answer: { allowed: [], refused: ids } };
  }
  if (text === 'd' || text === 'details') return { kind: 'details' };
  const chosen = new Set<string>();
  for (const word of text.split(/[\s,]+/).filter((part) => part !== '')) {
    const byId = steps.find((step) => step.id.toLowerCase() === word);
    const byNumber = /^\d{1,3}$/.test(word) ? steps[Number(word) - 1] : undefined;
    const step = byId ?? byNumber;
    if (!step) {
      const most = steps.length === 1 ? '1' : `1 to ${steps.length}`;
      return { kind: 'nonsense', why: `"${word}" is none of them. Type numbers from ${most}, none, or d.` };
    }
    chosen.add(step.id);
  }
  return {
    kind: 'answer',
    answer: { allowed: ids.filter((id) => chosen.has(id)), refused: ids.filter((id) => !chosen.has(id)) },
  };
}
