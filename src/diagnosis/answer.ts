import type { Evidence } from '../domain/evidence.ts';
import type { Finding, Quote } from '../domain/finding.ts';
import type { DiagnosisAnswer, DiagnosisEarlier } from '../domain/report.ts';
import { engines } from '../knowledge/engines/index.ts';
import { treat } from './treat.ts';
import { placeOf, type Verdict } from './verdict.ts';

/** Under this no cure is offered: it might be one for something else. */
const SURE_ENOUGH = 0.6;

/** The verdict over logs as the one object that `diagnose --json` prints. */
export function answerOf(verdict: Verdict, evidence: Evidence): DiagnosisAnswer {
  const { finding, cause, family, atFault, confidence, earlier, reached } = verdict;
  return {
    cause,
    family: family ?? null,
    atFault,
    confidence,
    evidence: linesOf(finding?.quotes ?? servingLines(evidence)),
    consequences: finding?.consequences ?? [],
    advice: finding?.advice ?? [],
    remedy: finding === undefined || confidence < SURE_ENOUGH ? null : remedyFor(finding, evidence),
    alternatives: finding?.alternatives ?? [],
    ...(earlier === undefined ? {} : { earlier: [earlierOf(earlier, evidence)] }),
    ...(reached === undefined ? {} : { reached }),
  };
}

function linesOf(quotes: readonly Quote[]): DiagnosisAnswer['evidence'] {
  return quotes.map(({ log, node, line, text }) => ({ log: log ?? node, line, text }));
}

/** What an earlier start failed of; who started it anew is not known, so no remedy is. */
function earlierOf(finding: Finding, evidence: Evidence): DiagnosisEarlier {
  return {
    cause: finding.cause,
    family: finding.family ?? null,
    atFault: placeOf(finding, evidence),
    confidence: finding.confidence,
    evidence: linesOf(finding.quotes),
    advice: finding.advice,
    remedy: null,
  };
}

/** What this tool would change, were the job its own. */
function remedyFor(finding: Finding, evidence: Evidence): DiagnosisAnswer['remedy'] {
  if (finding.cause === 'unknown' || finding.family === 'M') return null;
  const { recipe, engine, before: facts } = evidence;
  const treatment = treat({ recipe, engine, finding, facts, evidence, tried: [] });
  if (treatment === undefined) return null;
  return { name: treatment.remedy, title: treatment.title, cost: treatment.cost };
}

/** The line by which each rank says that it serves. */
function servingLines({ ranks, engine }: Evidence): readonly Quote[] {
  return ranks.flatMap(({ rank, node, lines }) => {
    const line = lines.findLast(({ text }) => engines[engine].landmark(text)?.stage === 'serving');
    return line === undefined ? [] : [{ rank, node, line: line.line, text: line.text }];
  });
}
