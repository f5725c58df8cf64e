import { diagnose, failed } from '../diagnosis/diagnose.ts';
import { type FileLines, fileLines } from '../diagnosis/file-lines.ts';
import { recogniseEngine } from '../diagnosis/recognise-engine.ts';
import { newTracker, trackLine } from '../diagnosis/stages.ts';
import type { Evidence, LogLine, RankEvidence } from '../domain/evidence.ts';
import type { Finding } from '../domain/finding.ts';
import { ENGINES, type EngineName, type Recipe, recipeSchema } from '../domain/recipe.ts';
import type { DiagnoseReport } from '../domain/report.ts';
import { UserError } from '../domain/user-error.ts';
import { readLogFile } from '../files/log-file.ts';
import { engines } from '../knowledge/engines/index.ts';
import { readLog } from '../remote/log-file.ts';
import { keepLines } from './keep-lines.ts';
import { type LogSource, logSources } from './log-sources.ts';
import type { Answer } from './operation.ts';
import type { World } from './world.ts';

export type LogsInput = {
  readonly log: readonly string[];
  readonly engine?: EngineName | undefined;
  readonly follow: boolean;
};

type OpenLog = {
  readonly source: LogSource;
  readonly file: FileLines;
  readonly lines: LogLine[];
  /** Our clock, ms, when the file last changed. */
  changedAt: number;
  /** Bytes that were there already when it was opened. */
  old: number;
  bytes: number;
};

/** After this long without a line from any rank, what is known is all there will be. */
const QUIET_MILLISECONDS = 5000;

/**
 * Why an attempt failed that somebody launched by hand, from its ranks' log files here or on nodes. With `follow`
 * until it failed, serves, or is left; what is known then is the answer.
 */
export async function diagnoseLogs(world: World, input: LogsInput): Promise<Answer> {
  const sources = logSources(input.log);
  for (const { node } of sources) if (node !== undefined) nodeOf(world, node);
  const logs = sources.map(
    (source): OpenLog => ({
      source,
      file: fileLines(),
      lines: [],
      changedAt: world.clock.now(),
      old: 0,
      bytes: 0,
    }),
  );
  if (input.follow) await followAll(world, logs, input.engine);
  else await Promise.all(logs.map((log) => readOne(world, log, false, world.signal)));
  for (const log of logs) take(world, log, log.file.end(log.changedAt), input.follow);
  return { report: reportOf(world, logs, input.engine), exit: 0 };
}

function nodeOf(world: World, name: string): void {
  if (world.cluster.nodes.some((node) => node.name === name)) return;
  throw new UserError(
    'bad-input',
    `there is no node ${name} in ${world.cluster.file}`,
    `nodes are: ${world.cluster.nodes.map((node) => node.name).join(', ')}; a file of this machine with a colon in it is named ./FILE`,
  );
}

async function followAll(
  world: World,
  logs: readonly OpenLog[],
  engine: EngineName | undefined,
): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([world.signal, stop.signal]);
  let broken: unknown;
  const reading = logs.map((log) =>
    readOne(world, log, true, signal).catch((error: unknown) => {
      if (signal.aborted) return;
      broken = error;
      stop.abort();
    }),
  );
  while (!signal.aborted) {
    await world.clock.wait(200, signal).catch(() => undefined); // the loop ends by the signal
    const seen = evidenceOf(world, logs, engine);
    const quiet = world.clock.now() - Math.max(...logs.map((log) => log.changedAt)) > QUIET_MILLISECONDS;
    if (seen !== undefined && (serves(seen) || (quiet && failed(seen)))) stop.abort();
  }
  await Promise.all(reading);
  if (broken !== undefined) throw broken;
}

async function readOne(world: World, log: OpenLog, follow: boolean, signal: AbortSignal): Promise<void> {
  const { node, path, text } = log.source;
  const options = {
    follow,
    signal,
    opened: ({ silentSeconds, bytes }: { readonly silentSeconds: number; readonly bytes: number }) => {
      // Whoever follows waits for what comes: silence before that is not held against it.
      if (!follow) log.changedAt = world.clock.now() - silentSeconds * 1000;
      log.old = bytes;
    },
    bytes: (chunk: Uint8Array) => {
      log.bytes += chunk.length;
      if (log.bytes > log.old) log.changedAt = world.clock.now();
      take(world, log, log.file.take(chunk, log.changedAt), follow);
    },
  };
  if (node === undefined) return readLogFile(path, options);
  for (;;) {
    const read = await readLog(world.hosts.of(node), path, { ...options, fromByte: log.bytes });
    if (read.kind === 'read') return;
    if (read.kind === 'unreadable')
      throw new UserError(
        'bad-input',
        `${text} cannot be read: ${read.why}`,
        `see what is there: ssh ${node} ls -l ${path}`,
      );
    if (!follow) throw new UserError('bad-input', read.failure.sentence, read.failure.remedy);
    await world.clock.wait(1000, signal);
  }
}

function take(world: World, log: OpenLog, fresh: readonly LogLine[], follow: boolean): void {
  keepLines(log.lines, fresh);
  if (follow && fresh.length > 0)
    world.live({
      kind: 'lines',
      rank: log.source.rank,
      node: log.source.name,
      lines: fresh.map((line) => line.text),
    });
}

/** All ranks as one attempt, as far as files tell: no facts of hosts, no service of ours. */
function evidenceOf(
  world: World,
  logs: readonly OpenLog[],
  given: EngineName | undefined,
): Evidence | undefined {
  const name = given ?? recogniseEngine(logs.map((log) => log.lines));
  if (name !== undefined) return evidenceAs(world, logs, name);
  // A piece of a log may name nobody and still show a cause.
  return ENGINES.map((engine) => evidenceAs(world, logs, engine)).find(
    (seen) => failed(seen) && diagnose(seen, { final: true }).cause !== 'unknown',
  );
}

function evidenceAs(world: World, logs: readonly OpenLog[], name: EngineName): Evidence {
  return {
    engine: name,
    recipe: handLaunched(name, logs.length),
    services: [],
    ranks: logs.map((log) => rankOf(log, name)),
    before: [],
    after: [],
    now: world.clock.now(),
  };
}

function rankOf({ source, lines, changedAt }: OpenLog, engine: EngineName): RankEvidence {
  const { rank } = source;
  const tracker = newTracker(engines[engine], [{ rank }], changedAt);
  for (const line of lines) trackLine(tracker, rank, line);
  const { stage, percent } = tracker.of(rank);
  return {
    rank,
    role: rank === 0 ? 'head' : 'worker',
    node: source.name,
    lines,
    stage,
    percent,
    movedAt: changedAt,
    ended: undefined,
  };
}

function serves({ ranks, engine }: Evidence): boolean {
  return ranks.every(
    ({ role, stage }) => stage === 'serving' || (role === 'worker' && !engines[engine].workerHealth),
  );
}

/** What can be said of the recipe of a job that was launched by hand: its engine and its size. */
function handLaunched(engine: EngineName, nodes: number): Recipe {
  return recipeSchema.parse({
    recipe: 'by-hand',
    model: 'unknown',
    path: '/unknown',
    engines: [engine],
    layout: { nodes, tensor: nodes },
    run: { in: 'process' },
  });
}

function reportOf(world: World, logs: readonly OpenLog[], given: EngineName | undefined): DiagnoseReport {
  const seen = evidenceOf(world, logs, given);
  if (seen === undefined)
    throw new UserError(
      'bad-input',
      'no engine is recognised in these logs',
      `say which one wrote them: --engine ${ENGINES.join(' or --engine ')}`,
    );
  const findings = failed(seen) ? [asInFiles(diagnose(seen, { final: true }), logs)] : [];
  return {
    kind: 'diagnose',
    run: '',
    findings,
    engine: seen.engine,
    logs: seen.ranks.map(({ rank, role, node, stage, percent }, index) => ({
      rank,
      role,
      node,
      source: logs[index]?.source.text ?? '',
      lines: logs[index]?.file.count ?? 0,
      stage,
      percent,
      silentSeconds: Math.max(0, Math.round((seen.now - (logs[index]?.changedAt ?? seen.now)) / 1000)),
    })),
  };
}

/** Quotes as they stand in the files. */
function asInFiles(finding: Finding, logs: readonly OpenLog[]): Finding {
  const quotes = finding.quotes.map((quote) => {
    const log = logs.find(({ source }) => source.rank === quote.rank);
    const line = log?.lines.find(({ line: number, text }) => number === quote.line && text === quote.text);
    return log === undefined || line === undefined ? quote : { ...quote, text: log.file.raw(line) };
  });
  const source = logs.find((log) => log.source.rank === finding.rank)?.source.text;
  // A command of ours for a run's log means nothing here.
  const advice = finding.advice.map((one) =>
    one.startsWith('Read the whole log:')
      ? `Read the whole log: ${source ?? logs.map((log) => log.source.text).join(', ')}`
      : one,
  );
  return { ...finding, quotes, advice };
}
