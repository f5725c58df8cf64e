import type { Stage } from '../domain/finding.ts';
import type { RunState } from '../domain/run-state.ts';
import type { World } from './world.ts';

export type LogRow = {
  readonly rank: number;
  readonly node: string;
  readonly attempt: number;
  readonly line: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly stage: Stage;
  readonly level: 'error' | 'warning' | '';
  readonly text: string;
};

export type LogQuery = {
  /** First row; the tail where left out. */
  readonly from: number | undefined;
  readonly count: number;
  /** Empty: all. */
  readonly ranks: readonly number[];
  readonly attempt: number | undefined;
  readonly stage: Stage | undefined;
  readonly level: 'error' | 'warning' | undefined;
  /** Found anywhere in the text, large and small letters alike. */
  readonly q: string;
};

export type LogWindow = {
  readonly total: number;
  readonly from: number;
  readonly rows: readonly LogRow[];
  readonly warnings: number;
  readonly errors: number;
};

/** A window of the merged log of a run's ranks under a filter. */
export async function logWindow(
  world: Pick<World, 'journal'>,
  state: RunState,
  query: LogQuery,
): Promise<LogWindow> {
  const wanted = query.q.toLowerCase();
  const all = state.attempts.flatMap(({ attempt, ranks }) =>
    query.attempt !== undefined && attempt !== query.attempt
      ? []
      : ranks
          .filter(({ rank }) => query.ranks.length === 0 || query.ranks.includes(rank))
          .flatMap((rank) =>
            world.journal.readLog(state.run, attempt, rank.rank).map((line) => ({
              rank: rank.rank,
              node: rank.node,
              attempt,
              ...line,
              stage: stageAt(rank.entered, line.at),
              level: levelOf(line.text),
            })),
          ),
  );
  const rows = all
    .filter(
      (row) =>
        (query.stage === undefined || row.stage === query.stage) &&
        (wanted === '' || row.text.toLowerCase().includes(wanted)),
    )
    .sort((a, b) => a.at - b.at || a.rank - b.rank || a.line - b.line);
  const found = query.level === undefined ? rows : rows.filter((row) => row.level === query.level);
  const from = Math.max(0, Math.min(query.from ?? found.length - query.count, found.length));
  return {
    total: found.length,
    from,
    rows: found.slice(from, from + query.count),
    warnings: rows.filter((row) => row.level === 'warning').length,
    errors: rows.filter((row) => row.level === 'error').length,
  };
}

function stageAt(entered: Readonly<Partial<Record<Stage, string>>>, at: number): Stage {
  let stage: Stage = 'start';
  let since = Number.NEGATIVE_INFINITY;
  for (const [name, time] of Object.entries(entered)) {
    const began = Date.parse(time);
    if (began > at || began < since || !isStage(name)) continue;
    since = began;
    stage = name;
  }
  return stage;
}

function isStage(name: string): name is Stage {
  return ['start', 'rendezvous', 'weights', 'kv', 'graphs', 'warmup', 'serving'].includes(name);
}

function levelOf(text: string): LogRow['level'] {
  if (/\b(ERROR|CRITICAL|FATAL)\b|\b\w*(Error|Exception)\b:|^Traceback /.test(text)) return 'error';
  return /\bWARN(ING)?\b/.test(text) ? 'warning' : '';
}
