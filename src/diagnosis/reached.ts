import type { Evidence, LogLine, RankEvidence } from '../domain/evidence.ts';
import type { Reached } from '../domain/report.ts';
import { STAGE_WORDS } from '../domain/run-words.ts';
import { engines } from '../knowledge/engines/index.ts';
import type { Scans } from './scan.ts';
import { stall } from './stall.ts';
import { tellingLines } from './telling-lines.ts';

/** Whether logs end while a job still comes up: no rank ended, and no line of any log tells of an error. */
export function endsOnTheWay(evidence: Evidence, scans: Scans): boolean {
  const { ranks, finished } = evidence;
  const ended = ranks.some((rank) => rank.ended !== undefined && !rank.ended.requested);
  const begun = ranks.some((rank) => markIn(rank, evidence) !== undefined);
  return (
    finished === true &&
    begun &&
    !ended &&
    stall(evidence) !== undefined &&
    tellingLines(evidence, scans, { echoes: true }).length === 0
  );
}

/** How far each rank came whose log there is: its stage, the line that says so, and the time of its last line. */
export function reachedIn(evidence: Evidence): readonly Reached[] {
  return evidence.ranks
    .filter(({ unseen }) => unseen !== true)
    .map((rank) => ({
      log: rank.node,
      stage: rank.stage,
      percent: rank.percent ?? null,
      line: markIn(rank, evidence)?.line ?? null,
      lastLine: rank.lines.at(-1)?.line ?? 0,
      lastAt: clockIn(rank.lines),
    }));
}

/** "head stood at weights, 85 %, in line 40 (20:03:21)" */
export function reachedWords({ log, stage, percent, line, lastLine, lastAt }: Reached): string {
  if (lastLine === 0) return `${log} printed nothing`;
  const far = percent === null ? '' : `, ${Math.round(percent)} %`;
  return `${log} stood at ${STAGE_WORDS[stage]}${far}, in line ${line ?? lastLine}${lastAt === null ? '' : ` (${lastAt})`}`;
}

/** The last line that tells of progress. */
function markIn({ lines }: RankEvidence, { engine }: Evidence): LogLine | undefined {
  return lines.findLast(({ text }) => engines[engine].landmark(text) !== undefined);
}

const CLOCK = /(?:^|[[ (T])((?:\d{4}-)?(?:\d\d-\d\d[ T])?\d\d:\d\d:\d\d)/;
/** A bar that redraws itself has no stamp, for minutes. */
const BACK = 500;

/** The time that the last stamped line bears, as it stands there; null where none does. */
function clockIn(lines: readonly LogLine[]): string | null {
  for (const { text } of lines.slice(-BACK).toReversed()) {
    const clock = CLOCK.exec(text.slice(0, 100))?.[1];
    if (clock !== undefined) return clock;
  }
  return null;
}
