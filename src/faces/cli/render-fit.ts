import type { Fit, FitChange, FitCheck, FitRank, Verdict } from '../../domain/fit.ts';
import type { FitReport } from '../../domain/report.ts';
import { gib, gibNumber, thousands } from '../../domain/units.ts';
import { labelled, table } from './labelled.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { wrap } from './width.ts';

/** Whether it fits and why, a row per rank, what has to hold, what would do, and where each number comes from. */
export function renderFit({ title, unified, fit }: FitReport, style: Style): string {
  const { paint } = style;
  const [glyph, colour] = signOf(fit.verdict, style);
  const words = `${fit.verdict[0]?.toUpperCase() ?? ''}${fit.verdict.slice(1)}`;
  return finish(
    [
      `${colour(glyph)} ${paint.strong(words)}: ${title}`,
      ...labelled('Why', [fit.why], style),
      ...bound(fit, style),
      '',
      ...ranks(fit.ranks, style),
      ...(fit.checks.length > 0
        ? ['', paint.strong('What has to hold'), ...fit.checks.flatMap((check) => checkLines(check, style))]
        : []),
      ...(fit.changes.length > 0
        ? [
            '',
            paint.strong(
              fit.changes.every(({ change }) => change === 'together')
                ? 'None does alone; each of these pairs would do'
                : 'Alone, each of these would do',
            ),
            ...fit.changes.flatMap((change) => changeLines(change, style)),
          ]
        : []),
      '',
      paint.strong(unified ? 'Where the numbers come from (unified memory)' : 'Where the numbers come from'),
      ...fit.rules.flatMap(({ about, rule, errorBytes }) =>
        wrap(
          `${about}: ${rule}${errorBytes ? `; give or take ${gib(errorBytes)}` : ''}`,
          style.columns - 4,
        ).map((line, index) => (index === 0 ? `  ${line}` : `    ${line}`)),
      ),
    ],
    style,
  );
}

function signOf(verdict: Verdict, { glyphs, paint }: Style): readonly [string, (text: string) => string] {
  if (verdict === 'fits') return [glyphs.done, paint.ok];
  if (verdict === 'may boot') return [glyphs.slow, paint.wait];
  return verdict === 'does not fit' ? [glyphs.failed, paint.bad] : [glyphs.unknown, paint.quiet];
}

function bound({ bound: found }: Fit, style: Style): readonly string[] {
  if (found === null) return [];
  const text = `between ${gib(found.atLeastBytes)} and ${gib(found.atMostBytes)} of weights per rank by the size of the files`;
  return labelled('Bound', [text], style);
}

/** Ranks that are alike are one row. */
function ranks(all: readonly FitRank[], style: Style): readonly string[] {
  const rows: { readonly cells: readonly string[]; first: FitRank; last: FitRank }[] = [];
  for (const rank of all) {
    const cells = [
      size(rank.weightsBytes),
      size(rank.overheadBytes),
      size(rank.peakBytes),
      count(rank.kvBytesPerToken),
      small(rank.stateBytesPerSequence),
      count(rank.poolTokens),
      count(rank.blockTokens),
      rank.maxConcurrency === null ? '?' : rank.maxConcurrency.toFixed(2),
    ];
    const before = rows.at(-1);
    if (before !== undefined && before.cells.join() === cells.join()) before.last = rank;
    else rows.push({ cells, first: rank, last: rank });
  }
  const heads = ['rank', 'node', 'weights', 'engine', 'peak', 'B/token', 'state', 'pool', 'block', 'at once'];
  return table([
    heads.map((head) => style.paint.quiet(head)),
    ...rows.map(({ cells, first, last }) => [
      first === last ? `${first.rank}` : `${first.rank}-${last.rank}`,
      first.node === last.node ? first.node : `${first.node} to ${last.node}`,
      ...cells,
    ]),
  ]);
}

function size(bytes: number | null): string {
  return bytes === null ? '?' : gibNumber(bytes);
}

function small(bytes: number | null): string {
  if (bytes === null) return '?';
  return bytes === 0 ? 'none' : gib(bytes);
}

function count(value: number | null): string {
  return value === null ? '?' : thousands(value);
}

function changeLines({ change, to, verdict, why }: FitChange, style: Style): readonly string[] {
  const value =
    change === 'clearing' && typeof to === 'number'
      ? gib(to)
      : typeof to === 'number' && to > 1
        ? thousands(to)
        : String(to);
  return wrap(`${change}: ${value} (${verdict}): ${why}`, style.columns - 4).map((line, index) =>
    index === 0 ? `  ${style.glyphs.dot} ${line}` : `    ${line}`,
  );
}

function checkLines({ what, marginBytes, errorBytes, name }: FitCheck, style: Style): readonly string[] {
  const [glyph, colour] =
    marginBytes + errorBytes < 0
      ? [style.glyphs.failed, style.paint.bad]
      : marginBytes - errorBytes < 0
        ? [style.glyphs.slow, style.paint.wait]
        : [style.glyphs.done, style.paint.ok];
  const margin =
    name === 'layout'
      ? ''
      : `: ${marginBytes < 0 ? `${gib(-marginBytes)} short` : `${gib(marginBytes)} to spare`}, give or take ${gib(errorBytes)}`;
  return wrap(`${what}${margin}`, style.columns - 4).map((line, index) =>
    index === 0 ? `  ${colour(glyph)} ${line}` : `    ${line}`,
  );
}
