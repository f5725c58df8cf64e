import { expect, test } from 'vitest';
import { known, type RankRecord, unknown } from '../../src/domain/facts.ts';
import { servicesOnNodes } from '../../src/operations/services-on-nodes.ts';
import { sparkFacts } from '../diagnosis/facts.ts';

function record(rank: number, run: string, more: Partial<RankRecord> = {}): RankRecord {
  return {
    name: `tiny-r${rank}`,
    recipe: 'tiny',
    engine: 'sglang',
    rank,
    run,
    attempt: 1,
    in: 'process',
    recipeDigest: 'a',
    effectiveDigest: 'b',
    edits: [],
    startedAt: `2026-11-29T10:0${run}:0${rank}.000Z`,
    state: 'running',
    exitCode: unknown('it runs'),
    ranks: 2,
    folder: `/home/aurora/.firstlight/x/ranks/tiny-r${rank}`,
    logBytes: 0,
    ...more,
  };
}

const ended = { state: 'ended', exitCode: known(1) } as const;
const on = (node: string, ...ranks: readonly RankRecord[]) =>
  sparkFacts({ node, more: { ranks: known(ranks) } });
const seen = (...facts: readonly ReturnType<typeof on>[]) =>
  servicesOnNodes(facts).map((job) =>
    job.ranks.map(({ node, record: { rank, state } }) => `${node} ${rank} ${state}`),
  );

test('what an older run left ended on a node is none of the ranks that serve now elsewhere', () => {
  const facts = [
    on('spark-a', record(0, '2')),
    on('spark-b', record(1, '1', ended)),
    on('spark-c', record(1, '2')),
  ];
  expect(seen(...facts)).toEqual([['spark-a 0 running', 'spark-c 1 running']]);
});

test('a rank that ended under those that run is one of them, of their run or of one that started it anew', () => {
  expect(seen(on('spark-a', record(0, '2')), on('spark-b', record(1, '2', ended)))).toEqual([
    ['spark-a 0 running', 'spark-b 1 ended'],
  ]);
  expect(seen(on('spark-a', record(0, '3', ended)), on('spark-b', record(1, '2')))).toEqual([
    ['spark-a 0 ended', 'spark-b 1 running'],
  ]);
});
