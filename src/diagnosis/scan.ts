import type { Evidence, LogKind, LogLine, RankEvidence, SideLog } from '../domain/evidence.ts';
import { STAGES, type Stage } from '../domain/finding.ts';
import type { Engine } from '../knowledge/engines/engine.ts';
import { engines } from '../knowledge/engines/index.ts';
import { rayAddressOf } from '../knowledge/engines/log-line.ts';
import { consequences } from '../knowledge/signatures/consequences.ts';
import { signatures } from '../knowledge/signatures/index.ts';
import type { Found, Pattern } from '../knowledge/signatures/signature.ts';
import { FATAL, weight } from '../knowledge/signatures/telling.ts';
import { AMBIENT } from './ambient.ts';
import { type LiteralSet, literalSet } from './literal-set.ts';

/** Lines of one rank that may prove something, each with the stage it came in. */
export type Telling = {
  readonly line: LogLine;
  readonly message: string;
  readonly stage: Stage;
  readonly weight: number;
};

type Scan = {
  readonly found: Map<Pattern, Found[]>;
  /** Lines with an exception, an error level or an end, at most the first and last hundred. */
  readonly telling: Telling[];
  fatal: boolean;
  stage: Stage;
  scanned: number;
};

/** A line's stage, patterns and weight, kept per rank's array of lines: a growing log is read once. */
export type Scans = {
  find(form: Pattern): readonly Found[];
  telling(rank: RankEvidence): readonly Telling[];
  /** The same of logs that are no rank's. */
  readonly besides: readonly { readonly log: SideLog; readonly telling: readonly Telling[] }[];
  readonly fatal: boolean;
};

const TELLING_KEPT = 200;
const FOUND_KEPT = 200;

type Net = {
  readonly set: LiteralSet;
  readonly forms: readonly (readonly Pattern[])[];
  readonly fatal: LiteralSet;
};
let net: Net | undefined;

/** All literals of all patterns as one automaton; built at the first use. */
function theNet(): Net {
  if (net !== undefined) return net;
  const forms = new Set([
    ...signatures.flatMap((signature) => signature.patterns),
    ...consequences.map((consequence) => consequence.form),
    ...AMBIENT,
  ]);
  const byLiteral = new Map<string, Pattern[]>();
  for (const form of forms) {
    for (const literal of form.literals) byLiteral.set(literal, [...(byLiteral.get(literal) ?? []), form]);
  }
  net = { set: literalSet([...byLiteral.keys()]), forms: [...byLiteral.values()], fatal: literalSet(FATAL) };
  return net;
}

/** Whether a rank that prints this line does not go on. */
export function isFatal(text: string): boolean {
  return theNet().fatal.any(text);
}

const kept = new WeakMap<readonly LogLine[], Map<Engine, Scan>>();

/** Reads what is new of one log, so that the middle of a long one may be cut; its lines' array must stay the same. */
export function readAhead(lines: readonly LogLine[], engine: Engine): void {
  scanLog({ rank: -1, role: 'head', node: '', lines }, engine);
}

/** Reads what is new of every rank's lines. The lines' arrays may have grown since the last call, and been cut within. */
export function scan(evidence: Evidence): Scans {
  const engine = engines[evidence.engine];
  const speakers = speakersOf(evidence);
  const scans = new Map(evidence.ranks.map((rank) => [rank.rank, scanLog(rank, engine)]));
  const sides = (evidence.side ?? []).map((log) => {
    const place = placeOf(log, evidence);
    return { log, place, one: scanLog({ ...place, lines: log.lines }, engine) };
  });
  return {
    find: (form) =>
      [
        ...evidence.ranks.flatMap((rank) =>
          (scans.get(rank.rank)?.found.get(form) ?? []).map((found) => seat(found, rank, speakers)),
        ),
        ...sides.flatMap(({ one, place }) =>
          (one.found.get(form) ?? []).map((found) => ({ ...found, ...place })),
        ),
      ].toSorted((a, b) => a.line.at - b.line.at || a.rank - b.rank || a.line.line - b.line.line),
    telling: (rank) => scans.get(rank.rank)?.telling ?? [],
    besides: sides.map(({ log, one }) => ({ log, telling: one.telling })),
    fatal: [...scans.values()].some((one) => one.fatal),
  };
}

type Place = Pick<Found, 'rank' | 'role' | 'node'> & {
  readonly side?: { readonly name: string; readonly kind: LogKind };
};

/** Who speaks in a log that is no rank's. */
function placeOf({ name, kind, node }: SideLog, { ranks }: Evidence): Place {
  const rank = ranks.find((one) => one.node === node);
  const side = { name, kind };
  return rank === undefined
    ? { rank: -1, role: 'head', node: node ?? name, side }
    : { rank: rank.rank, role: rank.role, node: rank.node, side };
}

/** Ranks by their node's address, where lines of one may stand in the log of another. */
function speakersOf({ engine, services, ranks }: Evidence): ReadonlyMap<string, RankEvidence> {
  if (engine !== 'vllm-ray') return new Map();
  return new Map(
    services.flatMap(({ rank, address }) => {
      const speaker = ranks.find((one) => one.rank === rank);
      return address === undefined || speaker === undefined ? [] : [[address, speaker] as const];
    }),
  );
}

/** The same lines may be looked at again under another seat (tests do so); the seat is the evidence's. */
function seat(found: Found, rank: RankEvidence, speakers: ReadonlyMap<string, RankEvidence>): Found {
  const address = speakers.size === 0 ? undefined : rayAddressOf(found.line.text);
  const speaker = address === undefined ? undefined : speakers.get(address);
  if (speaker !== undefined && speaker.rank !== rank.rank)
    return {
      ...found,
      rank: speaker.rank,
      node: speaker.node,
      role: speaker.role,
      log: { rank: rank.rank, node: rank.node },
    };
  const same = found.rank === rank.rank && found.node === rank.node && found.role === rank.role;
  return same ? found : { ...found, rank: rank.rank, node: rank.node, role: rank.role };
}

function scanLog(rank: Place & { readonly lines: readonly LogLine[] }, engine: Engine): Scan {
  const byEngine = kept.get(rank.lines) ?? new Map<Engine, Scan>();
  kept.set(rank.lines, byEngine);
  const before = byEngine.get(engine);
  const last = rank.lines.at(-1)?.line ?? 0;
  const one = before ?? { found: new Map(), telling: [], fatal: false, stage: 'start', scanned: 0 };
  byEngine.set(engine, one);
  if (last <= one.scanned) return one;
  for (let at = firstAfter(rank.lines, one.scanned); at < rank.lines.length; at++) {
    const line = rank.lines[at];
    if (line !== undefined) scanLine(one, rank, line, engine);
  }
  one.scanned = last;
  return one;
}

function firstAfter(lines: readonly LogLine[], number: number): number {
  let at = lines.length;
  while (at > 0 && (lines[at - 1]?.line ?? 0) > number) at--;
  return at;
}

function scanLine(one: Scan, rank: Place, line: LogLine, engine: Engine): void {
  const { set, forms, fatal } = theNet();
  const mark = engine.landmark(line.text);
  if (mark && STAGES.indexOf(mark.stage) > STAGES.indexOf(one.stage)) one.stage = mark.stage;
  if (line.text === '') return;
  const message = engine.message(line.text);
  const worth = weight(message, line.text);
  if (worth > 0) {
    if (one.telling.length >= TELLING_KEPT) one.telling.splice(TELLING_KEPT / 2, 1);
    one.telling.push({ line, message, stage: one.stage, weight: worth });
  }
  if (!one.fatal && fatal.any(line.text)) one.fatal = true;
  const hit = new Set<Pattern>();
  for (const index of set.in(line.text)) for (const form of forms[index] ?? []) hit.add(form);
  for (const form of hit) {
    const groups = form.regex.exec(message);
    if (groups === null) continue;
    const list = one.found.get(form) ?? [];
    one.found.set(form, list);
    // A retry that repeats for hours proves no more by its ten thousandth line than by its first and its last.
    if (list.length >= FOUND_KEPT) list.splice(FOUND_KEPT / 2, 1);
    const { rank: number, role, node } = rank;
    list.push({ rank: number, role, node, line, message, stage: one.stage, groups: groups.groups ?? {} });
  }
}
