import { describe, expect, it } from 'vitest';
import { known, unknown } from '../../src/domain/facts.ts';
import { memoryTargets, settlingTargets } from '../../src/operations/memory-back.ts';
import { holderOf, sparkFacts } from '../diagnosis/facts.ts';
import { rankRecord } from '../pretend/facts.ts';

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

describe('what a node is still to get back from what a run before had stopped', () => {
  const now = Date.parse('2026-11-29T17:00:00Z');
  const undo = (at: string, state: 'pending' | 'restored' = 'pending') =>
    known([{ id: '7f96', run: '1', title: 'Start comfyui again', at, sudo: false, state }]);
  const lately = undo('2026-11-29T16:59:00Z');
  // Of 122 GiB 60 are available; 20 are held by somebody whom the look names, and 10 that no tool names of it.
  const worker = (more: object) =>
    sparkFacts({
      node: 'spark-b',
      memory: { totalBytes: 122 * GIB, availableBytes: 60 * GIB },
      holders: [holderOf(20)],
      more,
    });

  it('is what nobody holds and is not there, less what a system takes', () => {
    expect(settlingTargets([worker({ owed: lately })], now)).toEqual([
      { node: 'spark-b', bytes: (60 + 32 - 8) * GIB, gpus: 0 },
    ]);
  });

  it('is nothing where nothing was stopped lately: what is missing then does not come back', () => {
    expect(settlingTargets([worker({ owed: known([]) })], now)).toEqual([]);
    expect(settlingTargets([worker({ owed: undo('2026-11-29T16:50:00Z') })], now)).toEqual([]);
    expect(settlingTargets([worker({ owed: undo('2026-11-29T16:59:00Z', 'restored') })], now)).toEqual([]);
  });

  it('is nothing where a rank of ours runs, or where the holders are not known', () => {
    const running = known([rankRecord(1, { state: 'running' })]);
    expect(settlingTargets([worker({ owed: lately, ranks: running })], now)).toEqual([]);
    expect(settlingTargets([worker({ owed: lately, holders: unknown('no') })], now)).toEqual([]);
  });

  it('counts a rank of ours that had just begun and has ended', () => {
    const ended = known([rankRecord(1, { state: 'ended', startedAt: '2026-11-29T16:58:30Z' })]);
    expect(settlingTargets([worker({ owed: known([]), ranks: ended })], now)).toHaveLength(1);
  });
});
