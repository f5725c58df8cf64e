import { describe, expect, it } from 'vitest';
import type { MemoryMeasured } from '../../src/domain/memory-measured.ts';
import { keyOf, learnedFor, type Remembered } from '../../src/planning/learned.ts';
import { plan } from '../../src/planning/plan.ts';
import { GIB, spark, sparkNodes, sparkRecipe, sparks } from '../pretend/facts.ts';

const recipe = sparkRecipe();
const facts = [spark('a'), spark('b')];

let launches = 0;
function memory(node: 'spark-a' | 'spark-b', differs: Partial<MemoryMeasured> = {}): Remembered {
  launches += 1;
  return {
    at: `2026-11-0${1 + (launches % 9)}T10:00:00.000Z`,
    run: String(launches),
    measured: {
      ...keyOf(recipe, 'sglang', node, facts),
      rank: node === 'spark-a' ? 0 : 1,
      ranksThere: 1,
      unified: true,
      launch: `${launches}/1`,
      served: true,
      weightsBytes: 59.2 * GIB,
      poolBytes: 27.7 * GIB,
      graphsBytes: 1.2 * GIB,
      availableBytes: 115 * GIB,
      lowestBytes: 23 * GIB,
      ...differs,
    },
  };
}

const learned = (memories: readonly Remembered[], node: 'spark-a' | 'spark-b' = 'spark-b') =>
  learnedFor(memories, keyOf(recipe, 'sglang', node, facts));
const bytesOf = (memories: readonly Remembered[], what: string): number | undefined =>
  learned(memories).find((one) => one.what === what)?.bytes;

describe('what was measured before', () => {
  it('is weights as loaded, and all else that went from the node', () => {
    expect(learned([memory('spark-b')])).toMatchObject([
      { what: 'weightsBytes', bytes: 59.2 * GIB, times: 1, spreadBytes: 0, node: 'spark-b' },
      { what: 'overheadBytes', bytes: expect.closeTo((115 - 23 - 59.2 - 27.7) * GIB, -3) },
    ]);
  });

  it('is the largest of the newest five, with how far they lay apart', () => {
    const grown = [59, 59.2, 59.1].map((gib) => memory('spark-b', { weightsBytes: gib * GIB }));
    expect(learned(grown)[0]).toMatchObject({ bytes: 59.2 * GIB, times: 3 });
    expect(learned(grown)[0]?.spreadBytes).toBeCloseTo(0.2 * GIB, -3);
  });

  it('counts a launch once that was followed twice', () => {
    const one = memory('spark-b');
    expect(learned([one, { ...one, run: '99' }])[0]).toMatchObject({
      times: 1,
      from: expect.stringContaining('run 99'),
    });
  });

  it('keeps what a launch took beside its weights when a later run only follows it', () => {
    const one = memory('spark-b');
    const followed = { ...one, run: '99', measured: { ...one.measured, availableBytes: undefined } };
    expect(bytesOf([one, followed], 'overheadBytes')).toBeCloseTo((115 - 23 - 59.2 - 27.7) * GIB, -3);
  });

  it('is taken from the node itself, else from its peer', () => {
    const peer = memory('spark-a', { weightsBytes: 61 * GIB });
    expect(bytesOf([peer], 'weightsBytes')).toBe(61 * GIB);
    expect(learned([peer])[0]?.from).toContain('on spark-a');
    expect(bytesOf([peer, memory('spark-b')], 'weightsBytes')).toBe(59.2 * GIB);
  });

  it.each([
    ['model', { model: 'Qwen/Other' }],
    ['files', { modelBytes: 1 }],
    ['engine', { engine: 'vllm' as const }],
    ['image', { image: 'lmsysorg/sglang:v0.6 sha256:0' }],
    ['flags', { flags: '{}' }],
  ])('is not taken from a run with another %s', (_, differs) => {
    const known = memory('spark-b', { modelBytes: 5, ...differs });
    const key = { ...keyOf(recipe, 'sglang', 'spark-b', facts), modelBytes: 5 };
    expect(learnedFor([memory('spark-b', { modelBytes: 5 })], key)).not.toEqual([]);
    expect(learnedFor([known], key)).toEqual([]);
  });

  it('tells no overhead of a launch that failed, had others beside it, or a cache that nobody saw', () => {
    for (const differs of [
      { served: false },
      { ranksThere: 2 },
      { unified: false },
      { poolBytes: undefined },
      { lowestBytes: undefined },
      { sequences: 4 },
      { lowestBytes: 60 * GIB },
    ])
      expect(bytesOf([memory('spark-b', differs)], 'overheadBytes')).toBeUndefined();
    expect(bytesOf([memory('spark-b', { served: false })], 'weightsBytes')).toBe(59.2 * GIB);
  });

  it('goes before the prediction in the next plan, which says so', () => {
    const planned = (remembered: readonly Remembered[]) =>
      plan({
        cluster: sparks,
        nodes: sparkNodes,
        recipe,
        recipeDigest: 'd',
        edits: [],
        engine: 'sglang',
        facts,
        sudo: {},
        replace: false,
        remembered,
      }).memory[1];
    const before = planned([]);
    const after = planned([memory('spark-b', { weightsBytes: 62 * GIB, lowestBytes: 20 * GIB })]);
    expect(before?.weightsBytes).not.toBe(62 * GIB);
    expect(after?.weightsBytes).toBe(62 * GIB);
    expect(after?.errorBytes).toBeLessThan(before?.errorBytes ?? 0);
    expect(after?.rules.join('\n')).toMatch(/measured once on this cluster \(run \d+, 2026-11-0\d\)/);
  });
});
