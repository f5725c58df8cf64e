import { nowLine } from '../../domain/now-line.ts';
import type { RunState } from '../../domain/run-state.ts';
import { lowerFirst } from '../../domain/run-words.ts';
import { stopwatch } from '../../domain/units.ts';
import { attemptGrid, finishedAttempt } from './attempt-grid.ts';
import { paint } from './color.ts';
import { glyphs as glyphSet, plainAscii } from './glyphs.ts';
import { keysLine } from './keys.ts';
import type { LiveState } from './live-state.ts';
import { memoryRows } from './memory-rows.ts';
import { nowMark } from './now-mark.ts';
import { panelLines } from './panels.ts';
import type { Pen } from './pen.ts';
import { rail } from './rail.ts';
import { fill, truncate, width, wrap } from './width.ts';

export type FrameOptions = {
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  readonly color: boolean;
  readonly unicode: boolean;
};

const MOST_LOG_LINES = 6;

/**
 * The live view of a run: at most `rows` − 1 lines, none wider than `columns`. What does not fit goes in this
 * order: log lines, legend, finished attempts, memory of nodes that are not in question.
 */
export function frame(state: RunState, live: LiveState, options: FrameOptions): string[] {
  const pen = penOf(options);
  const room = roomOf(options);
  const lines =
    live.panel === undefined || live.panel === 'log'
      ? overview(state, live, room, pen)
      : opened(state, live, room, pen);
  return lines.slice(0, room).map((line) => {
    const written = options.unicode ? line : plainAscii(line);
    return truncate(written, options.columns, pen.glyphs.ellipsis).trimEnd();
  });
}

/** The last row from which an open panel can begin, so that its end is in view; 0 where it is whole. */
export function lastTop(state: RunState, live: LiveState, options: FrameOptions): number {
  const pen = penOf(options);
  const lines = panelLines(live.panel, state, live, pen);
  return Math.max(0, lines.length - panelRoom(header(state, pen).length, roomOf(options)));
}

function penOf(options: FrameOptions): Pen {
  return {
    columns: options.columns,
    now: options.now,
    paint: paint(options.color),
    glyphs: glyphSet(options.unicode),
  };
}

function roomOf(options: FrameOptions): number {
  return Math.max(4, options.rows - 1);
}

/** Rows of a panel: what the header, an empty row and the last one leave. */
function panelRoom(head: number, room: number): number {
  return Math.max(1, room - head - 2);
}

/** What a key opened, between the Now line and the last row; what is above and below it is counted. */
function opened(state: RunState, live: LiveState, room: number, pen: Pen): readonly string[] {
  const head = header(state, pen);
  const lines = panelLines(live.panel, state, live, pen);
  const rows = panelRoom(head.length, room);
  const top = Math.max(0, Math.min(live.top ?? 0, lines.length - rows));
  const shown = lines.slice(top, top + rows);
  const above = top > 0 ? `${top} more above` : '';
  const below = lines.length - top - rows > 0 ? `${lines.length - top - rows} more below` : '';
  const hidden = [above, below].filter((part) => part !== '').join(', ');
  const { paint: colours, glyphs } = pen;
  const note = hidden === '' ? '' : colours.quiet(`${glyphs.ellipsis} ${hidden}; up and down move`);
  return [...head, note, ...shown, lastRow(state, live, pen)];
}

function overview(state: RunState, live: LiveState, room: number, pen: Pen): readonly string[] {
  const current = state.attempts.at(-1);
  const head = header(state, pen);
  const last = [lastRow(state, live, pen)];
  const railRow = [rail(state, pen)].filter((line) => line !== '');
  const work = shortened(
    current ? attemptGrid(current, pen) : steps(state, pen),
    room - head.length - last.length - railRow.length,
    pen,
  );
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
  // With the log open it comes before all that the ranks' rows can do without.
  const logs = live.panel === 'log' ? take(logLines(state, live, left, pen), false) : undefined;
  const asked = take(memory.inQuestion, false);
  const others = take(memory.rest, false);
  const past = take(finished, false);
  const key = take(legend, true);
  const tail = logs ?? take(logLines(state, live, Math.min(MOST_LOG_LINES, left), pen), false);
  const gap = (): readonly string[] => take([''], true);
  const afterHead = gap();
  const beforeRail = gap();
  const beforeWork = work.length + past.length > 0 ? gap() : [];
  const beforeLogs = tail.length > 0 ? gap() : [];
  return [
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
    ...tail,
    ...last,
  ];
}

/** More ranks than rows: the first ones, and how many are not shown. */
function shortened(lines: readonly string[], most: number, pen: Pen): readonly string[] {
  if (lines.length <= most) return lines;
  const kept = Math.max(0, most - 1);
  return [
    ...lines.slice(0, kept),
    pen.paint.quiet(`${pen.glyphs.ellipsis} ${lines.length - kept} more rows`),
  ];
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
  const mark = nowMark(line.glyph, pen);
  const signed = mark === '' ? '' : `${mark} `;
  // The one sentence is told whole where a terminal is narrower than it.
  const sentence = wrap(line.sentence, columns - width(signed)).map((part, at) =>
    truncate(
      `${at === 0 ? signed : ' '.repeat(width(signed))}${colours.strong(part)}`,
      columns,
      glyphs.ellipsis,
    ),
  );
  return [
    `${colours.strong(left)}  ${shownRight}`,
    ...sentence,
    ...(line.next === '' ? [] : [colours.quiet(fill(line.next, columns, glyphs.ellipsis).trimEnd())]),
  ];
}

function inOrder(order: readonly string[], taken: readonly string[]): readonly string[] {
  const left = [...taken];
  return order.filter((line) => {
    const at = left.indexOf(line);
    if (at !== -1) left.splice(at, 1);
    return at !== -1;
  });
}

/** Before the first launch: the steps that run now and those that come. */
function steps(state: RunState, pen: Pen): readonly string[] {
  const { glyphs, paint: colours, columns } = pen;
  return state.steps
    .filter((step) => step.result === 'running')
    .slice(-4)
    .map((step) => {
      const since = stopwatch(pen.now - Date.parse(step.startedAt));
      const text = fill(
        `${step.node}  ${lowerFirst(step.title)}`,
        Math.max(20, columns - 12),
        glyphs.ellipsis,
      ).trimEnd();
      return `${colours.working(glyphs.working)} ${text}  ${since}`;
    });
}

function logLines(state: RunState, live: LiveState, most: number, pen: Pen): readonly string[] {
  if (most <= 0) return [];
  const started = state.startedAt ? Date.parse(state.startedAt) : pen.now;
  const written = live.lines.filter((line) => line.text.trim() !== '');
  return written.slice(-most).map((line) => {
    const since = `+${stopwatch(line.at - started)}`.padStart(5);
    return fill(
      `${since} ${line.rank}${pen.glyphs.gutter}${line.text.trim()}`,
      pen.columns,
      pen.glyphs.ellipsis,
    ).trimEnd();
  });
}

const LEAST_GAP = 3;

/** The keys, as far as there is room beside what Ctrl-C would do now, which is always said. */
function lastRow(state: RunState, live: LiveState, pen: Pen): string {
  const text = live.interrupted ? 'Ctrl-C again leaves at once' : ctrlC(state);
  const line = fill(text, Math.min(width(text), pen.columns), pen.glyphs.ellipsis);
  const room = pen.columns - width(line);
  const keys = live.keys === true ? keysLine(live.panel, room - LEAST_GAP) : '';
  return pen.paint.quiet(keys) + ' '.repeat(room - width(keys)) + pen.paint.quiet(line);
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
      return 'Ctrl-C ends after this step; firstlight restore gives back';
    default:
      return 'Ctrl-C ends the run, nothing is changed by it';
  }
}
