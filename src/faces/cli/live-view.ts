import { nowLine } from '../../domain/now-line.ts';
import type { RunState } from '../../domain/run-state.ts';
import { gib, gibNumber, stopwatch } from '../../domain/units.ts';
import { attemptGrid, finishedAttempt } from './attempt-grid.ts';
import { type Paint, paint } from './color.ts';
import { type Glyphs, glyphs as glyphSet, plainAscii } from './glyphs.ts';
import { beatOnto, type Ledger, ledgerOf, memoryBar } from './ledger.ts';
import { rail } from './rail.ts';
import { fill, pad, truncate, width } from './width.ts';

/** What is live and in no journal: the last beats of the nodes, the last lines of the ranks. */
export type LiveState = {
  /** Node → MemAvailable in bytes since the last look. */
  readonly beats: ReadonlyMap<string, number>;
  readonly lines: readonly { readonly rank: number; readonly at: number; readonly text: string }[];
  readonly interrupted: boolean;
};

export const noLive: LiveState = { beats: new Map(), lines: [], interrupted: false };

export type FrameOptions = {
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  readonly color: boolean;
  readonly unicode: boolean;
};

/** What the parts of the frame are drawn with. */
export type Pen = {
  readonly columns: number;
  readonly now: number;
  readonly paint: Paint;
  readonly glyphs: Glyphs;
};

const MOST_LOG_LINES = 6;

/**
 * The live view of a run: at most `rows` − 1 lines, none wider than `columns`. What does not fit goes in this
 * order: log lines, legend, finished attempts, memory of nodes that are not in question.
 */
export function frame(state: RunState, live: LiveState, options: FrameOptions): string[] {
  const pen: Pen = {
    columns: options.columns,
    now: options.now,
    paint: paint(options.color),
    glyphs: glyphSet(options.unicode),
  };
  const room = Math.max(4, options.rows - 1);
  const current = state.attempts.at(-1);
  const head = header(state, pen);
  const last = [lastRow(state, live, pen)];
  const railRow = [rail(state, pen)];
  const work = current ? attemptGrid(current, pen) : steps(state, pen);
  const memory = memoryRows(state, live, pen);
  const finished = state.attempts.slice(0, -1).flatMap((attempt) => finishedAttempt(attempt, pen));
  const legend = memory.legend === '' ? [] : [memory.legend];

  let left = room - head.length - last.length - railRow.length - work.length;
  const take = (lines: readonly string[], whole: boolean): readonly string[] => {
    if (left <= 0 || (whole && lines.length > left)) return [];
    // Of attempts the last ones are kept, they are what the present one follows from.
    const kept = whole ? lines : lines.slice(-left);
    left -= kept.length;
    return kept;
  };
  const asked = take(memory.inQuestion, false);
  const others = take(memory.rest, false);
  const past = take(finished, false);
  const key = take(legend, true);
  const spare = left;
  const logs = logLines(state, live, Math.min(MOST_LOG_LINES, spare), pen);
  left -= logs.length;
  const gap = (): readonly string[] => take([''], true);
  const afterHead = gap();
  const beforeRail = gap();
  const beforeWork = work.length + past.length > 0 ? gap() : [];
  const beforeLogs = logs.length > 0 ? gap() : [];
  const lines = [
    ...head,
    ...afterHead,
    ...inOrder(memory.order, [...asked, ...others]),
    ...key,
    ...beforeRail,
    ...railRow,
    ...beforeWork,
    ...past,
    ...work,
    ...beforeLogs,
    ...logs,
    ...last,
  ];
  return lines.slice(0, room).map((line) => {
    const written = options.unicode ? line : plainAscii(line);
    return truncate(written, options.columns, pen.glyphs.ellipsis).trimEnd();
  });
}

function header(state: RunState, pen: Pen): readonly string[] {
  const { paint: colours, glyphs, columns, now } = pen;
  const line = nowLine(state, now);
  const took = state.startedAt
    ? stopwatch((state.ended ? Date.parse(state.ended.at) : now) - Date.parse(state.startedAt))
    : '';
  const right = [state.cluster, state.run === '' ? '' : `run ${state.run}`, took]
    .filter((part) => part !== '')
    .join(` ${glyphs.dot} `);
  const shownRight = fill(right, Math.min(width(right), Math.floor(columns / 2)), glyphs.ellipsis);
  const left = fill(
    `firstlight ${state.operation ?? 'up'} ${state.recipe ?? ''}`,
    columns - width(shownRight) - 2,
    glyphs.ellipsis,
  );
  const mark = glyphOf(line.glyph, pen);
  return [
    `${colours.strong(left)}  ${shownRight}`,
    truncate(`${mark === '' ? '' : `${mark} `}${colours.strong(line.sentence)}`, columns, glyphs.ellipsis),
    ...(line.next === '' ? [] : [colours.quiet(fill(line.next, columns, glyphs.ellipsis).trimEnd())]),
  ];
}

/** The glyph of a Now line in its colour, from the set that this terminal can show. */
export function glyphOf(glyph: string, pen: Pick<Pen, 'glyphs' | 'paint'>): string {
  const { glyphs, paint: colours } = pen;
  switch (glyph) {
    case '✓':
      return colours.ok(glyphs.done);
    case '◔':
      return colours.working(glyphs.working);
    case '◐':
      return colours.wait(glyphs.waits);
    case '!':
      return colours.wait(glyphs.slow);
    case '✕':
      return colours.bad(glyphs.failed);
    case '?':
      return glyphs.unknown;
    default:
      return '';
  }
}

type MemoryRows = {
  readonly inQuestion: readonly string[];
  readonly rest: readonly string[];
  readonly legend: string;
  /** Rows as they stand on the screen; those that were not taken fall out. */
  readonly order: readonly string[];
};

function memoryRows(state: RunState, live: LiveState, pen: Pen): MemoryRows {
  const { columns, glyphs } = pen;
  const nodes = state.nodes;
  const head = state.plan?.ranks[0] ?? nodes[0];
  const ranks = state.attempts.at(-1)?.ranks ?? [];
  const ledgers = new Map(
    nodes.map((node) => {
      const ledger = ledgerOf(state.facts.find((facts) => facts.node === node));
      const runs = ranks.some((rank) => rank.node === node && !rank.ended);
      return [node, ledger ? beatOnto(ledger, live.beats.get(node), runs) : undefined];
    }),
  );
  const scaleBytes = Math.max(1, ...[...ledgers.values()].map((ledger) => ledger?.totalBytes ?? 0));
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

function inOrder(order: readonly string[], taken: readonly string[]): readonly string[] {
  const left = [...taken];
  return order.filter((line) => {
    const at = left.indexOf(line);
    if (at !== -1) left.splice(at, 1);
    return at !== -1;
  });
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

/** Before the first launch: the steps that run now and those that come. */
function steps(state: RunState, pen: Pen): readonly string[] {
  const { glyphs, paint: colours, columns } = pen;
  return state.steps
    .filter((step) => step.result === 'running')
    .slice(-4)
    .map((step) => {
      const since = stopwatch(pen.now - Date.parse(step.startedAt));
      const text = fill(`${step.node}  ${step.title}`, Math.max(20, columns - 12), glyphs.ellipsis).trimEnd();
      return `${colours.working(glyphs.working)} ${text}  ${since}`;
    });
}

function logLines(state: RunState, live: LiveState, most: number, pen: Pen): readonly string[] {
  if (most <= 0) return [];
  const started = state.startedAt ? Date.parse(state.startedAt) : pen.now;
  return live.lines.slice(-most).map((line) => {
    const since = `+${stopwatch(line.at - started)}`.padStart(5);
    return fill(
      `${since} ${line.rank}${pen.glyphs.gutter}${line.text.trim()}`,
      pen.columns,
      pen.glyphs.ellipsis,
    ).trimEnd();
  });
}

/** What Ctrl-C would do now. */
function lastRow(state: RunState, live: LiveState, pen: Pen): string {
  const text = live.interrupted ? 'Ctrl-C again leaves at once' : ctrlC(state);
  const line = fill(text, Math.min(width(text), pen.columns), pen.glyphs.ellipsis);
  return ' '.repeat(pen.columns - width(line)) + pen.paint.quiet(line);
}

function ctrlC(state: RunState): string {
  if (state.operation !== 'up') return 'Ctrl-C ends after this step; what is done stays done';
  switch (state.phase) {
    case 'following':
    case 'proving':
      return state.attempts.at(-1)?.ranks.every((rank) => rank.ended)
        ? 'Ctrl-C ends the run, nothing of ours runs'
        : 'Ctrl-C detaches, the ranks run on';
    case 'launching':
      return 'Ctrl-C detaches once all ranks are started';
    case 'waiting':
      return 'Ctrl-C ends the run, nothing is stopped';
    case 'clearing':
      return 'Ctrl-C ends after this step; what was stopped can be given back';
    default:
      return 'Ctrl-C ends the run, nothing is changed by it';
  }
}
