import { STAGES, type Stage } from '../../../domain/finding.ts';
import type { AttemptState, RankState } from '../../../domain/run-state.ts';
import { STAGE_WORDS, silence } from '../../../domain/run-words.ts';
import { stopwatch } from '../../../domain/units.ts';

/** The stages that have a column; `start` is counted into the first. */
export const COLUMNS = ['rendezvous', 'weights', 'kv', 'graphs', 'warmup', 'serving'] as const;
export type Column = (typeof COLUMNS)[number];

export type CellState = 'done' | 'working' | 'still' | 'failed' | 'peer' | 'ready' | 'ahead' | 'never';

/** One rank at one stage. */
export type Cell = {
  readonly column: Column;
  readonly state: CellState;
  /** What stands in it. */
  readonly strong: string;
  readonly text: string;
  readonly percent: number | undefined;
  /** The cell in words. */
  readonly label: string;
};

export type Row = {
  readonly rank: number;
  readonly node: string;
  readonly role: 'head' | 'worker';
  readonly cells: readonly Cell[];
  /** Stages in true time, milliseconds since the attempt's start. */
  readonly ribbon: readonly { readonly column: Column; readonly from: number; readonly to: number }[];
};

export type AttemptPicture = {
  readonly attempt: number;
  readonly engine: string;
  readonly state: 'working' | 'failed' | 'serving';
  readonly result: string;
  readonly took: number;
  readonly rows: readonly Row[];
};

/** One attempt as rows of cells; `now` in ms. `ended` is when the run ended, where it did. */
export function attemptPicture(
  attempt: AttemptState,
  now: number,
  ended: number | undefined,
): AttemptPicture {
  const failed = attempt.finding?.final === true;
  const serving = attempt.ranks.some((rank) => rank.stage === 'serving') && !failed;
  const over = attempt.ranks.flatMap((rank) => (rank.ended ? [Date.parse(rank.ended.at)] : []));
  const start = Date.parse(attempt.startedAt);
  const end = failed && over.length > 0 ? Math.max(...over) : (ended ?? now);
  const until = serving ? firstServing(attempt) : end;
  const stage = attempt.finding?.stage ?? attempt.ranks[0]?.stage ?? 'start';
  return {
    attempt: attempt.attempt,
    engine: attempt.engine,
    state: failed ? 'failed' : serving ? 'serving' : 'working',
    result: failed ? `failed at ${STAGE_WORDS[stage]}` : serving ? 'serving' : DOING[leastOf(attempt)],
    took: Math.max(0, until - start),
    rows: attempt.ranks.map((rank) => row(rank, attempt, now, end)),
  };
}

const DOING: Readonly<Record<Stage, string>> = {
  start: 'starting',
  rendezvous: 'waiting for the ranks to meet',
  weights: 'loading weights',
  kv: 'setting up the KV cache',
  graphs: 'capturing graphs',
  warmup: 'warming up',
  serving: 'serving',
};

function leastOf(attempt: AttemptState): Stage {
  const at = Math.min(...attempt.ranks.map((rank) => STAGES.indexOf(rank.stage)));
  return STAGES[at] ?? 'start';
}

function firstServing(attempt: AttemptState): number {
  const times = attempt.ranks.flatMap((rank) =>
    rank.entered.serving === undefined ? [] : [Date.parse(rank.entered.serving)],
  );
  return Math.max(...times);
}

function row(rank: RankState, attempt: AttemptState, now: number, end: number): Row {
  const here = Math.max(0, COLUMNS.indexOf(columnOf(rank.stage)));
  return {
    rank: rank.rank,
    node: rank.node,
    role: rank.role,
    cells: COLUMNS.map((column, at) => cell(rank, attempt, column, at - here, now)),
    ribbon: ribbon(rank, Date.parse(attempt.startedAt), end),
  };
}

function columnOf(stage: Stage): Column {
  return stage === 'start' ? 'rendezvous' : stage;
}

function cell(rank: RankState, attempt: AttemptState, column: Column, ahead: number, now: number): Cell {
  const blank = { column, strong: '', text: '', percent: undefined };
  const word = STAGE_WORDS[column];
  if (ahead > 0) {
    const state = rank.ended || attempt.finding?.final ? 'never' : 'ahead';
    return { ...blank, state, label: `${word}, ${state === 'never' ? 'not reached' : 'to come'}` };
  }
  const took = spent(rank, column);
  if (ahead < 0)
    return { ...blank, state: 'done', text: took, label: `${word}, done in ${took || 'no time'}` };
  if (rank.ended) return endedCell(rank, attempt, column, blank);
  if (column === 'serving') return { ...blank, state: 'ready', strong: 'ready', label: 'serving, ready' };
  const quiet = silence(rank, now);
  const percent = rank.stage === column ? rank.percent : undefined;
  const strong = percent === undefined ? '' : `${Math.floor(percent)} %`;
  const since = stopwatch(now - Date.parse(rank.entered[rank.stage] ?? rank.movedAt));
  if (quiet) {
    const limit = quiet.limit === undefined ? '' : `, limit ${stopwatch(quiet.limit)}`;
    const text = `no progress for ${stopwatch(quiet.still)}${limit}`;
    return { column, state: 'still', strong, text, percent, label: `${word}, ${strong} ${text}` };
  }
  return {
    column,
    state: 'working',
    strong,
    text: since,
    percent,
    label: `${word}, ${strong || 'working'}, for ${since}`,
  };
}

function endedCell(
  rank: RankState,
  attempt: AttemptState,
  column: Column,
  blank: Omit<Cell, 'state' | 'label' | 'column'>,
): Cell {
  const code = rank.ended?.code;
  const after = stopwatch(Date.parse(rank.ended?.at ?? attempt.startedAt) - enteredAt(rank, attempt));
  const word = STAGE_WORDS[column];
  const mine = attempt.finding === undefined || attempt.finding.rank === rank.rank;
  if (rank.ended?.requested === true || (!mine && (code === 0 || code === undefined))) {
    const text = code === undefined ? 'ended' : `ended with ${code}`;
    return { ...blank, column, state: 'peer', text, label: `${word}, ${text}` };
  }
  const text = code === undefined ? 'ended' : `exit ${code}`;
  return {
    ...blank,
    column,
    state: 'failed',
    strong: after,
    text,
    label: `${word}, failed after ${after}, ${text}`,
  };
}

function enteredAt(rank: RankState, attempt: AttemptState): number {
  return Date.parse(rank.entered[rank.stage] ?? attempt.startedAt);
}

/** Time from entering a stage to entering the next one that was entered. */
function spent(rank: RankState, column: Column): string {
  const from =
    column === 'rendezvous' ? (rank.entered.start ?? rank.entered.rendezvous) : rank.entered[column];
  const to = laterThan(column)
    .map((stage) => rank.entered[stage])
    .find((at) => at !== undefined);
  return from !== undefined && to !== undefined ? stopwatch(Date.parse(to) - Date.parse(from)) : '';
}

function laterThan(column: Column): readonly Stage[] {
  return STAGES.slice(STAGES.indexOf(column) + 1);
}

function ribbon(rank: RankState, start: number, end: number): Row['ribbon'] {
  const entered = STAGES.flatMap((stage) => {
    const at = rank.entered[stage];
    return at === undefined ? [] : [{ column: columnOf(stage), from: Date.parse(at) - start }];
  });
  const until = (rank.ended ? Date.parse(rank.ended.at) : end) - start;
  // It serves for days: the ribbon is about how long it took to get there.
  return entered
    .map((one, index) => ({ ...one, to: entered[index + 1]?.from ?? until }))
    .filter((part) => part.column !== 'serving');
}
