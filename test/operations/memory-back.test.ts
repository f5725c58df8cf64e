import { describe, expect, it } from 'vitest';
import { known, unknown } from '../../src/domain/facts.ts';
import { memoryTargets } from '../../src/operations/memory-back.ts';
import { holderOf, sparkFacts } from '../diagnosis/facts.ts';

const GIB = 2 ** 30;
const rank = { name: 'qwen-r1', node: 'spark-b' };
const held = holderOf(65, { identity: 'r1', owner: { kind: 'rank', name: 'qwen-r1' } });
const gibOf = (targets: ReturnType<typeof memoryTargets>): readonly number[] =>
  targets.map(({ bytes }) => bytes / GIB);

describe('what a node should get back once our ranks are gone', () => {
  it('is what it had before the launch, less what looks differ by themselves', () => {
    const before = [sparkFacts({ node: 'spark-a' }), sparkFacts({ node: 'spark-b' })];
    expect(memoryTargets([rank], before)).toEqual([{ node: 'spark-b', bytes: 111 * GIB, gpus: 0 }]);
  });

  it('is what it has and what the ranks hold, where they ran at the look', () => {
    const memory = { availableBytes: 49 * GIB };
    const other = holderOf(9, { identity: 'r2', owner: { kind: 'rank', name: 'other-r0' } });
    const seen = [sparkFacts({ node: 'spark-b', memory, holders: [held, other] })];
    expect(gibOf(memoryTargets([rank], seen))).toEqual([111]);
  });

  it('is less by what somebody else has taken since', () => {
    const before = [sparkFacts({ node: 'spark-b', holders: [holderOf(2, { identity: 'there before' })] })];
    const holders = [held, holderOf(2, { identity: 'there before' }), holderOf(40, { identity: 'new' })];
    expect(gibOf(memoryTargets([rank], before, [sparkFacts({ node: 'spark-b', holders })]))).toEqual([71]);
  });

  it('is the GPUs’ own memory where they have some', () => {
    const gpu = { name: 'NVIDIA H200', unified: false, totalBytes: known(140 * GIB), driver: '580' };
    const gpus = known(
      [0, 1].map((index) => ({ ...gpu, index, uuid: `${index}`, freeBytes: known(130 * GIB) })),
    );
    expect(memoryTargets([rank], [sparkFacts({ node: 'spark-b', more: { gpus } })])).toEqual([
      { node: 'spark-b', bytes: 257 * GIB, gpus: 2 },
    ]);
  });

  it('is nothing to wait for where the memory is not known', () => {
    expect(memoryTargets([rank], [sparkFacts({ node: 'spark-b', more: { memory: unknown('no') } })])).toEqual(
      [],
    );
  });
});
