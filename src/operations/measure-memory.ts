import type { Evidence } from '../domain/evidence.ts';
import { valueIf } from '../domain/facts.ts';
import type { MemoryMeasured } from '../domain/memory-measured.ts';
import type { Service } from '../domain/plan.ts';
import { memoryLines } from '../knowledge/engines/memory-lines.ts';
import { keyOf } from '../planning/learned.ts';
import { isUnified, worldSize } from '../planning/need.ts';
import { reachedOf } from '../planning/our-ranks.ts';
import type { Recorder } from './recorder.ts';

/**
 * Writes down what each rank of an attempt took, by its engine's log and its node's ledger, for the plans to come;
 * ranks that only were followed are what an earlier run launched, and are told under that.
 */
export function measureMemory(
  recorder: Recorder,
  attempt: number,
  evidence: Evidence,
  served: boolean,
): void {
  for (const service of evidence.services) {
    const measured = measuredOf(service, evidence, `${recorder.run}/${attempt}`, served);
    if (measured === undefined) continue;
    recorder.emit({ type: 'memory-measured', attempt, measured });
  }
}

function measuredOf(
  service: Service,
  evidence: Evidence,
  launch: string,
  served: boolean,
): MemoryMeasured | undefined {
  const rank = evidence.ranks.find((one) => one.rank === service.rank);
  const before = reachedOf(evidence.before, service.node);
  if (rank === undefined || before === undefined) return undefined;
  const lines = memoryLines(rank.lines);
  if (lines.weightsBytes === undefined) return undefined;
  const { recipe, engine } = evidence;
  const { running, node } = service;
  const record = valueIf(before.ranks)?.find(({ name }) => name === service.name);
  return {
    ...keyOf(recipe, engine, node, evidence.before),
    rank: service.rank,
    ranksThere: Math.max(1, Math.ceil(worldSize(recipe, engine) / recipe.layout.nodes)),
    unified: isUnified(before),
    launch: running && record !== undefined ? `${record.run}/${record.attempt}` : launch,
    served,
    ...lines,
    // Of ranks that ran before the look, the look has seen nothing of what was there before them.
    availableBytes: running ? undefined : valueIf(before.memory)?.availableBytes,
    lowestBytes: rank.guard?.lowestBytes,
  };
}
