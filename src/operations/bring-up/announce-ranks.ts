import { STAGES, type Stage } from '../../domain/finding.ts';
import type { Service } from '../../domain/plan.ts';
import type { Engine } from '../../knowledge/engines/engine.ts';
import { engines } from '../../knowledge/engines/index.ts';
import type { BringUp } from './progress.ts';

/** Tells that these ranks run; `followed` where they ran before this run came. */
export function announceRanks(
  { world, recorder }: BringUp,
  attempt: number,
  services: readonly Service[],
  followed: boolean,
): void {
  for (const { node, rank, role, engine, name } of services) {
    recorder.emit({
      type: 'rank-started',
      attempt,
      node,
      rank,
      role,
      engine,
      name,
      log: world.journal.logFile(recorder.run, attempt, rank),
      followed,
      limits: limitsOf(engines[engine]),
    });
  }
}

/** Stages that may stand still for ever are left out: JSON has no infinity. */
function limitsOf({ stallSeconds }: Engine): Readonly<Partial<Record<Stage, number>>> {
  const limits = STAGES.map((stage) => [stage, stallSeconds(stage)] as const);
  return Object.fromEntries(limits.filter(([, seconds]) => Number.isFinite(seconds)));
}
