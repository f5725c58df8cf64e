import type { Evidence } from '../domain/evidence.ts';
import type { Finding, Quote } from '../domain/finding.ts';
import { familyOf } from '../knowledge/causes.ts';
import type { Engine } from '../knowledge/engines/engine.ts';
import { consequences } from '../knowledge/signatures/consequences.ts';
import { signatures } from '../knowledge/signatures/index.ts';
import type { Found, Match } from '../knowledge/signatures/signature.ts';
import { hostAway } from './host-away.ts';
import { linkDown } from './link-down.ts';
import { restarted } from './restarted.ts';
import { isFatal, type Scans, scan } from './scan.ts';
import { stall } from './stall.ts';
import { tellingLines } from './telling-lines.ts';
import { unknownCause } from './unknown-cause.ts';
import { viewOf } from './view.ts';

/** Under this a cause is not named: a wrong one costs more than none. */
const CONFIDENT = 0.5;
const QUOTES = 8;

/**
 * Why an attempt failed, from the logs of all ranks together. Ask `failed` first: healthy evidence has no cause, and
 * gets an `unknown` here. `final` says whether the look after the failure is in the evidence.
 */
export function diagnose(evidence: Evidence, { final }: { readonly final: boolean }): Finding {
  const seen = restarted(evidence, final) ?? linkDown(evidence, final);
  if (seen !== undefined) return seen;
  const { finding, known } = judge(evidence, final);
  const away = hostAway(evidence, final);
  // What the host itself had said before it went may tell more.
  if (away !== undefined && (!known || finding.node !== away.node)) return away;
  return finding;
}

type Judged = {
  readonly finding: Finding;
  readonly known: boolean;
  readonly serves: boolean;
  /** No line has the weight of an error. */
  readonly quiet: boolean;
};

/**
 * The surest cause that the lines show, or `unknown` with the family; `known` says which. `serves` is whether the
 * service is up: then only what may be said of such a one is asked.
 */
export function judge(evidence: Evidence, final: boolean): Judged {
  const scans = scan(evidence);
  const stalled = stall(evidence);
  const view = viewOf(evidence, scans, stalled?.stage);
  const { serves } = view;
  const matches = signatures
    .filter((signature) => !serves || signature.whileServing === true)
    .flatMap((signature) => signature.match(view) ?? []);
  const [best, ...others] = ranked(matches);
  if (best !== undefined && best.cause !== 'unknown') {
    const finding = findingOf(evidence, scans, best, stalled?.stage, final);
    const alternatives = alternativesOf(best, [...others, ...matches]);
    return {
      finding: alternatives.length === 0 ? finding : { ...finding, alternatives },
      known: true,
      serves,
      quiet: false,
    };
  }
  const weaker = best ?? matches.toSorted((a, b) => b.confidence - a.confidence)[0];
  const alternatives = alternativesOf(undefined, matches);
  const family = weaker?.family ?? (weaker === undefined ? undefined : familyOf(weaker.cause));
  const finding =
    best === undefined
      ? unknownCause(evidence, scans, stalled, final)
      : findingOf(evidence, scans, best, stalled?.stage, final);
  return {
    finding: {
      ...finding,
      ...(family === undefined ? {} : { family }),
      ...(alternatives.length === 0 ? {} : { alternatives }),
    },
    known: false,
    serves,
    quiet: !scans.fatal && tellingLines(evidence, scans).every(({ weight }) => weight < 2),
  };
}

function ranked(matches: readonly Match[]): readonly Match[] {
  return matches.filter(({ confidence }) => confidence >= CONFIDENT).toSorted(byRank);
}

/** What else would fit, each cause once, surest first. */
function alternativesOf(
  best: Match | undefined,
  others: readonly Match[],
): readonly { readonly cause: string; readonly confidence: number }[] {
  const told = [...(best?.alternatives ?? []), ...others.flatMap((one) => [one, ...(one.alternatives ?? [])])]
    .map(({ cause, confidence }) => ({ cause, confidence }))
    .filter(({ cause }) => cause !== best?.cause && cause !== 'unknown')
    .toSorted((a, b) => b.confidence - a.confidence);
  return told
    .filter(({ cause }, index) => told.findIndex((other) => other.cause === cause) === index)
    .slice(0, 5);
}

/** Whether this attempt failed: a rank ended unasked, printed a line after which it does not go on, or all stand still. */
export function failed(evidence: Evidence): boolean {
  const ended = evidence.ranks.some((rank) => rank.ended !== undefined && !rank.ended.requested);
  return ended || scan(evidence).fatal || stall(evidence) !== undefined;
}

/** Whether a rank that prints this line does not go on: worth a provisional diagnosis at once. */
export function fatalLine(_engine: Engine, text: string): boolean {
  return isFatal(text);
}

/** Most specific first, then earliest, then surest. */
function byRank(a: Match, b: Match): number {
  return b.specificity - a.specificity || when(a) - when(b) || b.confidence - a.confidence;
}

function when(match: Match): number {
  return match.shown[0]?.line.at ?? Number.POSITIVE_INFINITY;
}

function findingOf(
  evidence: Evidence,
  scans: Scans,
  match: Match,
  stalled: Finding['stage'],
  final: boolean,
): Finding {
  const rank =
    match.node === undefined
      ? undefined
      : (evidence.ranks.find((one) => one.node === match.node && one.rank === match.shown[0]?.rank) ??
        evidence.ranks.find((one) => one.node === match.node));
  return {
    cause: match.cause,
    node: match.node,
    rank: rank?.rank,
    role: rank?.role,
    stage:
      (match.shown[0]?.side === undefined ? match.shown[0]?.stage : rank?.stage) ?? stalled ?? rank?.stage,
    final,
    confidence: match.confidence,
    title: match.title,
    why: match.why,
    quotes: quotesOf(match.shown),
    consequences: followed(evidence, scans, match),
    advice: match.advice,
    values: match.values ?? {},
    ...familyOfMatch(match),
    ...(match.atFault === undefined ? {} : { atFault: match.atFault }),
  };
}

function familyOfMatch(match: Match): { readonly family?: string } {
  const family = match.family ?? familyOf(match.cause);
  return family === undefined ? {} : { family };
}

function quotesOf(shown: readonly Found[]): readonly Quote[] {
  const lines = shown.filter(
    (found, index) => shown.findIndex((other) => other.line === found.line) === index,
  );
  return lines.slice(0, QUOTES).map(({ rank, node, log, side, line }) => ({
    rank,
    node,
    ...log,
    line: line.line,
    text: line.text,
    ...(side === undefined ? {} : { log: side.name }),
  }));
}

/** What the other nodes saw of it, one sentence a node and kind. */
function followed(evidence: Evidence, scans: Scans, match: Match): readonly string[] {
  const proof = new Set(match.shown.map((found) => found.line));
  const told = consequences.flatMap(({ form, tell }) =>
    scans
      .find(form)
      .filter((found) => found.node !== match.node && !proof.has(found.line))
      .map((found) => tell(found.node)),
  );
  const silent = evidence.ranks
    .filter((rank) => rank.ended !== undefined && !rank.ended.requested && rank.node !== match.node)
    .filter((rank) => !told.some((sentence) => sentence.startsWith(rank.node)))
    .map((rank) => `Rank ${rank.rank} on ${rank.node} ended too.`);
  return [...new Set([...told, ...silent])].slice(0, 6);
}
