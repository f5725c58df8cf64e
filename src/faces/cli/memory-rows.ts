import { type NodeFacts, valueIf } from '../../domain/facts.ts';
import type { Ledger } from '../../domain/ledger.ts';
import type { RunState } from '../../domain/run-state.ts';
import { clock, gib, gibNumber } from '../../domain/units.ts';
import { liveLedgers } from './live-ledgers.ts';
import type { LiveState } from './live-state.ts';
import { memoryBar } from './memory-bar.ts';
import type { Pen } from './pen.ts';
import { fill, pad, width } from './width.ts';

/** The memory of all nodes as lines, those in question apart, so that the others can be left out. */
export type MemoryRows = {
  readonly inQuestion: readonly string[];
  readonly rest: readonly string[];
  readonly legend: string;
  /** Rows as they stand on the screen; those that were not taken fall out. */
  readonly order: readonly string[];
};

/** One bar per node; before the launch the plan's track under it on a wide terminal. */
export function memoryRows(state: RunState, live: LiveState, pen: Pen): MemoryRows {
  const { columns, glyphs } = pen;
  // What stops or gives back does not look at memory.
  const nodes = state.operation === 'up' || state.facts.length > 0 ? state.nodes : [];
  const head = state.plan?.ranks[0] ?? nodes[0];
  const { ledgers, scaleBytes } = liveLedgers(state, live);
  const labels = nodes.map((node) => ({
    node,
    label: nodes.length === 1 ? node : `${node} ${node === head ? 'head' : 'worker'}`,
  }));
  const nameColumns = Math.min(
    Math.max(15, ...labels.map(({ label }) => width(label))) + 1,
    Math.floor(columns / 3),
  );
  const cells = Math.max(12, Math.min(60, columns - nameColumns - 24));
  const reserveBytes = state.plan?.recipe.memory.reserve;
  const finding = state.attempts.at(-1)?.finding;
  const tracks = labels.map(({ node }) => {
    const ledger = ledgers.get(node);
    return ledger ? planTrack(state, ledger, { cells, scaleBytes }, pen) : undefined;
  });
  // What is alike on every node is drawn once, under the last.
  const alike =
    labels.length > 1 &&
    new Set(tracks.map((track) => track && `${track.bar}${track.needs}${track.says}`)).size === 1;
  const rows = labels.map(({ node, label }, at) => {
    const facts = state.facts.find((one) => one.node === node);
    const ledger = ledgers.get(node);
    const name = fill(label, nameColumns - 1, glyphs.ellipsis);
    const track = alike && at < labels.length - 1 ? undefined : tracks[at];
    const lines = ledger
      ? [
          `${name} ${memoryBar(ledger, { cells, scaleBytes, reserveBytes, glyphs, paint: pen.paint })}   ${gib(ledger.availableBytes)} ${availableWords(node, state, live, columns - nameColumns - cells - 3, pen)}${heatWords(facts, state, pen)}`,
          ...(track
            ? [
                `${pad('   plan', nameColumns)}${pad(`${track.bar}${track.reserve}`, cells)}   ${needWords(track, alike, columns - nameColumns - cells - 3)}`,
              ]
            : []),
        ]
      : [
          `${name} ${pen.paint.quiet(facts === undefined ? 'not looked at yet' : facts.reached ? `${glyphs.unknown} memory unknown` : `${glyphs.unknown} ${facts.failure.sentence}`)}`,
        ];
    const questioned = nodes.length <= 2 || !ledger || finding?.node === node || ledger.othersBytes > 0;
    return { lines, questioned };
  });
  const anyLedger = [...ledgers.values()].some((ledger) => ledger !== undefined);
  return {
    inQuestion: rows.filter((row) => row.questioned).flatMap((row) => row.lines),
    rest: rows.filter((row) => !row.questioned).flatMap((row) => row.lines),
    order: rows.flatMap((row) => row.lines),
    legend: anyLedger ? indented(legendOf([...ledgers.values()], pen), nameColumns, columns) : '',
  };
}

function indented(text: string, most: number, columns: number): string {
  return ' '.repeat(Math.max(0, Math.min(most, columns - width(text)))) + text;
}

const PLAN_COLUMNS = 100;
/** A figure that changes by the second is not shown as if it were of now for longer than this, ms. */
const HOLDS = 15_000;
/** Columns of the longest "117.0 GiB ". */
const SIZE_COLUMNS = 10;

/** "available", and of what time, where the last look and the last beat are not of now. */
function availableWords(node: string, state: RunState, live: LiveState, columns: number, pen: Pen): string {
  const looked = state.lookedAt === undefined ? pen.now : Date.parse(state.lookedAt);
  const seen = live.beats.has(node) ? (live.beatAt?.get(node) ?? pen.now) : looked;
  if (pen.now - seen <= HOLDS || state.ended) return 'available';
  const at = `at ${clock(new Date(seen).toISOString())}`;
  return pen.paint.quiet(`available ${at}`.length + SIZE_COLUMNS <= columns ? `available ${at}` : at);
}

type Track = {
  /** What stays, what the plan would use, its error bar. */
  readonly bar: string;
  /** From there to the line that the plan keeps to. */
  readonly reserve: string;
  readonly needs: string;
  readonly says: string;
};

/** What stands under the bar on a wide terminal, until it serves. */
function planTrack(
  state: RunState,
  ledger: Ledger,
  layout: { readonly cells: number; readonly scaleBytes: number },
  pen: Pen,
): Track | undefined {
  const planned = state.plan?.memory.find((one) => one.node === ledger.node);
  if (!planned || pen.columns < PLAN_COLUMNS || state.serving) return undefined;
  const { glyphs, paint: colours } = pen;
  const at = (bytes: number): number =>
    Math.max(0, Math.min(layout.cells, Math.round((bytes / layout.scaleBytes) * layout.cells)));
  // What stays: all that is not available, less ours and less what is on its way out.
  const going = goingBytes(state, ledger);
  const base = Math.max(0, ledger.totalBytes - ledger.availableBytes - ledger.oursBytes - going);
  const stays = at(base);
  const to = at(base + planned.sumBytes);
  const error = Math.max(1, at(planned.errorBytes));
  const whisker = Math.max(0, Math.min(error, layout.cells - to));
  const reserve = at(ledger.totalBytes - (state.plan?.recipe.memory.reserve ?? 0));
  const gap = reserve - to - whisker;
  const verdict = {
    fits: 'fits',
    'may-boot': 'may boot',
    'does-not-fit': 'does not fit',
    unknown: 'unknown',
  }[planned.verdict];
  return {
    bar:
      glyphs.stays.repeat(stays) +
      colours.working(glyphs.planned.repeat(Math.max(0, to - stays))) +
      glyphs.whisker.repeat(whisker),
    reserve: gap >= 0 && reserve < layout.cells ? `${' '.repeat(gap)}${glyphs.reserve}` : '',
    needs: `${gibNumber(planned.sumBytes)} ± ${gibNumber(planned.errorBytes)} GiB`,
    says: verdict,
  };
}

/** "88.3 ± 2.5 GiB on each: fits", shorter where there is no room for it. */
function needWords({ needs, says }: Track, each: boolean, columns: number): string {
  const words = [
    ...(each ? [`${needs} on each: ${says}`, `${needs} each: ${says}`] : []),
    `${needs}: ${says}`,
  ];
  return words.find((text) => width(text) <= columns) ?? `${needs}: ${says}`;
}

const HEAT_COLUMNS = 118;

/** "   3 %  46 °C   18 W" of the node's first GPU while the look is fresh and there is room for it. */
function heatWords(facts: NodeFacts | undefined, state: RunState, pen: Pen): string {
  if (pen.columns < HEAT_COLUMNS || !facts?.reached || state.lookedAt === undefined) return '';
  if (pen.now - Date.parse(state.lookedAt) > HOLDS) return '';
  const heat = valueIf(facts.gpus)?.[0]?.heat;
  if (heat === undefined) return '';
  const figure = (value: number | undefined, unit: string, columns: number): string =>
    value === undefined ? '' : `${String(Math.round(value)).padStart(columns)} ${unit}`;
  const words = [figure(heat.usePercent, '%', 4), figure(heat.celsius, '°C', 4), figure(heat.watts, 'W', 5)];
  return words.filter((word) => word !== '').join('');
}

/** Held by others that the consent given or asked for would stop. */
function goingBytes(state: RunState, ledger: Ledger): number {
  const steps = state.plan?.phases.flatMap((phase) => phase.steps) ?? [];
  const bytes = steps
    .filter((step) => step.node === ledger.node && state.consented.includes(step.id))
    .reduce((sum, step) => sum + (step.target?.bytes ?? 0), 0);
  return Math.min(bytes, ledger.othersBytes);
}

function legendOf(ledgers: readonly (Ledger | undefined)[], pen: Pen): string {
  const { glyphs, paint: colours } = pen;
  const some = (of: (ledger: Ledger) => number): boolean =>
    ledgers.some((ledger) => ledger !== undefined && of(ledger) > 0);
  const parts = [
    `${colours.quiet(glyphs.system)} system`,
    some((ledger) => ledger.unaccountedBytes) ? `${glyphs.unaccounted} unaccounted` : '',
    some((ledger) => ledger.othersBytes) ? `${colours.wait(glyphs.others)} others` : '',
    some((ledger) => ledger.oursBytes) ? `${colours.working(glyphs.ours)} ours` : '',
    `${colours.quiet(glyphs.cache)} page cache`,
    `${glyphs.free} free`,
    `${glyphs.reserve} reserve`,
  ];
  const shown = parts.filter((part) => part !== '');
  const wide = shown.join('  ');
  return width(wide) <= pen.columns ? wide : shown.join(' ').replace('page cache', 'cache');
}
