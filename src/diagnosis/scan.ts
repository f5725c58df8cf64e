import type { Evidence, LogKind, LogLine, RankEvidence, SideLog } from '../domain/evidence.ts';
import { STAGES, type Stage } from '../domain/finding.ts';
import type { Engine } from '../knowledge/engines/engine.ts';
import { engines } from '../knowledge/engines/index.ts';
import { rayAddressOf, START } from '../knowledge/engines/log-line.ts';
import type { Found, Pattern } from '../knowledge/signatures/signature.ts';
import { weight } from '../knowledge/signatures/telling.ts';
import { type FirstAndLast, firstAndLast } from './kept-lines.ts';
import { theNet } from './scan-net.ts';
import { pastUser, repeatsUser } from './user-words.ts';

/** Lines of one rank that may prove something, each with the stage it came in. */
export type Telling = {
  readonly line: LogLine;
  readonly message: string;
  readonly stage: Stage;
  readonly weight: number;
  /** How often it came, numbers in it aside, with nothing else of weight between. */
  times: number;
};

type Scan = {
  readonly found: Map<Pattern, FirstAndLast<Hit>>;
  /** Lines with an exception, an error level or an end, at most the first and last hundred. */
  readonly telling: FirstAndLast<Telling>;
  last: { readonly shape: string; readonly told: Telling } | undefined;
  /** Of the last start alone, as the stage is. */
  fatal: boolean;
  /** Whether a line of the last start tells of an error or an end. */
  erred: boolean;
  /** Whether an engine has said who it is. */
  spoke: boolean;
  stage: Stage;
  /** Lines at which the log's process was started anew: docker and systemd do so in one log. */
  readonly starts: number[];
  scanned: number;
  /** How the record ends that repeats a user's words, where it was open at the last line. */
  user: RegExp | undefined;
};

/** A line that holds a pattern's literal; whether the pattern fits is looked at when somebody asks, if it has to be. */
type Hit = {
  readonly place: Place;
  readonly line: LogLine;
  readonly stage: Stage;
  readonly found?: Found;
};

/** A line's stage, patterns and weight, kept per rank's array of lines: a growing log is read once. */
export type Scans = {
  find(form: Pattern): readonly Found[];
  telling(rank: RankEvidence): readonly Telling[];
  /** The same of logs that are no rank's. */
  readonly besides: readonly { readonly log: SideLog; readonly telling: readonly Telling[] }[];
  readonly fatal: boolean;
};

/** Lines that are kept of each kind, from the beginning and again from the end. */
const KEPT = 100;

/** Whether a rank that prints this line does not go on. */
export function isFatal(text: string): boolean {
  const { set, meanings } = theNet();
  return set.in(text).some((index) => meanings[index]?.fatal === true) && repeatsUser(text) === undefined;
}

const kept = new WeakMap<readonly LogLine[], Map<Engine, Scan>>();

/** Reads what is new of one log, so that the middle of a long one may be cut; its lines' array must stay the same. */
export function readAhead(lines: readonly LogLine[], engine: Engine): void {
  scanLog({ rank: -1, role: 'head', node: '', lines }, engine);
}

/** Numbers of the lines at which a log's process was started anew after an earlier start in the same log. */
export function startsIn(lines: readonly LogLine[], engine: Engine): readonly number[] {
  return scanLog({ rank: -1, role: 'head', node: '', lines }, engine).starts;
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
          foundIn(scans.get(rank.rank), form, engine).map((found) => seat(found, rank, speakers)),
        ),
        ...sides.flatMap(({ one, place }) =>
          foundIn(one, form, engine).map((found) => ({ ...found, ...place })),
        ),
      ].toSorted((a, b) => a.line.at - b.line.at || a.rank - b.rank || a.line.line - b.line.line),
    telling: (rank) => scans.get(rank.rank)?.telling.all() ?? [],
    besides: sides.map(({ log, one }) => ({ log, telling: one.telling.all() })),
    fatal: [...scans.values()].some((one) => one.fatal),
  };
}

function foundIn(one: Scan | undefined, form: Pattern, engine: Engine): readonly Found[] {
  return (one?.found.get(form)?.all() ?? []).flatMap((hit) => hit.found ?? foundBy(form, hit, engine) ?? []);
}

/** Of a longer message a regex sees what stands around its literal: no line may hold up the rest by its length. */
const LONG = 4000;

function foundBy(form: Pattern, { place, line, stage }: Hit, engine: Engine): Found | undefined {
  const message = engine.message(line.text);
  const groups = form.regex.exec(message.length > LONG ? around(message, form.literals) : message);
  return groups === null ? undefined : { ...place, line, message, stage, groups: groups.groups ?? {} };
}

/** The beginning, if a literal stands there, else the piece around the first one. */
function around(message: string, literals: readonly string[]): string {
  const found = literals.map((literal) => message.indexOf(literal)).filter((at) => at !== -1);
  const first = Math.min(...found);
  const from = first < LONG / 2 ? 0 : first - LONG / 2;
  return message.slice(from, from + LONG);
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
  const one: Scan = before ?? {
    found: new Map(),
    telling: firstAndLast(KEPT),
    last: undefined,
    fatal: false,
    erred: false,
    spoke: false,
    stage: 'start',
    starts: [],
    scanned: 0,
    user: undefined,
  };
  byEngine.set(engine, one);
  if (last <= one.scanned) return one;
  const place = { rank: rank.rank, role: rank.role, node: rank.node };
  for (let at = firstAfter(rank.lines, one.scanned); at < rank.lines.length; at++) {
    if (one.user !== undefined) {
      const past = pastUser(rank.lines, at, one.user, (text) => engine.message(text) !== text);
      one.user = past.open;
      at = past.at;
    }
    const line = rank.lines[at];
    if (line !== undefined) one.user = scanLine(one, place, line, engine);
  }
  one.scanned = last;
  return one;
}

function firstAfter(lines: readonly LogLine[], number: number): number {
  let at = lines.length;
  while (at > 0 && (lines[at - 1]?.line ?? 0) > number) at--;
  return at;
}

/** A traceback is one line by its weights: the exception's own. What is said again and again is counted. */
function addTelling(one: Scan, told: Telling): void {
  const shape = told.message.replace(/\d+/g, '#');
  if (one.last !== undefined && one.last.shape === shape) one.last.told.times += 1;
  else {
    one.telling.add(told);
    one.last = { shape, told };
  }
}

/**
 * Engines say who they are on several lines: a start is a new one where the one before came further, or told of an
 * error; or where something that a signature knows stands before the first.
 */
function startAnew(one: Scan, { line }: LogLine): void {
  const first = !one.spoke && one.found.size > 0;
  one.spoke = true;
  if (one.stage === 'start' && !one.fatal && !one.erred && !first) return;
  one.starts.push(line);
  one.fatal = false;
  one.erred = false;
  one.stage = 'start';
  one.last = undefined;
}

/** Takes one line; gives back how the record ends that begins in it and repeats a user's words over several lines. */
function scanLine(one: Scan, rank: Place, line: LogLine, engine: Engine): RegExp | undefined {
  const { set, meanings, everyLine } = theNet();
  const { text } = line;
  const hits = set.in(text);
  if (hits.length === 0 && !everyLine) return undefined;
  if (hits.some((index) => meanings[index]?.user === true)) {
    const repeats = repeatsUser(text);
    if (repeats !== undefined) return repeats.ends;
  }
  let landmark = everyLine;
  let weighty = false;
  let start = false;
  let forms: Set<Pattern> | undefined;
  for (const index of hits) {
    const meaning = meanings[index];
    if (meaning === undefined) continue;
    landmark ||= meaning.landmark;
    weighty ||= meaning.weighty;
    start ||= meaning.start;
    one.fatal ||= meaning.fatal;
    for (const form of meaning.forms) {
      forms ??= new Set();
      forms.add(form);
    }
  }
  if (start && START.test(engine.message(text))) startAnew(one, line);
  if (landmark) {
    const mark = engine.landmark(text);
    if (mark && STAGES.indexOf(mark.stage) > STAGES.indexOf(one.stage)) one.stage = mark.stage;
  }
  if (weighty) {
    const message = engine.message(text);
    const worth = weight(message, text);
    one.erred ||= worth > 0;
    if (worth > 0) addTelling(one, { line, message, stage: one.stage, weight: worth, times: 1 });
  }
  for (const form of forms ?? []) {
    const list = one.found.get(form) ?? firstAndLast<Hit>(KEPT);
    if (!one.found.has(form)) one.found.set(form, list);
    const hit = { place: rank, line, stage: one.stage };
    const found = list.full ? undefined : foundBy(form, hit, engine);
    if (list.full) list.add(hit);
    else if (found !== undefined) list.add({ ...hit, found });
  }
  return undefined;
}
