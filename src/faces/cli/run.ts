import { type Command, CommanderError } from 'commander';
import type { z } from 'zod';
import type { Event } from '../../domain/event.ts';
import type { Report } from '../../domain/report.ts';
import { UserError } from '../../domain/user-error.ts';
import type { Answer, Operation } from '../../operations/operation.ts';
import type { Live, World } from '../../operations/world.ts';
import { cleanAll, safeJson } from './clean.ts';
import { askConsent } from './consent.ts';
import { listenForInterrupt } from './interrupt.ts';
import { createLiveView } from './live-screen.ts';
import { jsonProgress, liveProgress, type Progress, plainProgress } from './output.ts';
import { buildProgram, type Globals } from './program.ts';
import { readLine } from './read-line.ts';
import { renderReport } from './render.ts';
import { renderBug, renderUserError } from './render-error.ts';
import { renderRun } from './render-run.ts';
import { askPassword, type SecretInput } from './secret.ts';
import { streamTo } from './stream.ts';
import { styleOf } from './style.ts';

/** What the face needs to know to have a World made. */
export type CliWorldOptions = {
  readonly cluster: string;
  readonly sudoPasswordFiles: readonly string[];
  readonly acceptHostKeys: readonly string[];
  readonly askPassword?: (node: string) => Promise<string | undefined>;
  readonly live: (update: Live) => void;
  readonly onEvent: (event: Event) => void;
  readonly signal: AbortSignal;
  readonly env: Env;
};

type Env = Readonly<Record<string, string | undefined>>;
type Output = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export type CliParts = {
  readonly makeWorld: (options: CliWorldOptions) => World & { close(): void };
  readonly operations: readonly Operation[];
  readonly version: string;
  readonly stdin: SecretInput;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Env;
  /** Ends the process at once; `process.exit` when left out. */
  readonly exit?: (code: number) => void;
};

/** Operations whose JSON is their events, one a line. */
const TOLD_AS_EVENTS = new Set(['up', 'down', 'restore']);

/** argv (without node and script) → exit code: 0 done, 1 not as wanted, 2 the user can mend it, 3 our bug. */
export async function runCli(argv: readonly string[], parts: CliParts): Promise<number> {
  const json = argv.includes('--json');
  const verbose = argv.includes('--verbose');
  const write = (stream: Output) => (text: string) => void stream.write(text);
  const stdout = write(parts.stdout);
  const stderr = write(parts.stderr);
  for (const stream of [parts.stdout, parts.stderr]) stream.on('error', ignoreClosedPipe);
  const told = { changed: false };
  let exit = 0;
  const program = buildProgram({
    operations: parts.operations,
    version: parts.version,
    print: stdout,
    run: async (operation, input, globals) => {
      exit = await carryOut(operation, input, globals, parts, told);
    },
  });
  quietly(program, { stdout, stderr: json ? () => {} : stderr });
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exit;
  } catch (error) {
    const style = styleOf(parts.stderr, parts.env, Date.now(), verbose);
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (json) stdout(jsonError('bad-input', error.message.replace(/^error: /, ''), 'firstlight --help'));
      return 2;
    }
    if (error instanceof UserError) {
      if (json) stdout(jsonError(error.code, error.message, error.hint));
      else stderr(renderUserError(error, told.changed, style));
      return 2;
    }
    const message = error instanceof Error ? error.message : String(error);
    if (json) stdout(jsonError('bug', message, "This is our mistake, not your cluster's."));
    stderr(renderBug(error, told.changed, parts.version, style));
    return 3;
  }
}

async function carryOut(
  operation: Operation,
  given: Readonly<Record<string, unknown>>,
  globals: Globals,
  parts: CliParts,
  told: { changed: boolean },
): Promise<number> {
  const { stdin, stdout, stderr, env } = parts;
  const asEvents =
    TOLD_AS_EVENTS.has(operation.name) || (operation.name === 'lab' && given['action'] === 'story');
  const interactive = stdin.isTTY === true && stderr.isTTY === true && !globals.json;
  const input = parseInput(
    operation,
    waitsForConsent(operation, interactive) ? { wait: true, ...given } : given,
  );
  const style = () => styleOf(stdout, env, Date.now(), globals.verbose);
  const errorStyle = () => styleOf(stderr, env, Date.now(), globals.verbose);
  const progress = progressFor(parts, globals, asEvents);
  const interrupt = listenForInterrupt({
    first: () => {
      progress.interrupted();
      if (!globals.json && !(asEvents && mayDraw(stderr, env, globals.plain))) {
        stderr.write('\nStopping where it is safe; Ctrl-C again leaves at once.\n');
      }
    },
    leave: () => {
      progress.stop();
      (parts.exit ?? ((code: number) => process.exit(code)))(130);
    },
  });
  const followed = operation.name === 'logs' && given['follow'] === true;
  const stream = streamTo((text) => void stdout.write(text), style());
  const show = (update: Live): void => {
    if (globals.json) return;
    if (update.kind === 'text') stream.text(update.part, update.text);
    else if (update.kind === 'lines' && followed) stream.lines(update);
    else progress.live(update);
  };
  const questions = new Map<string, AbortController>();
  const onEvent = (event: Event): void => {
    if (event.type === 'step-ended' && event.result === 'done') told.changed = true;
    questions.get(event.run)?.abort();
    questions.delete(event.run);
    progress.event(event);
    if (
      event.type === 'consent-asked' &&
      interactive &&
      'wait' in given === false &&
      operation.name === 'up'
    ) {
      void ask(event);
    }
  };
  const world = parts.makeWorld({
    cluster: globals.cluster ?? env['FIRSTLIGHT_CLUSTER'] ?? 'cluster.yaml',
    sudoPasswordFiles: globals.sudoPasswordFiles,
    acceptHostKeys: globals.acceptHostKeys,
    live: show,
    onEvent,
    signal: interrupt.signal,
    env,
    ...(interactive ? { askPassword: (node: string) => paused(() => password(node)) } : {}),
  });
  try {
    const answer = await operation.run(input, world);
    progress.stop();
    print(answer);
    return answer.exit;
  } catch (error) {
    progress.stop();
    if (interrupt.pressed() && !(error instanceof UserError)) {
      if (operation.name === 'logs') return 0; // --follow ends by Ctrl-C
      stderr.write('Ended by you. Nothing more was asked of any host.\n');
      return 2;
    }
    throw error;
  } finally {
    interrupt.dispose();
    for (const question of questions.values()) question.abort();
    world.close();
  }

  function print(answer: Answer): void {
    if (globals.json) {
      if (!asEvents) stdout.write(`${safeJson(answer.report, 2)}\n`);
      return;
    }
    const states = progress.states();
    for (const state of states) stdout.write(renderRun(state, style()));
    if (answer.report.kind === 'run' && states.length > 0) return;
    if (answer.report.kind === 'logs' && followed) return;
    const report = cleanAll<Report>(answer.report);
    stdout.write(renderReport(report, style(), { why: given['why'] === true, streamed: stream.began() }));
  }

  async function password(node: string): Promise<string | undefined> {
    return askPassword(node, {
      input: stdin,
      write: (text) => void stderr.write(text),
      interrupt: interrupt.press,
      signal: interrupt.signal,
    });
  }

  async function paused<T>(work: () => Promise<T>): Promise<T> {
    const resume = progress.pause();
    try {
      return await work();
    } finally {
      resume();
    }
  }

  async function ask(asked: Extract<Event, { type: 'consent-asked' }>): Promise<void> {
    const open = new AbortController();
    questions.set(asked.run, open);
    const signal = AbortSignal.any([open.signal, interrupt.signal]);
    const state = progress.states().find((one) => one.run === asked.run);
    try {
      const answer = await paused(() =>
        askConsent(
          { asked, plan: state?.plan, facts: state?.facts ?? [] },
          { write: (text) => void stderr.write(text), readLine: (stop) => readLine(stdin, stop) },
          errorStyle(),
          signal,
        ),
      );
      questions.delete(asked.run);
      const { user, host } = world.controller;
      world.journal.append(asked.run, {
        type: 'consent-given',
        steps: answer.allowed,
        refused: answer.refused,
        by: `${user} in the terminal on ${host}`,
      });
    } catch {
      // Answered elsewhere, or interrupted: the question is off the table.
      stderr.write('\n');
    }
  }
}

function progressFor(parts: CliParts, globals: Globals, asEvents: boolean): Progress {
  const { stdout, stderr, env } = parts;
  if (globals.json) return jsonProgress(asEvents ? (text) => void stdout.write(text) : () => {});
  const style = styleOf(stderr, env, Date.now(), globals.verbose);
  if (asEvents && mayDraw(stderr, env, globals.plain)) {
    return liveProgress(createLiveView(stderr, env, { now: Date.now }));
  }
  return plainProgress((text) => void stderr.write(text), style, { now: Date.now });
}

const LEAST_COLUMNS = 60;
const LEAST_ROWS = 16;

/** Whether the stream is a terminal that the live view may draw on. */
export function mayDraw(stream: Output, env: Env, plain: boolean): boolean {
  if (plain || stream.isTTY !== true || env['TERM'] === 'dumb') return false;
  if (env['CI'] !== undefined && env['CI'] !== '' && env['CI'] !== 'false') return false;
  return (stream.columns ?? 0) >= LEAST_COLUMNS && (stream.rows ?? 0) >= LEAST_ROWS;
}

/** On a terminal `up` waits for the answer that this face will ask for. */
function waitsForConsent(operation: Operation, interactive: boolean): boolean {
  return interactive && operation.name === 'up';
}

function parseInput(operation: Operation, given: Readonly<Record<string, unknown>>): unknown {
  const parsed = operation.input.safeParse(given);
  if (parsed.success) return parsed.data;
  const said = parsed.error.issues.map((issue) => `${flagName(issue.path)}: ${issue.message}`).join('; ');
  throw new UserError(
    'bad-input',
    said,
    `firstlight ${operation.name} --help shows what it takes`,
    parsed.error,
  );
}

function flagName(path: z.core.$ZodIssue['path']): string {
  return path.length === 0 ? 'input' : path.map(String).join('.');
}

function quietly(
  program: Command,
  out: { readonly stdout: (text: string) => void; readonly stderr: (text: string) => void },
): void {
  for (const command of [program, ...program.commands]) {
    command.configureOutput({ writeOut: out.stdout, writeErr: out.stderr });
  }
}

function jsonError(code: string, message: string, hint: string): string {
  return `${safeJson({ error: { code, message, hint } })}\n`;
}

/** `firstlight runs | head` closes our output early; that is no mistake of anybody. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}
