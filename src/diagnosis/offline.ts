import type { Evidence, LogLine, RankEvidence, SideLog, Told } from '../domain/evidence.ts';
import { type EngineName, type Recipe, recipeSchema } from '../domain/recipe.ts';
import { engines } from '../knowledge/engines/index.ts';
import { logsAfterwards } from './afterwards.ts';
import { wasAsked } from './asked-to-stop.ts';
import { fileLines } from './file-lines.ts';
import { type NamedLog, rankInLog, readLogName, severalNodesIn } from './log-names.ts';
import { recogniseEngine } from './recognise-engine.ts';
import { stageAfter } from './starts.ts';

/** A log with its name, as somebody hands it over. */
export type HandedLog = {
  readonly name: string;
  readonly lines: readonly LogLine[];
  /** When it last changed, ms. */
  readonly changedAt: number;
  /** Its rank, where whoever named it said so. */
  readonly rank?: number | undefined;
};

export const NOTHING_TOLD: Told = { facts: [], launched: [], exits: {} };

type Seated = { readonly log: HandedLog; readonly named: NamedLog; readonly rank: number };

/**
 * Logs of an attempt that somebody else launched, as evidence: which are ranks' and which stand beside them, told by
 * their names and, where a name is only a node's, by what they say. A pair of which one log is missing gets an empty
 * one in its place, so that the missing node can be named.
 */
export function offlineEvidence(
  logs: readonly HandedLog[],
  {
    engine,
    now,
    finished = true,
    told = NOTHING_TOLD,
  }: { readonly engine: EngineName; readonly now: number; readonly finished?: boolean; readonly told?: Told },
): Evidence {
  const named = logs.map((log) => ({ log, named: readLogName(log.name) }));
  const ranked = seated(named.filter(({ named: { kind } }) => kind === 'rank'));
  const sides = named.filter(({ named: { kind } }) => kind !== 'rank');
  const ranks = [
    ...ranked.map(({ log, rank }) => rankOf(log, rank, engine, told)),
    ...missing(ranked, now),
  ].toSorted((a, b) => a.rank - b.rank);
  return {
    engine,
    recipe: handLaunched(engine, Math.max(1, ranks.length), told),
    services: [],
    ranks,
    before: told.facts,
    after: [],
    side: [
      ...sides.map(
        ({ log, named: { kind, of } }): SideLog => ({
          name: log.name,
          kind,
          node: of === undefined ? undefined : nodeNamed(of, ranks),
          lines: log.lines,
        }),
      ),
      ...logsAfterwards(told.facts),
    ],
    launched: told.launched,
    ...(finished ? { finished } : {}),
    now,
  };
}

/** Noon of a day: good for logs whose time of arrival is not known. */
const NOON = Date.UTC(2026, 0, 1, 12);

/** Finished logs by name as evidence, read as files are. */
export function evidenceOfTexts(
  texts: Readonly<Record<string, Uint8Array>>,
  told: Told = NOTHING_TOLD,
): Evidence {
  const logs = Object.entries(texts).map(([name, bytes]): HandedLog => {
    const file = fileLines();
    return { name, lines: [...file.take(bytes, NOON), ...file.end(NOON)], changedAt: NOON };
  });
  return offlineEvidence(logs, {
    engine: recogniseEngine(logs.map(({ lines }) => lines)) ?? 'vllm',
    now: NOON,
    told,
  });
}

/** Gives each rank's log its number: what its name or its lines say, else the order. */
function seated(logs: readonly { readonly log: HandedLog; readonly named: NamedLog }[]): readonly Seated[] {
  const wanted = logs.map(({ log, named }) => ({
    log,
    named,
    rank: log.rank ?? named.rank ?? (logs.length > 1 ? rankInLog(log.lines) : undefined),
  }));
  const taken = new Set<number>();
  const sure = wanted.map((one) => {
    if (one.rank === undefined || taken.has(one.rank)) return { ...one, rank: undefined };
    taken.add(one.rank);
    return one;
  });
  return sure.map(({ log, named, rank }) => {
    if (rank !== undefined) return { log, named, rank };
    let next = 0;
    while (taken.has(next)) next += 1;
    taken.add(next);
    return { log, named, rank: next };
  });
}

function rankOf(
  { name, lines, changedAt }: HandedLog,
  rank: number,
  engine: EngineName,
  told: Told,
): RankEvidence {
  const { stage, percent } = stageAfter(lines, engines[engine], changedAt);
  const code = told.exits[name];
  const requested = stage === 'serving' && wasAsked(lines);
  return {
    rank,
    role: rank === 0 ? 'head' : 'worker',
    node: name,
    lines,
    stage,
    percent,
    movedAt: changedAt,
    ended: code === undefined ? undefined : { code, requested, at: lines.at(-1)?.at ?? changedAt },
  };
}

/** The other half of a pair of which only one log was handed over. */
function missing(ranked: readonly Seated[], now: number): readonly RankEvidence[] {
  const [only] = ranked;
  if (only === undefined || ranked.length > 1) return [];
  if (only.rank === 0 && !severalNodesIn(only.log.lines)) return [];
  const rank = only.rank === 0 ? 1 : 0;
  const role = rank === 0 ? 'head' : 'worker';
  return [
    {
      rank,
      role,
      node: role,
      lines: [],
      stage: 'start',
      percent: undefined,
      movedAt: now,
      ended: undefined,
      unseen: true,
    },
  ];
}

function nodeNamed(of: string, ranks: readonly RankEvidence[]): string | undefined {
  return ranks.find(({ node, role }) => node === of || role === of)?.node;
}

/** What can be said of the recipe of a job that was launched by hand: its engine, its size, and what was told of it. */
function handLaunched(engine: EngineName, nodes: number, { launched }: Told): Recipe {
  const [first] = launched;
  const words = first?.command?.trim().split(/\s+/) ?? [];
  const flags = words.findIndex((word) => word.startsWith('--'));
  return recipeSchema.parse({
    recipe: 'by-hand',
    model: 'unknown',
    path: '/unknown',
    engines: [engine],
    layout: { nodes, tensor: nodes },
    run: { in: 'process' },
    // Nobody gave its ranks addresses of their own, as firstlight would.
    network: 'engine',
    args: flags === -1 ? {} : { [engine]: words.slice(flags) },
    env: first?.env ?? {},
  });
}
