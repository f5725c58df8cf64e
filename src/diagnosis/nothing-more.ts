import type { Evidence } from '../domain/evidence.ts';
import { failed, judge } from './diagnose.ts';
import { scan } from './scan.ts';

/** After this long without a line from any rank, or after a rank's end, what is known is all there will be. */
export const QUIET_MILLISECONDS = 5000;
/** The same where the last words are of a cause that is known less surely: loading may be silent for longer. */
const LONG_QUIET_MILLISECONDS = 15_000;
const SURE = 0.9;
/** The same after a fatal line whose rank does not end: others may print a line every two seconds for ten minutes. */
export const STUCK_MILLISECONDS = 30_000;
/** Lines that may follow the one that tells: the rest of a traceback, and what other processes of the rank say of it. */
const TAIL_LINES = 30;
/** Of exceptions and ends; what is less may be said in passing. */
const TELLING = 2;

/**
 * Tells, look by look, when logs that are followed have nothing more to say of a failure; `changedAt` is when one of
 * them last grew, ms. Ask one watch with every look, in their order.
 */
export function newWatch(): (seen: Evidence, changedAt: number) => boolean {
  let since: { readonly at: number; readonly stages: string } | undefined;
  let judged: { readonly changedAt: number; readonly sure: number | undefined } | undefined;
  return (seen, changedAt) => {
    const quiet = seen.now - changedAt;
    const stages = seen.ranks.map(({ stage }) => stage).join();
    const fails = failed(seen);
    if (!fails || since?.stages !== stages) since = fails ? { at: seen.now, stages } : undefined;
    if (since !== undefined && (quiet > QUIET_MILLISECONDS || seen.now - since.at > STUCK_MILLISECONDS))
      return true;
    if (quiet <= QUIET_MILLISECONDS) return false;
    // Once for each silence: that takes all signatures.
    if (judged?.changedAt !== changedAt) judged = { changedAt, sure: lastWordSure(seen) };
    const { sure } = judged;
    return sure !== undefined && (sure >= SURE || quiet > LONG_QUIET_MILLISECONDS);
  };
}

/**
 * How sure it is, 0 to 1, that a rank's log has come to its end with a cause that is known: its last words are an error
 * that a signature names, although no line says outright that it does not go on. Undefined where it is not so.
 */
function lastWordSure(evidence: Evidence): number | undefined {
  const { finding, known, serves } = judge(evidence, false);
  if (!known || serves) return undefined;
  const scans = scan(evidence);
  const ended = evidence.ranks.some((rank) => {
    const last = rank.lines.at(-1)?.line ?? 0;
    const told = scans.telling(rank).findLast(({ weight }) => weight >= TELLING)?.line.line;
    if (told === undefined || last - told > TAIL_LINES) return false;
    return finding.quotes.some(
      ({ rank: of, log, line }) => of === rank.rank && log === undefined && last - line <= TAIL_LINES,
    );
  });
  return ended ? finding.confidence : undefined;
}
