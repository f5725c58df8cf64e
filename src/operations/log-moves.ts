import { STAGES } from '../domain/finding.ts';
import type { RankState, RunState } from '../domain/run-state.ts';
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

/** How the ranks that the filter lets through moved on, attempt by attempt; where there are several, a start says of which. */
export function movesOf(state: RunState, { ranks, attempt: wanted }: Of): readonly Move[] {
  const several = state.attempts.length > 1;
  return state.attempts
    .filter(({ attempt }) => wanted === undefined || attempt === wanted)
    .flatMap((one) =>
      one.ranks
        .filter(({ rank }) => ranks.length === 0 || ranks.includes(rank))
        .flatMap((rank) => movesOfRank(rank, several ? `attempt ${one.attempt}` : STAGE_WORDS.start)),
    );
}

function movesOfRank({ rank, entered, ended }: RankState, start: string): readonly Move[] {
  const stages = STAGES.flatMap((stage) => {
    const at = entered[stage];
    const word = stage === 'start' ? start : STAGE_WORDS[stage];
    return at === undefined ? [] : [{ at: Date.parse(at), text: `rank ${rank} · ${word}` }];
  });
  if (ended === undefined) return stages;
  const how = ended.requested ? 'stopped' : ended.code === undefined ? 'ended' : `ended, exit ${ended.code}`;
  return [...stages, { at: Date.parse(ended.at), text: `rank ${rank} ${how}` }];
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
