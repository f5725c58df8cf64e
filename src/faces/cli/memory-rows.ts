import type { Ledger } from '../../domain/ledger.ts';
import type { RunState } from '../../domain/run-state.ts';
import { gib, gibNumber } from '../../domain/units.ts';
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
  const nodes = state.nodes;
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
  const rows = labels.map(({ node, label }) => {
    const facts = state.facts.find((one) => one.node === node);
    const ledger = ledgers.get(node);
    const name = fill(label, nameColumns - 1, glyphs.ellipsis);
    const lines = ledger
      ? [
          `${name} ${memoryBar(ledger, { cells, scaleBytes, reserveBytes, glyphs, paint: pen.paint })}   ${gib(ledger.availableBytes)} available`,
          ...planTrack(state, ledger, { nameColumns, cells, scaleBytes }, pen),
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

/** Under the bar, before the launch: what stays, what the plan would use, its error bar. */
function planTrack(
  state: RunState,
  ledger: Ledger,
  layout: { readonly nameColumns: number; readonly cells: number; readonly scaleBytes: number },
  pen: Pen,
): readonly string[] {
  const planned = state.plan?.memory.find((one) => one.node === ledger.node);
  if (!planned || pen.columns < PLAN_COLUMNS || state.serving) return [];
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
  const track =
    glyphs.stays.repeat(stays) +
    colours.working(glyphs.planned.repeat(Math.max(0, to - stays))) +
    glyphs.whisker.repeat(whisker) +
    (gap >= 0 && reserve < layout.cells ? `${' '.repeat(gap)}${glyphs.reserve}` : '');
  const verdict = {
    fits: 'fits',
    'may-boot': 'may boot',
    'does-not-fit': 'does not fit',
    unknown: 'unknown',
  }[planned.verdict];
  return [
    `${pad('   plan', layout.nameColumns)}${pad(track, layout.cells)}   ${gibNumber(planned.sumBytes)} ± ${gibNumber(planned.errorBytes)} GiB: ${verdict}`,
  ];
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
  return parts.filter((part) => part !== '').join('  ');
}
