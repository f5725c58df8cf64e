import type { Evidence } from '../domain/evidence.ts';
import { STAGES, type Stage } from '../domain/finding.ts';
import { engines } from '../knowledge/engines/index.ts';

/** How long all ranks have stood still, and in which stage the hindmost stands. */
export type Stall = { readonly stage: Stage; readonly seconds: number };

/**
 * A stall, or undefined. Ranks wait for each other and only some print progress, so one that moves speaks for all;
 * a service whose head serves does not stall.
 */
export function stall(evidence: Evidence): Stall | undefined {
  const going = evidence.ranks.filter((rank) => rank.ended === undefined && rank.stage !== 'serving');
  const head = evidence.ranks.find((rank) => rank.role === 'head');
  if (going.length === 0 || head?.stage === 'serving') return undefined;
  const movedAt = Math.max(...evidence.ranks.map((rank) => rank.movedAt));
  const hindmost = going.toSorted((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage))[0];
  if (hindmost === undefined) return undefined;
  const seconds = (evidence.now - movedAt) / 1000;
  const limit = engines[evidence.engine].stallSeconds(hindmost.stage);
  return evidence.finished === true || seconds > limit
    ? { stage: hindmost.stage, seconds: Math.round(seconds) }
    : undefined;
}
