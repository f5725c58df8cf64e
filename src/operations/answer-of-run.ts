import type { Event } from '../domain/event.ts';
import type { DiagnosisAnswer } from '../domain/report.ts';
import { blank, fold } from '../domain/run-state.ts';
import { causeOf, familyOf } from '../knowledge/causes.ts';

/** What a past run's journal says of why it failed, by its last final finding; `no-fault` where it served. */
export function answerOfRun(events: readonly Event[]): DiagnosisAnswer {
  const findings = events.flatMap((event) => (event.type === 'finding' && event.final ? [event] : []));
  const served = events.reduce(fold, blank).ended?.outcome === 'serving';
  const finding = findings.at(-1);
  if (finding === undefined || served)
    return {
      cause: served ? 'no-fault' : 'unknown',
      family: served ? 'M' : null,
      atFault: 'none',
      confidence: served ? 1 : 0,
      evidence: [],
      consequences: [],
      advice: served ? [] : ['See how far it came: firstlight show'],
      remedy: null,
      alternatives: [],
    };
  const applied = events.findLast(
    (event) =>
      event.type === 'remedy-applied' && event.attempt === finding.attempt && event.cause === finding.cause,
  );
  const place = causeOf(finding.cause)?.place ?? 'rank';
  return {
    cause: finding.cause,
    family: finding.family ?? familyOf(finding.cause) ?? null,
    atFault: finding.atFault ?? finding.node ?? (place === 'rank' ? 'head' : place),
    confidence: finding.confidence,
    evidence: finding.quotes.map(({ log, node, line, text }) => ({ log: log ?? node, line, text })),
    consequences: finding.consequences,
    advice: finding.advice,
    remedy:
      applied?.type === 'remedy-applied'
        ? { name: applied.remedy, title: applied.title, cost: applied.why }
        : null,
    alternatives: finding.alternatives ?? [],
  };
}
