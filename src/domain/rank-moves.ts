import type { Event } from './event.ts';
import type { AttemptState, RankState } from './run-state.ts';

/** What a rank tells of how far it is: by far the most events of a long run. */
export type RankMove = Extract<Event, { readonly type: 'rank-stage' }>;

/** The ranks after these moves, in their order; each rank that moved is made anew once, however often it did. */
export function moveRanks(
  attempts: readonly AttemptState[],
  moves: readonly RankMove[],
): readonly AttemptState[] {
  return attempts.map((attempt) => {
    const own = moves.filter((move) => move.attempt === attempt.attempt);
    return own.length === 0 ? attempt : { ...attempt, ranks: attempt.ranks.map((rank) => moved(rank, own)) };
  });
}

function moved(rank: RankState, moves: readonly RankMove[]): RankState {
  let { stage, percent, entered, movedAt } = rank;
  let any = false;
  for (const move of moves) {
    if (move.rank !== rank.rank) continue;
    any = true;
    if (move.stage !== stage || move.percent !== percent) movedAt = move.at;
    stage = move.stage;
    percent = move.percent;
    if (!(stage in entered)) entered = { ...entered, [stage]: move.at };
  }
  return any ? { ...rank, stage, percent, entered, movedAt } : rank;
}
