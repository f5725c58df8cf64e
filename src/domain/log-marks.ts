import { STAGES } from './finding.ts';
import type { LogRow } from './log-rows.ts';
import type { AttemptState, RankState, RunState } from './run-state.ts';
import { STAGE_WORDS } from './run-words.ts';

/** A rank that moved on: it entered a stage, or it ended. */
export type Move = {
  readonly attempt: number;
  readonly rank: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** "rank 0 · weights", "rank 1 ended, exit 1". */
  readonly text: string;
  /** "weights", "ended, exit 1". */
  readonly word: string;
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
        .flatMap((rank) => movesOfRank(one, rank, several)),
    );
}

function movesOfRank(
  { attempt }: AttemptState,
  { rank, entered, ended }: RankState,
  several: boolean,
): readonly Move[] {
  const move = (iso: string, word: string, text: string): Move => ({
    attempt,
    rank,
    at: Date.parse(iso),
    text: `rank ${rank} ${text}`,
    word,
  });
  const stages = STAGES.flatMap((stage) => {
    const at = entered[stage];
    const word = STAGE_WORDS[stage];
    if (at === undefined) return [];
    return [move(at, word, `· ${stage === 'start' && several ? `attempt ${attempt}` : word}`)];
  });
  if (ended === undefined) return stages;
  const how = ended.requested ? 'stopped' : ended.code === undefined ? 'ended' : `ended, exit ${ended.code}`;
  return [...stages, move(ended.at, how, how)];
}

/**
 * Where the ranks stand at that row: "weights", "attempt 2 · rank 0 weights · rank 1 KV cache"; empty before the first
 * of them began.
 */
export function markAt(moves: readonly Move[], row: Pick<LogRow, 'attempt' | 'at'>): string {
  const latest = new Map<number, Move>();
  for (const move of moves) {
    const before = latest.get(move.rank);
    if (move.attempt !== row.attempt || move.at > row.at) continue;
    if (before === undefined || move.at >= before.at) latest.set(move.rank, move);
  }
  const ranks = [...latest.values()].sort((a, b) => a.rank - b.rank);
  if (ranks.length === 0) return '';
  const words = new Set(ranks.map(({ word }) => word));
  const each = words.size === 1 ? [...words] : ranks.map(({ rank, word }) => `rank ${rank} ${word}`);
  const several = new Set(moves.map(({ attempt }) => attempt)).size > 1;
  return [...(several ? [`attempt ${row.attempt}`] : []), ...each].join(' · ');
}
