import type { Evidence, RankEvidence } from '../domain/evidence.ts';
import { type Finding, type Quote, STAGES, type Stage } from '../domain/finding.ts';
import { consequences } from '../knowledge/signatures/consequences.ts';
import { DURING } from './during.ts';
import type { Scans, Telling } from './scan.ts';
import type { Stall } from './stall.ts';

const QUOTES = 10;
const LAST_LINES = 3;

/** What can be said honestly where nothing is recognised: who failed first, the lines that matter, where to look. */
export function unknownCause(
  evidence: Evidence,
  scans: Scans,
  stalled: Stall | undefined,
  final: boolean,
): Finding {
  const echoes = new Set(consequences.flatMap(({ form }) => scans.find(form).map((found) => found.line)));
  const told = evidence.ranks
    .flatMap((rank) => scans.telling(rank).map((line) => ({ rank, line })))
    .filter(({ line }) => line.weight > 0 && !echoes.has(line.line))
    .toSorted((a, b) => b.line.weight - a.line.weight || a.line.line.at - b.line.line.at);
  const worst = told.find(({ line }) => line.weight >= 2);
  const rank = worst?.rank ?? firstEnded(evidence) ?? hindmost(evidence);
  const stage = rank?.stage;
  return {
    cause: 'unknown',
    node: rank?.node,
    rank: rank?.rank,
    role: rank?.role,
    stage,
    final,
    confidence: 0.3,
    title: title(rank, stalled, worst !== undefined),
    why: told.length > 0 ? 'The lines below are the most telling ones.' : 'No rank printed an error.',
    quotes: quotes(evidence, told, rank),
    consequences: [],
    advice: advice(evidence, rank, stage),
    values: {},
  };
}

function title(rank: RankEvidence | undefined, stalled: Stall | undefined, erred: boolean): string {
  if (rank?.ended !== undefined) {
    const code = rank.ended.code === undefined ? '' : ` with exit code ${rank.ended.code}`;
    return `Rank ${rank.rank} on ${rank.node} ended${code} ${DURING[rank.stage]}; the cause is not known`;
  }
  if (stalled !== undefined && !erred) {
    const where = rank === undefined ? '' : `, ${rank.node} hindmost`;
    return `The ranks have stood still for ${stalled.seconds} s ${DURING[stalled.stage]}${where}; the cause is not known`;
  }
  return rank === undefined
    ? 'The attempt failed; the cause is not known'
    : `${rank.node} failed ${DURING[rank.stage]}; the cause is not known`;
}

function firstEnded(evidence: Evidence): RankEvidence | undefined {
  return evidence.ranks
    .filter((rank) => rank.ended !== undefined && !rank.ended.requested)
    .toSorted((a, b) => (a.ended?.at ?? 0) - (b.ended?.at ?? 0))[0];
}

function hindmost(evidence: Evidence): RankEvidence | undefined {
  return evidence.ranks.toSorted((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage))[0];
}

/** The weightiest lines, then the last words of the rank that failed; in the order they came. */
function quotes(
  evidence: Evidence,
  told: readonly { readonly rank: RankEvidence; readonly line: Telling }[],
  failed: RankEvidence | undefined,
): readonly Quote[] {
  const chosen = told.slice(0, QUOTES - LAST_LINES).map(({ rank, line }) => ({ rank, line: line.line }));
  const failedFirst = evidence.ranks.toSorted((a, b) => Number(b === failed) - Number(a === failed));
  for (const rank of failedFirst) {
    const count = rank === failed || evidence.ranks.length === 1 ? LAST_LINES : 1;
    const last = rank.lines.slice(-40).filter((one) => one.text.trim() !== '');
    for (const line of last.slice(-count)) {
      if (!chosen.some((one) => one.line === line)) chosen.push({ rank, line });
    }
  }
  return chosen
    .slice(0, QUOTES)
    .toSorted((a, b) => a.line.at - b.line.at || a.rank.rank - b.rank.rank || a.line.line - b.line.line)
    .map(({ rank, line }) => ({ rank: rank.rank, node: rank.node, line: line.line, text: line.text }));
}

function advice(
  evidence: Evidence,
  rank: RankEvidence | undefined,
  stage: Stage | undefined,
): readonly string[] {
  const where = rank?.node ?? 'each node';
  const whole = rank === undefined ? 'firstlight logs' : `firstlight logs --rank ${rank.rank}`;
  const code = rank?.ended?.code;
  return [
    `Read the whole log: ${whole}`,
    ...(stage === 'rendezvous'
      ? [`See whether the nodes reach each other, on ${where}: ip -br addr; ss -tn state syn-sent`]
      : []),
    ...(code === 137 || code === -9
      ? [`Exit code ${code} is a SIGKILL; who sent it may stand in, on ${where}: sudo dmesg -T | tail -50`]
      : []),
    ...(code === 139 || code === -11 || code === 134 || code === -6
      ? [`The program crashed; on ${where}: sudo dmesg -T | grep -i -e xid -e nvrm | tail`]
      : []),
    ...(evidence.recipe.run.in === 'docker' &&
    stage === 'start' &&
    rank !== undefined &&
    rank.lines.length === 0
      ? [`It printed nothing at all; on ${where}: docker ps -a --filter name=firstlight`]
      : []),
  ];
}
