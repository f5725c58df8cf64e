import { describe, expect, it } from 'vitest';
import { markAt, movesOf } from '../../src/domain/log-marks.ts';
import { foldAll } from '../../src/domain/run-state.ts';
import { storyEvents, storyTime } from '../pretend/story-events.ts';

const state = foldAll(storyEvents);
const all = movesOf(state, { ranks: [], attempt: undefined });
const entered = (attempt: number, rank: number, stage: 'weights' | 'kv' | 'serving'): number =>
  Date.parse(
    state.attempts.find((one) => one.attempt === attempt)?.ranks.find((one) => one.rank === rank)?.entered[
      stage
    ] ?? '',
  );

describe('the mark that stands over a line of the log', () => {
  const last = state.attempts.at(-1)?.attempt ?? 0;

  it('says where the ranks stand at that moment, each where they differ, and the attempt where there are several', () => {
    const [first, second] = [entered(last, 0, 'kv'), entered(last, 1, 'kv')];
    expect(state.attempts.length).toBeGreaterThan(1);
    expect(markAt(all, { attempt: last, at: Math.max(first, second) })).toMatch(/^attempt 2 · KV cache$/);
    const between = markAt(all, { attempt: last, at: Math.min(first, second) });
    const ahead = first < second ? 0 : 1;
    if (first !== second) expect(between).toContain(`rank ${ahead} KV cache`);
    expect(markAt(all, { attempt: last, at: Math.min(first, second) - 1 })).toBe('attempt 2 · weights');
    expect(markAt(all, { attempt: last, at: entered(last, 0, 'serving') + 60_000 })).toBe(
      'attempt 2 · serving',
    );
  });

  it('tells of the ranks under the filter alone, of ends with their code, and nothing before the first', () => {
    const one = movesOf(state, { ranks: [1], attempt: last });
    expect(markAt(one, { attempt: last, at: entered(last, 1, 'weights') })).toBe('weights');
    expect(markAt(one, { attempt: last, at: storyTime(0) })).toBe('');
    const moves = [
      { attempt: 1, rank: 0, at: 10, text: '', word: 'weights' },
      { attempt: 1, rank: 1, at: 10, text: '', word: 'weights' },
      { attempt: 1, rank: 0, at: 20, text: '', word: 'ended, exit 1' },
    ];
    expect(markAt(moves, { attempt: 1, at: 19 })).toBe('weights');
    expect(markAt(moves, { attempt: 1, at: 20 })).toBe('rank 0 ended, exit 1 · rank 1 weights');
  });
});
