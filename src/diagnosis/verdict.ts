import type { Evidence } from '../domain/evidence.ts';
import type { Finding } from '../domain/finding.ts';
import { causeOf } from '../knowledge/causes.ts';
import { judge } from './diagnose.ts';

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
};

/** How sure it is that a service which serves, without a line that speaks against it, has no fault. */
const HEALTHY = 0.9;
/** The same where nothing speaks against it but it does not serve yet. */
const ON_ITS_WAY = 0.6;

/** Judges finished logs: nothing more will come. */
export function verdictOf(evidence: Evidence): Verdict {
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
  };
}

/** Whether its head was done with all but its first answer, and nothing ended. */
function comesUp({ ranks }: Evidence): boolean {
  const head = ranks.find(({ role }) => role === 'head');
  const ended = ranks.some((rank) => rank.ended !== undefined && !rank.ended.requested);
  return (head?.stage === 'warmup' || head?.stage === 'serving') && !ended;
}

/** Where the fault lies, in the words of the answer. */
function placeOf(finding: Finding, evidence: Evidence): string {
  if (finding.atFault !== undefined) return finding.atFault;
  if (finding.node !== undefined) return finding.node;
  const place = causeOf(finding.cause)?.place ?? 'rank';
  if (place !== 'rank') return place;
  const quoted = finding.quotes[0];
  return quoted?.node ?? evidence.ranks.find(({ lines }) => lines.length > 0)?.node ?? 'head';
}
