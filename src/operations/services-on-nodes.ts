import type { NodeFacts, RankRecord } from '../domain/facts.ts';
import { allRanks, type FoundRank } from '../planning/our-ranks.ts';

export type JobOnNodes = {
  readonly recipe: string;
  readonly engine: RankRecord['engine'];
  readonly edits: readonly string[];
  readonly ranks: readonly FoundRank[];
};

/** Jobs of ours that have at least one rank alive, as the nodes' own records tell; a second controller sees the same. */
export function servicesOnNodes(facts: readonly NodeFacts[]): readonly JobOnNodes[] {
  const records = allRanks(facts);
  const names = new Set(
    records.filter(({ record }) => record.state !== 'ended').map(({ record }) => record.recipe),
  );
  return [...names].map((recipe) => {
    const ranks = ofOneJob(records.filter(({ record }) => record.recipe === recipe)).sort(
      (a, b) => a.record.rank - b.record.rank,
    );
    const first = ranks[0]?.record;
    return {
      recipe,
      engine: first?.engine ?? 'sglang',
      edits: (first?.edits ?? []).map((edit) => `${edit.path}: ${String(edit.from)} → ${String(edit.to)}`),
      ranks,
    };
  });
}

/** Those alive, and of the ended those that belong to them: of their run, or started later. Older ones are of a job before. */
function ofOneJob(ranks: readonly FoundRank[]): FoundRank[] {
  const alive = ranks.filter(({ record }) => record.state !== 'ended');
  const runs = new Set(alive.map(({ record }) => record.run));
  const newest = Math.max(...alive.map(({ record }) => Date.parse(record.startedAt)));
  return ranks.filter(
    ({ record }) => record.state !== 'ended' || runs.has(record.run) || Date.parse(record.startedAt) > newest,
  );
}
