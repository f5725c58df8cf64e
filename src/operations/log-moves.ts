import { STAGES } from '../domain/finding.ts';
import type { AttemptState, RankState, RunState } from '../domain/run-state.ts';
import { STAGE_WORDS } from '../domain/run-words.ts';
import type { LogIndex } from './log-index.ts';

/** A rank that moved on: it entered a stage, or it ended. */
export type Move = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** "rank 0 · weights", "rank 1 ended, exit 1". */
  readonly text: string;
};

type Of = { readonly ranks: readonly number[]; readonly attempt: number | undefined };

/** How the ranks that the filter lets through moved on, attempt by attempt. */
export function movesOf(state: RunState, { ranks, attempt: wanted }: Of): readonly Move[] {
  return state.attempts
    .filter(({ attempt }) => wanted === undefined || attempt === wanted)
    .flatMap((attempt) =>
      attempt.ranks
        .filter(({ rank }) => ranks.length === 0 || ranks.includes(rank))
        .flatMap((rank) => movesOfRank(rank, prefixOf(state, attempt))),
    );
}

function movesOfRank({ rank, entered, ended }: RankState, prefix: string): readonly Move[] {
  const stages = STAGES.flatMap((stage) => {
    const at = entered[stage];
    return at === undefined
      ? []
      : [{ at: Date.parse(at), text: `${prefix}rank ${rank} · ${STAGE_WORDS[stage]}` }];
  });
  if (ended === undefined) return stages;
  const how = ended.requested ? 'stopped' : ended.code === undefined ? 'ended' : `ended, exit ${ended.code}`;
  return [...stages, { at: Date.parse(ended.at), text: `${prefix}rank ${rank} ${how}` }];
}

function prefixOf({ attempts }: RunState, { attempt }: AttemptState): string {
  return attempts.length > 1 ? `attempt ${attempt} · ` : '';
}

/** The first of these rows that is not before that moment; the last one where none is. */
export function rowAt(index: LogIndex, rows: readonly number[], at: number): number {
  let low = 0;
  for (let high = rows.length - 1; low < high; ) {
    const middle = (low + high) >> 1;
    if (index.row(rows[middle] ?? 0).at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
