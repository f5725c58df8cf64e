import type { Evidence, LogLine, RankEvidence, SideLog } from '../domain/evidence.ts';
import { type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Stage } from '../domain/finding.ts';
import { quotePlainly } from '../domain/quote.ts';
import { isHarmless } from '../knowledge/signatures/harmless.ts';
import type { Found, LogView, View } from '../knowledge/signatures/signature.ts';
import { COMMAND_LINES, ENV_LINES, envIn, VERSION_LINES } from './ambient.ts';
import type { Scans } from './scan.ts';

/** One attempt as signatures see it. */
export function viewOf(evidence: Evidence, scans: Scans, stalled: Stage | undefined): View {
  const latest = latestOf(evidence);
  const head = evidence.ranks.find(({ role }) => role === 'head');
  const ended = evidence.ranks.some(({ ended }) => ended !== undefined && !ended.requested);
  const of = (node: string) => (found: Found) => found.node === node;
  return {
    evidence,
    find: scans.find,
    stalled,
    logs: [
      ...evidence.ranks.map((rank) => ofRank(rank, latest)),
      ...(evidence.side ?? []).map((log) => ofSide(log, evidence, latest)),
    ],
    serves: head?.stage === 'serving' && !ended && !scans.fatal && !troubled(evidence, scans),
    command(node) {
      const used = evidence.services.find((service) => service.node === node);
      const told = evidence.launched?.find((one) => one.node === node)?.command;
      if (told !== undefined) return told;
      if (used !== undefined)
        return used.argv
          .map((word) => (typeof word === 'string' ? quotePlainly(word) : `$${word.secret}`))
          .join(' ');
      return scans.find(COMMAND_LINES).find(of(node))?.message ?? '';
    },
    env(node, name) {
      const service = evidence.services.find((one) => one.node === node);
      const given = service?.env[name] ?? evidence.launched?.find((one) => one.node === node)?.env?.[name];
      if (given !== undefined) return given;
      for (const found of scans.find(ENV_LINES).filter(of(node)).toReversed()) {
        const value = envIn(found.message, name);
        if (value !== undefined) return value;
      }
      return undefined;
    },
    version(node, what) {
      const given = evidence.launched?.find((one) => one.node === node)?.versions?.[what];
      return given ?? versionByFacts(evidence, node, what) ?? versionInLog(scans, node, what);
    },
  };
}

/** Exceptions that end a request and not the service. */
const OF_A_REQUEST =
  /Cancelled|Disconnect|ConnectionReset|BrokenPipe|ValidationError|BadRequest|HTTPException|ValueError|KeyError|TypeError|Template|JSONDecode|UnicodeDecode|KeyboardInterrupt|SystemExit/;

/** Whether a rank threw something while it served that ends more than a request. */
function troubled({ ranks }: Evidence, scans: Scans): boolean {
  return ranks.some((rank) =>
    scans
      .telling(rank)
      .some(
        ({ stage, weight, message }) =>
          stage === 'serving' && weight === 3 && !OF_A_REQUEST.test(message) && !isHarmless(message),
      ),
  );
}

function versionInLog(scans: Scans, node: string, what: string): string | undefined {
  for (const { form } of VERSION_LINES.filter((one) => one.what === what)) {
    const version = scans.find(form).find((found) => found.node === node)?.groups['version'];
    if (version !== undefined) return version;
  }
  return undefined;
}

function versionByFacts(evidence: Evidence, node: string, what: string): string | undefined {
  const facts = [...evidence.after, ...evidence.before].find(
    (one): one is ReachedFacts => one.node === node && one.reached,
  );
  if (facts === undefined) return undefined;
  if (what === 'kernel') return valueIf(facts.host)?.kernel || undefined;
  if (what === 'driver') return valueIf(facts.driver?.version) ?? valueIf(facts.gpus)?.[0]?.driver;
  const engine = (valueIf(facts.engines) ?? []).find((one) => one.engine.startsWith(what));
  return valueIf(engine?.version);
}

function ofRank(rank: RankEvidence, latest: number): LogView {
  return {
    name: rank.node,
    node: rank.node,
    kind: 'rank',
    role: rank.role,
    rank: rank.rank,
    stage: rank.stage,
    exit: rank.ended?.code,
    ...tailOf(rank.lines, latest),
  };
}

function ofSide(log: SideLog, evidence: Evidence, latest: number): LogView {
  const rank = evidence.ranks.find(({ node }) => node === log.node);
  return {
    name: log.name,
    node: log.node ?? log.name,
    kind: log.kind,
    role: rank?.role,
    rank: rank?.rank ?? -1,
    stage: 'start',
    exit: undefined,
    ...tailOf(log.lines, latest),
  };
}

function tailOf(
  lines: readonly LogLine[],
  latest: number,
): { readonly lines: number; readonly last: LogLine | undefined; readonly silentSeconds: number } {
  const last = lines.findLast(({ text }) => text.trim() !== '');
  const at = lines.at(-1)?.at;
  return {
    lines: lines.at(-1)?.line ?? 0,
    last,
    silentSeconds: at === undefined ? 0 : Math.max(0, Math.round((latest - at) / 1000)),
  };
}

function latestOf({ ranks, side = [] }: Evidence): number {
  return Math.max(0, ...[...ranks, ...side].map(({ lines }) => lines.at(-1)?.at ?? 0));
}
