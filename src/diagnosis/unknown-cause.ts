import type { Evidence, RankEvidence } from '../domain/evidence.ts';
import { type Finding, type Quote, STAGES, type Stage } from '../domain/finding.ts';
import { engines } from '../knowledge/engines/index.ts';
import { messageOf, rayAddressOf } from '../knowledge/engines/log-line.ts';
import { DURING } from './during.ts';
import { emptyBeside, emptyLogs } from './empty-logs.ts';
import { guessFamily } from './guess-family.ts';
import { endsOnTheWay, reachedIn, reachedWords } from './reached.ts';
import type { Scans } from './scan.ts';
import type { Stall } from './stall.ts';
import { lastWords, quoteOf, type ToldLine, tellingLines } from './telling-lines.ts';

const QUOTES = 10;
const LAST_LINES = 3;

/** What can be said honestly where nothing is recognised: who failed first, the lines that matter, where to look. */
export function unknownCause(
  evidence: Evidence,
  scans: Scans,
  stalled: Stall | undefined,
  final: boolean,
): Finding {
  const told = tellingLines(evidence, scans);
  const worst = told.find(({ weight }) => weight >= 2) ?? (evidence.ranks.length === 0 ? told[0] : undefined);
  const all = tellingLines(evidence, scans, { echoes: true });
  const echoes = told.some(({ weight }) => weight >= 2) ? told : all;
  const rank =
    pointedAt(evidence, echoes, all) ??
    (worst === undefined ? (firstEnded(evidence) ?? hindmost(evidence)) : worst.rank);
  const stage = rank?.stage;
  if (stalled !== undefined && endsOnTheWay(evidence, scans)) return onTheWay(evidence, stalled, final);
  const empty = rank?.ended === undefined ? emptyLogs(evidence) : undefined;
  return {
    cause: 'unknown',
    node: rank?.node ?? worst?.node,
    rank: rank?.rank,
    role: rank?.role,
    stage,
    final,
    confidence: 0.3,
    title: title(rank, stalled, worst !== undefined, evidence.finished === true),
    why: `${whyOf(told)}${emptyBeside(evidence)}`,
    quotes: quotes(evidence, told, rank),
    consequences: [],
    advice: advice(evidence, rank, stage),
    values: {},
    ...familyOf(evidence, told.length > 0 ? told : echoes),
    ...empty,
  };
}

/** What logs say that end before it serves, and in which nothing failed: how far it came, and when. */
function onTheWay(evidence: Evidence, { stage }: Stall, final: boolean): Finding {
  const rank = hindmost(evidence);
  const where = rank?.node ?? 'each node';
  const limit = engines[evidence.engine].stallSeconds(stage);
  return {
    cause: 'unknown',
    node: rank?.node,
    rank: rank?.rank,
    role: rank?.role,
    stage,
    final,
    confidence: 0.3,
    title: `${endOf(evidence, stage, rank)}; nothing had failed by then`,
    why: `No line tells of an error. ${reachedIn(evidence).map(reachedWords).join('; ')}.`,
    quotes: reachedIn(evidence).flatMap(({ log, line }) => markQuote(evidence, log, line)),
    consequences: [],
    advice: [
      `See whether it went on: take the log of ${where} again, or follow it with --follow.`,
      `If it shows no progress for ${limit} s ${DURING[stage]}, it is stuck; on ${where}: nvidia-smi; free -g; sudo dmesg -T | tail -50`,
      ...advice(evidence, rank, stage),
    ],
    values: {},
  };
}

function markQuote({ ranks }: Evidence, log: string, number: number | null): readonly Quote[] {
  const rank = ranks.find(({ node }) => node === log);
  const line = rank?.lines.findLast((one) => one.line === number);
  return rank === undefined || line === undefined ? [] : [quoteOf(rank.node, rank.rank, undefined, line)];
}

/** "The log of head ends while loading weights, at 85 %" */
function endOf({ ranks }: Evidence, stage: Stage, rank: RankEvidence | undefined): string {
  const seen = ranks.filter(({ unseen }) => unseen !== true);
  const percent = rank?.percent === undefined ? '' : `, at ${Math.round(rank.percent)} %`;
  return seen.length === 1
    ? `The log of ${seen[0]?.node} ends ${DURING[stage]}${percent}`
    : `The logs end ${DURING[stage]}${percent}${rank === undefined ? '' : `, ${rank.node} hindmost`}`;
}

function whyOf(told: readonly ToldLine[]): string {
  const [first] = told;
  if (first === undefined) return 'No rank printed an error.';
  const often = told.toSorted((a, b) => b.times - a.times)[0];
  return often === undefined || often.times < 2
    ? 'The lines below are the most telling ones.'
    : `The lines below are the most telling ones; line ${often.line.line} of ${often.log ?? often.node} came ${often.times} times in a row.`;
}

/** What a rank prints of one that is gone, or does not answer. */
const OF_A_PEER =
  /closed by peer|reset by peer|remote process exited|waiting for clients|RPC call to \w+ timed out|lost communication with a remote|other ranks that didn't finish|No route to host|worker .*(?:died|lost)/i;

/** The one other rank that the weighty lines speak of, where all are of one rank and one of them speaks of another. */
function pointedAt(
  evidence: Evidence,
  lines: readonly ToldLine[],
  all: readonly ToldLine[],
): RankEvidence | undefined {
  const [first] = lines;
  const { ranks } = evidence;
  if (first === undefined || ranks.length !== 2) return undefined;
  const other = ranks.find(({ rank }) => rank !== first.rank?.rank);
  if (rayAddressOf(first.line.text) !== undefined) return ranks.find(({ role }) => role === 'worker');
  const weighty = all.filter(({ weight }) => weight >= 2);
  const alone = weighty.every(({ rank }) => rank?.rank === first.rank?.rank);
  const said = alone ? [first, ...weighty] : [first];
  return first.rank !== undefined && said.some(({ message }) => OF_A_PEER.test(message)) ? other : undefined;
}

/** The family that the telling lines speak of, or the last words where there are none. */
function familyOf(evidence: Evidence, told: readonly ToldLine[]): { readonly family?: string } {
  const spoken = told.map(({ message: text, weight }) => ({ text, weight }));
  const words = lastWords(evidence).map(({ line: { text } }) => ({ text: messageOf(text), weight: 1 }));
  const guess = guessFamily(spoken) ?? guessFamily(words);
  return guess === undefined ? {} : { family: guess.family };
}

function title(
  rank: RankEvidence | undefined,
  stalled: Stall | undefined,
  erred: boolean,
  finished: boolean,
): string {
  if (rank?.ended !== undefined) {
    const code = rank.ended.code === undefined ? '' : ` with exit code ${rank.ended.code}`;
    return `Rank ${rank.rank} on ${rank.node} ended${code} ${DURING[rank.stage]}; the cause is not known`;
  }
  if (stalled !== undefined && !erred) {
    const where = rank === undefined ? '' : `, ${rank.node} hindmost`;
    if (finished) return `The logs end ${DURING[stalled.stage]}${where}; the cause is not known`;
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
  const spoken = evidence.ranks.filter(({ lines }) => lines.length > 0);
  return (spoken.length > 0 ? spoken : evidence.ranks).toSorted(
    (a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage),
  )[0];
}

/** The weightiest lines, then the last words of the rank that failed; in the order they came. */
function quotes(
  evidence: Evidence,
  told: readonly ToldLine[],
  failed: RankEvidence | undefined,
): readonly Quote[] {
  const chosen = told.slice(0, QUOTES - LAST_LINES).map(({ rank, node, log, line }) => ({
    node,
    rank: log === undefined ? (rank?.rank ?? -1) : -1,
    log,
    line,
  }));
  const alone = evidence.ranks.length === 1;
  for (const word of [
    ...lastWords(evidence, LAST_LINES).filter(({ rank }) => rank === failed?.rank || alone),
    ...lastWords(evidence, 1).filter(({ rank }) => rank !== failed?.rank),
  ])
    if (!chosen.some(({ line }) => line === word.line)) chosen.push(word);
  return chosen
    .slice(0, QUOTES)
    .toSorted((a, b) => a.line.at - b.line.at || a.rank - b.rank || a.line.line - b.line.line)
    .map(({ node, rank, log, line }) => quoteOf(node, rank, log, line));
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
