import type { Service } from '../../domain/plan.ts';
import { stopRanks } from '../stop-ranks.ts';
import type { BringUp } from './progress.ts';

/** All ranks are one unit: what still runs of this attempt is stopped, and told to have been asked to. */
export async function stopAttempt(
  { world, recorder }: BringUp,
  attempt: number,
  services: readonly Service[],
  why: string,
): Promise<void> {
  if (!(await stopRanks(world, recorder, services, why))) return;
  const ranks = recorder.state().attempts.find((one) => one.attempt === attempt)?.ranks ?? [];
  for (const { node, rank } of ranks.filter((one) => one.ended === undefined))
    recorder.emit({ type: 'rank-ended', attempt, node, rank, code: undefined, requested: true });
}
