import type { Evidence } from '../domain/evidence.ts';
import type { Finding } from '../domain/finding.ts';
import type { Reached } from '../domain/report.ts';
import { causeOf } from '../knowledge/causes.ts';
import { judge } from './diagnose.ts';
import { endsOnTheWay, reachedIn, reachedWords } from './reached.ts';
import { scan } from './scan.ts';
import { startsOf } from './starts.ts';

/** The answer to "what is wrong here", where the logs may also show that nothing is. */
export type Verdict = {
  /** Slug of docs/causes.md, `unknown` or `no-fault`. */
  readonly cause: string;
  readonly family: string | undefined;
  /** Name of a log's place, `head` or `worker` without a log, or `both`, `launcher`, `network`, `client`, `none`. */
  readonly atFault: string;
  readonly confidence: number;
  /** Absent where nothing is broken. */
  readonly finding: Finding | undefined;
  /** What an earlier start failed of that the same logs hold, where the last one is well or failed of another cause. */
  readonly earlier?: Finding;
  /** How far each rank had come, where the logs end before it serves and nothing in them failed. */
  readonly reached?: readonly Reached[];
};

/** Causes that neither start shows alone. */
const OF_TWO_STARTS: ReadonlySet<string> = new Set(['head-store-restarted-while-worker-attached']);
/** How sure it is that a service which serves, without a line that speaks against it, has no fault. */
const HEALTHY = 0.9;
/** The same where nothing speaks against it but it does not serve yet. */
const ON_ITS_WAY = 0.6;

/**
 * Judges finished logs: nothing more will come. Where they hold several starts it is the last that counts, if it is well
 * or tells itself what it failed of; what the ones before failed of is told beside it.
 */
export function verdictOf(evidence: Evidence): Verdict {
  const starts = startsOf(evidence);
  if (starts === undefined) return verdictOfAll(evidence);
  const last = verdictOfAll(starts.last);
  const before = verdictOf(starts.before);
  const earlier = before.finding ?? before.earlier;
  // What stands before an engine's first words need not be of a start of it.
  const told = earlier !== undefined && (earlier.cause !== 'unknown' || starts.spoke);
  const both = told && earlier.cause !== last.cause ? { ...last, earlier } : last;
  if (last.family === 'M') return both;
  const all = verdictOfAll(evidence);
  if (!starts.spoke || OF_TWO_STARTS.has(all.cause)) return withSince(all, last.reached);
  const served = starts.last.ranks.some(({ role, stage }) => role === 'head' && stage === 'serving');
  const nameless = earlier === undefined || earlier.cause === 'unknown';
  if (last.cause !== 'unknown' || served || (nameless && last.reached === undefined)) return both;
  return withSince(all, last.reached);
}

/** A failure after which it was started anew, and comes up still. */
function withSince(verdict: Verdict, reached: Verdict['reached']): Verdict {
  const { finding } = verdict;
  if (finding === undefined || reached === undefined) return verdict;
  const since = `It was started anew since, and nothing has failed yet: ${reached.map(reachedWords).join('; ')}.`;
  return { ...verdict, finding: { ...finding, consequences: [...finding.consequences, since] } };
}

function verdictOfAll(evidence: Evidence): Verdict {
  const { finding, known, serves, quiet } = judge(evidence, true);
  if (!known && (serves || (quiet && comesUp(evidence))))
    return {
      cause: 'no-fault',
      family: 'M',
      atFault: 'none',
      confidence: serves ? HEALTHY : ON_ITS_WAY,
      finding: undefined,
    };
  const family = finding.family ?? undefined;
  return {
    cause: finding.cause,
    family,
    atFault: placeOf(finding, evidence),
    confidence: finding.confidence,
    finding,
    ...(!known && endsOnTheWay(evidence, scan(evidence)) ? { reached: reachedIn(evidence) } : {}),
  };
}

/** Whether its head was done with all but its first answer, and nothing ended. */
function comesUp({ ranks }: Evidence): boolean {
  const head = ranks.find(({ role }) => role === 'head');
  const ended = ranks.some((rank) => rank.ended !== undefined && !rank.ended.requested);
  return (head?.stage === 'warmup' || head?.stage === 'serving') && !ended;
}

/** Where the fault lies, in the words of the answer. */
export function placeOf(finding: Finding, evidence: Evidence): string {
  if (finding.atFault !== undefined) return finding.atFault;
  if (finding.node !== undefined) return finding.node;
  const place = causeOf(finding.cause)?.place ?? 'rank';
  if (place !== 'rank') return place;
  const quoted = finding.quotes[0];
  return quoted?.node ?? evidence.ranks.find(({ lines }) => lines.length > 0)?.node ?? 'head';
}
