import type { Event } from '../domain/event.ts';
import type { EngineName } from '../domain/recipe.ts';
import type { DiagnosisAnswer, DiagnosisEarlier } from '../domain/report.ts';
import { blank, fold } from '../domain/run-state.ts';
import { edit } from '../domain/run-words.ts';
import { causeOf, familyOf } from '../knowledge/causes.ts';

type FindingEvent = Extract<Event, { type: 'finding' }>;

/**
 * What a past run's journal says of why it failed, by its last final finding; `no-fault` where it served, with what
 * had stopped it before.
 */
export function answerOfRun(events: readonly Event[]): DiagnosisAnswer {
  const findings = events.flatMap((event) => (event.type === 'finding' && event.final ? [event] : []));
  const { ended, operation } = events.reduce(fold, blank);
  // What an up finds serving already is left as it is.
  const served = ended?.outcome === 'serving' || (operation === 'up' && ended?.outcome === 'nothing-to-do');
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
      ...(findings.length === 0 ? {} : { earlier: findings.map((one) => earlierOf(one, events)) }),
    };
  return {
    ...toldOf(finding),
    consequences: finding.consequences,
    remedy: remedyOf(finding, events),
    alternatives: finding.alternatives ?? [],
  };
}

function toldOf(
  finding: FindingEvent,
): Pick<DiagnosisAnswer, 'cause' | 'family' | 'atFault' | 'confidence' | 'evidence' | 'advice'> {
  const place = causeOf(finding.cause)?.place ?? 'rank';
  return {
    cause: finding.cause,
    family: finding.family ?? familyOf(finding.cause) ?? null,
    atFault: finding.atFault ?? finding.node ?? (place === 'rank' ? 'head' : place),
    confidence: finding.confidence,
    evidence: finding.quotes.map(({ log, node, line, text }) => ({ log: log ?? node, line, text })),
    advice: finding.advice,
  };
}

/** A finding of a run that served in the end, and what had ended it: a remedy, or another engine. */
function earlierOf(finding: FindingEvent, events: readonly Event[]): DiagnosisEarlier {
  const remedy = remedyOf(finding, events);
  const engine = remedy === null ? nextEngine(events.slice(events.indexOf(finding))) : undefined;
  return {
    attempt: finding.attempt,
    ...toldOf(finding),
    remedy,
    ...(engine === undefined ? {} : { engine }),
  };
}

/** The engine that was taken after a finding, before the next attempt began. */
function nextEngine(after: readonly Event[]): EngineName | undefined {
  for (const event of after) {
    if (event.type === 'engine-changed') return event.to;
    if (event.type === 'rank-started') return undefined;
  }
  return undefined;
}

/** The remedy that followed a finding; one that did not help is none. */
function remedyOf(finding: FindingEvent, events: readonly Event[]): DiagnosisAnswer['remedy'] {
  const became = events.findLast(
    (event) =>
      (event.type === 'remedy-applied' || event.type === 'remedy-proved' || event.type === 'remedy-failed') &&
      event.attempt === finding.attempt &&
      event.cause === finding.cause,
  );
  if (became?.type !== 'remedy-applied' && became?.type !== 'remedy-proved') return null;
  const edits = became.edits.map(edit).join('; ');
  return { name: became.remedy, title: became.title, cost: edits === '' ? 'nothing' : edits };
}
