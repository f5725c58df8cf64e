import { expect, it } from 'vitest';
import { known, type NodeFacts, unknown } from '../../src/domain/facts.ts';
import { memoryOnto } from '../../src/operations/memory-onto.ts';
import { GIB, memoryOf, spark, wholeModel } from '../pretend/facts.ts';

const nothing = unknown('nobody looked');

it('memory is as it is now, and what only a whole look sees as it was', () => {
  const before = [spark('a', { model: known(wholeModel()) }), spark('b')];
  const memory = known(memoryOf({ total: 121.6, free: 3, available: 20, cached: 17 }));
  const now: readonly NodeFacts[] = [
    spark('a', { memory, interfaces: nothing, rdma: nothing, disks: nothing, engines: nothing, at: 'now' }),
    spark('b', { holders: unknown('docker gave no answer') }),
  ];
  const [a, b] = memoryOnto(before, now);
  expect(a).toEqual({ ...spark('a', { model: known(wholeModel()) }), memory, at: 'now' });
  // What is unknown of memory now is unknown, whatever was seen before.
  expect(b).toEqual(now[1]);
  expect(a?.reached && a.memory.known && a.memory.value.availableBytes).toBe(20 * GIB);
});

it('a node that is out of sight now, or was not seen before, is as it is now', () => {
  const gone: NodeFacts = {
    node: 'spark-a',
    at: 'now',
    reached: false,
    failure: { kind: 'unreachable', why: 'refused', sentence: '', remedy: '', text: '' },
  };
  expect(memoryOnto([spark('a')], [gone])).toEqual([gone]);
  expect(memoryOnto([gone], [spark('a')])).toEqual([spark('a')]);
  expect(memoryOnto([], [spark('b')])).toEqual([spark('b')]);
});
