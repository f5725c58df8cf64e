import { STAGES } from '../../domain/finding.ts';
import type { Service } from '../../domain/plan.ts';
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
      limits: Object.fromEntries(STAGES.map((stage) => [stage, engines[engine].stallSeconds(stage)])),
    });
  }
}
