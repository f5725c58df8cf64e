import { answerOf } from '../diagnosis/answer.ts';
import { failed } from '../diagnosis/diagnose.ts';
import { newWatch } from '../diagnosis/nothing-more.ts';
import { NOTHING_TOLD, offlineEvidence } from '../diagnosis/offline.ts';
import { recogniseEngine } from '../diagnosis/recognise-engine.ts';
import { readAhead } from '../diagnosis/scan.ts';
import { verdictOf } from '../diagnosis/verdict.ts';
import type { Evidence, LogLine, Told } from '../domain/evidence.ts';
import type { Finding, Quote } from '../domain/finding.ts';
import type { EngineName } from '../domain/recipe.ts';
import type { DiagnoseReport } from '../domain/report.ts';
import { UserError } from '../domain/user-error.ts';
import { engines } from '../knowledge/engines/index.ts';
import { keepLines } from './logs/keep-lines.ts';
import type { LogSource } from './logs/log-sources.ts';
import { handedLog, type OpenLog, openLog, readOpenLog } from './logs/open-logs.ts';
import type { Answer } from './operation.ts';
import type { World } from './world.ts';

/** Logs to judge, by what names them, and what is told beside them. */
export type LogsInput = {
  readonly sources: readonly LogSource[];
  /** Content of sources that was read already, by the source's path. */
  readonly contents?: ReadonlyMap<string, Uint8Array>;
  readonly told?: Told | undefined;
  readonly engine?: EngineName | undefined;
  readonly follow: boolean;
};

/** Engines name themselves at their start; whoever has not by then is read as a vLLM, whose lines look the same. */
const TOLD_BY_LINES = 20_000;
const UNTOLD: EngineName = 'vllm';

/**
 * Why an attempt failed that somebody launched by hand, from its logs here or on nodes. With `follow` until it failed,
 * serves, or is left; what is known then is the answer.
 */
export async function diagnoseLogs(world: World, input: LogsInput): Promise<Answer> {
  for (const { node } of input.sources) if (node !== undefined) nodeOf(world, node);
  const logs = input.sources.map((source) => openLog(source, world.clock.now()));
  const take = taker(world, logs, input);
  if (input.follow) await followAll(world, logs, input, take);
  else
    await Promise.all(
      logs.map(async (log) => {
        const content = input.contents?.get(log.source.path);
        if (content !== undefined) take(log)(log.file.take(content, log.changedAt));
        else await readOpenLog(world, log, { follow: false, signal: world.signal, fresh: take(log) });
      }),
    );
  for (const log of logs) take(log)(log.file.end(log.changedAt));
  return { report: reportOf(world, logs, input), exit: 0 };
}

function nodeOf(world: World, name: string): void {
  if (world.cluster.nodes.some((node) => node.name === name)) return;
  throw new UserError(
    'bad-input',
    `there is no node ${name} in ${world.cluster.file}`,
    `nodes are: ${world.cluster.nodes.map((node) => node.name).join(', ')}; a file of this machine with a colon in it is named ./FILE`,
  );
}

type Take = (log: OpenLog) => (fresh: readonly LogLine[]) => void;

/** Keeps the lines that come. Of a long log the middle is forgotten, after it was searched. */
function taker(world: World, logs: readonly OpenLog[], input: LogsInput): Take {
  const ahead = new Map<OpenLog, EngineName>();
  return (log) => (fresh) => {
    for (const line of fresh) log.lines.push(line);
    if (log.lines.length > TOLD_BY_LINES) {
      const engine = ahead.get(log) ?? input.engine ?? recogniseEngine([log.lines]) ?? UNTOLD;
      ahead.set(log, engine);
      readAhead(log.lines, engines[engine]);
    }
    keepLines(log.lines, []);
    if (input.follow && fresh.length > 0)
      world.live({
        kind: 'lines',
        rank: log.source.rank ?? logs.indexOf(log),
        node: log.source.name,
        lines: fresh.map((line) => line.text),
      });
  };
}

async function followAll(
  world: World,
  logs: readonly OpenLog[],
  input: LogsInput,
  take: Take,
): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([world.signal, stop.signal]);
  let broken: unknown;
  const reading = logs.map((log) =>
    readOpenLog(world, log, { follow: true, signal, fresh: take(log) }).catch((error: unknown) => {
      if (signal.aborted) return;
      broken = error;
      stop.abort();
    }),
  );
  const nothingMore = newWatch();
  while (!signal.aborted) {
    await world.clock.wait(200, signal).catch(() => undefined); // the loop ends by the signal
    const seen = evidenceOf(world, logs, input);
    const changedAt = Math.max(...logs.map((log) => log.changedAt));
    if (serves(seen) || nothingMore(seen, changedAt)) stop.abort();
  }
  await Promise.all(reading);
  if (broken !== undefined) throw broken;
}

function evidenceOf(world: World, logs: readonly OpenLog[], input: LogsInput): Evidence {
  const { told = NOTHING_TOLD } = input;
  const engine = input.engine ?? told.engine ?? recogniseEngine(logs.map((log) => log.lines)) ?? UNTOLD;
  return offlineEvidence(logs.map(handedLog), {
    engine,
    now: world.clock.now(),
    finished: !input.follow,
    told,
  });
}

function serves({ ranks, engine }: Evidence): boolean {
  return (
    ranks.length > 0 &&
    ranks.every(
      ({ role, stage }) => stage === 'serving' || (role === 'worker' && !engines[engine].workerHealth),
    )
  );
}

function reportOf(world: World, logs: readonly OpenLog[], input: LogsInput): DiagnoseReport {
  const seen = evidenceOf(world, logs, input);
  const first = verdictOf(seen);
  // Whoever leaves a job that still comes up is told no failure, but how far it came.
  const going = input.follow && first.cause === 'unknown' && !failed(seen);
  const judged = going ? verdictOf({ ...seen, finished: true }) : first;
  const textOf = textIn(logs);
  const inFiles = (finding: Finding): Finding => asInFiles(finding, logs, textOf);
  const verdict = {
    ...judged,
    finding: judged.finding && inFiles(judged.finding),
    ...(judged.earlier === undefined ? {} : { earlier: inFiles(judged.earlier) }),
  };
  return {
    kind: 'diagnose',
    answer: answerOf(verdict, seen),
    run: '',
    findings: going ? [] : [verdict.finding, verdict.earlier].filter((one) => one !== undefined),
    engine: seen.engine,
    logs: seen.ranks
      .filter(({ unseen }) => unseen !== true)
      .map(({ rank, role, node, stage, percent }) => {
        const log = logs.find(({ source }) => source.name === node);
        return {
          rank,
          role,
          node,
          source: log?.source.text ?? '',
          lines: log?.file.count ?? 0,
          stage,
          percent,
          silentSeconds: Math.max(0, Math.round((seen.now - (log?.changedAt ?? seen.now)) / 1000)),
        };
      }),
  };
}

/** A quoted line as its file has it. */
function textIn(logs: readonly OpenLog[]): (quote: Quote) => string {
  return (quote) => {
    const log = logs.find(({ source }) => source.name === (quote.log ?? quote.node));
    const line = log?.lines.find(({ line: number, text }) => number === quote.line && text === quote.text);
    return log === undefined || line === undefined ? quote.text : log.file.raw(line);
  };
}

function asInFiles(finding: Finding, logs: readonly OpenLog[], textOf: (quote: Quote) => string): Finding {
  const quotes = finding.quotes.map((quote) => ({ ...quote, text: textOf(quote) }));
  const source = logs.find((log) => log.source.name === finding.node)?.source.text;
  // A command of ours for a run's log means nothing here.
  const advice = finding.advice.map((one) =>
    one.startsWith('Read the whole log:')
      ? `Read the whole log: ${source ?? logs.map((log) => log.source.text).join(', ')}`
      : one,
  );
  return { ...finding, quotes, advice };
}
