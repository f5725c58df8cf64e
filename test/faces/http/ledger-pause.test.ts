import { describe, expect, it } from 'vitest';
import type { Stage } from '../../../src/domain/finding.ts';
import { blank, foldAll, type RunState } from '../../../src/domain/run-state.ts';
import { ledgerPause } from '../../../src/faces/http/channels.ts';

/** A run whose one rank came that far. */
function at(stage: Stage): RunState {
  const head = {
    v: 1,
    run: '1',
    at: '2026-11-29T10:00:00.000Z',
    attempt: 1,
    node: 'spark-a',
    rank: 0,
  } as const;
  return foldAll([
    {
      ...head,
      seq: 1,
      type: 'rank-started',
      role: 'head',
      engine: 'vllm',
      name: 'r0',
      log: '',
      followed: true,
    },
    { ...head, seq: 2, type: 'rank-stage', stage, percent: undefined, line: 1 },
  ]);
}

describe('how often the page sees the memory of the nodes', () => {
  it('is each second while a rank loads, else every five', () => {
    expect(ledgerPause(undefined, 100)).toBe(5000);
    expect(ledgerPause(blank, 100)).toBe(5000);
    expect(ledgerPause(at('weights'), 100)).toBe(1000);
    expect(ledgerPause(at('serving'), 100)).toBe(5000);
  });

  it('is less often where a look takes long, so that the nodes work for the run', () => {
    expect(ledgerPause(at('weights'), 400)).toBe(2000);
    expect(ledgerPause(at('weights'), 30_000)).toBe(5000);
    expect(ledgerPause(at('serving'), 400)).toBe(5000);
  });
});
