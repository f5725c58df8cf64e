import type { NodeFacts } from '../../domain/facts.ts';
import { valueIf } from '../../domain/facts.ts';
import { ledgerOf } from '../../domain/ledger.ts';
import type { CheckItem, CheckReport } from '../../domain/report.ts';
import { brief, gibNumber, plural } from '../../domain/units.ts';
import { memoryTogether, type ShownItem } from './check-memory.ts';
import { memoryBlock } from './render-memory.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { pad, width, wrap, wrapAdvice } from './width.ts';

/** What `check` found, node by node: a verdict and a remedy per finding. */
export function renderCheck(report: CheckReport, style: Style): string {
  const nodes = report.facts.map((facts) => facts.node);
  const names = Math.max(8, ...nodes.map(width));
  const all = style.verbose ? report.items : memoryTogether(report);
  const rest = all.filter((item) => !nodes.includes(item.node));
  return finish(
    [
      `${report.cluster}: ${plural(report.facts.length, 'node')} looked at in ${brief(report.milliseconds)}`,
      ...report.facts.flatMap((facts) => node(facts, all, names, style)),
      ...(rest.length > 0
        ? [style.paint.strong('cluster'), ...rest.flatMap((item) => itemLines(item, style))]
        : []),
      summary(all, style),
      ...(style.verbose ? memory(report, style) : []),
    ],
    style,
  );
}

function node(facts: NodeFacts, all: readonly ShownItem[], names: number, style: Style): readonly string[] {
  const { paint, glyphs } = style;
  const items = all.filter((item) => item.node === facts.node);
  const bad = items.filter((item) => item.level !== 'fine');
  const name = paint.strong(pad(facts.node, names));
  if (bad.length === 0 && facts.reached) {
    const ledger = ledgerOf(facts);
    const has = ledger
      ? `${gibNumber(ledger.availableBytes)} of ${gibNumber(ledger.totalBytes)} GiB available`
      : 'memory unknown';
    const fine = items.filter((item) => item.topic === 'model').map((item) => item.title);
    const text = `nothing in the way: ${[has, ...fine].join(', ')}`;
    const lines = wrap(text, style.columns - names - 4);
    const first = `${name} ${paint.ok(glyphs.done)} ${lines[0] ?? ''}`;
    const more = style.verbose ? items.flatMap((item) => itemLines(item, style)) : [];
    return [first, ...lines.slice(1).map((line) => `${' '.repeat(names + 3)}${line}`), ...more];
  }
  const head = `${name} ${about(facts, glyphs.dot)}`;
  // What memory there is belongs to every picture of a node, unless a sentence about it says so already.
  const told = bad.some((item) => item.topic === 'memory');
  const shown = style.verbose
    ? items
    : items.filter((item) => item.level !== 'fine' || (item.topic === 'memory' && !told));
  return [
    ...wrap(head.trimEnd(), style.columns).map((line, index) =>
      index === 0 ? line : `${' '.repeat(names + 1)}${line}`,
    ),
    ...shown.flatMap((item) => [
      ...itemLines(
        item,
        style,
        item.more ?? (item.topic === 'memory' && item.level === 'blocks' ? holders(facts, item) : ''),
      ),
    ]),
  ];
}

/** "GB10 · DGX OS 7.5.0 · kernel 6.17.0 · driver 580.142" */
function about(facts: NodeFacts, dot: string): string {
  if (!facts.reached) return '';
  const host = valueIf(facts.host);
  const gpus = valueIf(facts.gpus) ?? [];
  const gpu = gpus[0];
  return [
    gpu ? `${gpus.length > 1 ? `${gpus.length} × ` : ''}${gpu.name.replace(/^NVIDIA /, '')}` : undefined,
    host?.os,
    host ? `kernel ${host.kernel}` : undefined,
    gpu ? `driver ${gpu.driver}` : undefined,
  ]
    .filter((part) => part !== undefined && part !== '')
    .join(` ${dot} `);
}

const TOPIC_COLUMNS = 8;
const INDENT = ' '.repeat(TOPIC_COLUMNS + 5);

/** Verdict, what more is to be said of it, and what to do, one under the other. */
function itemLines(item: CheckItem, style: Style, more = ''): readonly string[] {
  const { glyphs, paint, columns } = style;
  const [glyph, colour] =
    item.level === 'blocks'
      ? [glyphs.failed, paint.bad]
      : item.level === 'warning'
        ? [glyphs.slow, paint.wait]
        : item.level === 'unknown'
          ? [glyphs.unknown, paint.quiet]
          : [glyphs.done, paint.ok];
  const lines = wrap(item.title, columns - INDENT.length);
  const first = `  ${colour(`${glyph} ${pad(item.topic, TOPIC_COLUMNS)}`)} ${lines[0] ?? ''}`;
  const remedy =
    item.remedy && item.level !== 'fine' ? wrapAdvice(`do: ${item.remedy}`, columns - INDENT.length) : [];
  const told = more === '' ? [] : wrap(more, columns - INDENT.length);
  return [first, ...[...lines.slice(1), ...told, ...remedy].map((line) => `${INDENT}${line}`)];
}

/** The largest holders, where the sentence does not name them already. */
function holders(facts: NodeFacts, item: CheckItem): string {
  const others = (ledgerOf(facts)?.others ?? []).filter((holder) => holder.bytes >= 2 ** 30).slice(0, 4);
  if (others.length === 0 || others.every((holder) => item.title.includes(holder.name))) return '';
  return others.map((holder) => `${holder.name} ${gibNumber(holder.bytes)}`).join(', ');
}

function summary(items: readonly CheckItem[], style: Style): string {
  const count = (level: CheckItem['level']): number => items.filter((item) => item.level === level).length;
  const blocks = count('blocks');
  const parts = [
    blocks > 0 ? style.paint.bad(`${blocks} in the way`) : style.paint.ok('nothing in the way'),
    count('warning') > 0 ? plural(count('warning'), 'warning') : undefined,
    count('unknown') > 0 ? `${count('unknown')} unknown` : undefined,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

function memory(report: CheckReport, style: Style): readonly string[] {
  const scaleBytes = Math.max(1, ...report.facts.map((facts) => ledgerOf(facts)?.totalBytes ?? 0));
  return report.facts.flatMap((facts) => [
    '',
    ...memoryBlock(facts, { scaleBytes, reserveBytes: undefined }, style),
  ]);
}
