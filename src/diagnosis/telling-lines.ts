import type { Evidence, LogLine, RankEvidence } from '../domain/evidence.ts';
import type { Quote } from '../domain/finding.ts';
import { messageOf } from '../knowledge/engines/log-line.ts';
import { consequences } from '../knowledge/signatures/consequences.ts';
import { isHarmless } from '../knowledge/signatures/harmless.ts';
import type { Scans } from './scan.ts';
import { withoutUsers } from './user-words.ts';

/** One log's line that may tell why, with the weight of its words. */
export type ToldLine = {
  readonly node: string;
  readonly rank: RankEvidence | undefined;
  /** Name of the log where it is no rank's. */
  readonly log: string | undefined;
  readonly line: LogLine;
  readonly message: string;
  readonly weight: number;
  readonly times: number;
};

const LAST = 30;
/** A user's words may reach from further up into the last lines. */
const LAST_WITH_USERS = 400;
/** A frame of a traceback, or the source line in it. */
const FRAME = /^(?:\([^)]*\)\s*)*\s*(?:File "|\^+|~+\^)|^\s{4,}\S/;
/** The head of a traceback says only that one follows. */
const HEAD = /Traceback \(most recent call last\):?$/;
/** What vLLM itself calls information, behind any prefix. */
const MILD = /^(?:\([^)]*\)\s*)*(?:INFO|DEBUG)\b/;

/**
 * Lines of all logs that no other rank's failure explains, weightiest first, then earliest; with `echoes` those too
 * that only tell of it.
 */
export function tellingLines(
  evidence: Evidence,
  scans: Scans,
  { echoes: all = false }: { readonly echoes?: boolean } = {},
): readonly ToldLine[] {
  const echoes = all
    ? new Set<LogLine>()
    : new Set(consequences.flatMap(({ form }) => scans.find(form).map((found) => found.line)));
  const spoken = [
    ...evidence.ranks.map((rank) => ({ rank, node: rank.node, log: undefined, told: scans.telling(rank) })),
    ...scans.besides.map(({ log, telling }) => ({
      rank: evidence.ranks.find(({ node }) => node === log.node),
      node: log.node ?? log.name,
      log: log.name,
      told: telling,
    })),
  ];
  return spoken
    .flatMap(({ told, ...who }) =>
      told.map(({ line, message, weight, times }) => ({ ...who, line, message, weight, times })),
    )
    .filter(
      ({ line, weight, message }) =>
        weight > 0 && !echoes.has(line) && !isHarmless(message) && !HEAD.test(message),
    )
    .toSorted((a, b) => b.weight - a.weight || a.line.at - b.line.at);
}

/** The last words of every log that are not harmless: what is left to look at where no line tells. */
export function lastWords(
  evidence: Evidence,
  count = LAST,
): readonly {
  readonly node: string;
  readonly rank: number;
  readonly log: string | undefined;
  readonly line: LogLine;
}[] {
  return [
    ...evidence.ranks.map(({ lines, node, rank }) => ({ lines, node, rank, log: undefined })),
    ...(evidence.side ?? []).map(({ lines, node, name }) => ({
      lines,
      node: node ?? name,
      rank: -1,
      log: name,
    })),
  ].flatMap(({ lines, ...who }) =>
    withoutUsers(lines.slice(-LAST_WITH_USERS), (text) => messageOf(text) !== text)
      .slice(-LAST)
      .filter(
        ({ text }) =>
          text.trim() !== '' && !isHarmless(messageOf(text)) && !MILD.test(text) && !FRAME.test(text),
      )
      .slice(-count)
      .map((line) => ({ ...who, line })),
  );
}

/** A line as a finding quotes it. */
export function quoteOf(node: string, rank: number, log: string | undefined, line: LogLine): Quote {
  return { rank, node, line: line.line, text: line.text, ...(log === undefined ? {} : { log }) };
}
