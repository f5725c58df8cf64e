import type { z } from 'zod';
import type { Event } from '../../domain/event.ts';
import type { Report } from '../../domain/report.ts';
import { UserError } from '../../domain/user-error.ts';
import { clusterOf } from '../../operations/init.ts';
import { inputs } from '../../operations/inputs.ts';
import type { Answer, Operation } from '../../operations/operation.ts';
import type { Live, World } from '../../operations/world.ts';
import { cleanAll, safeJson } from './clean.ts';
import { fieldsOf } from './flags.ts';
import { type Interrupt, listenForInterrupt } from './interrupt.ts';
import { createLiveView } from './live-screen.ts';
import { mayDraw } from './may-draw.ts';
import { watchMemory } from './memory-watch.ts';
import { jsonProgress, liveProgress, type Progress, plainProgress } from './output.ts';
import type { Globals } from './program.ts';
import { newQuestions, unknownKey } from './questions.ts';
import { renderReport } from './render.ts';
import { renderRun } from './render-run.ts';
import type { PasswordWhy, SecretInput } from './secret.ts';
import { streamTo } from './stream.ts';
import { type Style, styleOf } from './style.ts';

/** What the face needs to know to have a World made. */
export type CliWorldOptions = {
  readonly cluster: string;
  readonly sudoPasswordFiles: readonly string[];
  /** Asks a person for sudo's password; absent where nobody sits at the terminal. */
  readonly askPassword?: (node: string, why: PasswordWhy) => Promise<string | undefined>;
  readonly live: (update: Live) => void;
  readonly onEvent: (event: Event) => void;
  readonly signal: AbortSignal;
  readonly env: Env;
};

type Env = Readonly<Record<string, string | undefined>>;

export type Output = NodeJS.WritableStream & {
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
  /** Ends the process at once. */
  readonly exit: (code: number) => void;
};

/** What is known when it went wrong: whether a step was carried out on any host. */
export type Told = { changed: boolean /** The journal told the end already. */; ended: boolean };

/** Operations whose JSON is their events, one a line. */
const TOLD_AS_EVENTS = new Set(['up', 'down', 'restore']);
/** Host keys that one command may ask about, one after the other. */
const MOST_KEYS = 16;

/** Carries one operation out: shows its progress, puts its questions, prints its result. Gives the exit code. */
export async function carryOut(
  operation: Operation,
  given: Readonly<Record<string, unknown>>,
  globals: Globals,
  parts: CliParts,
  told: Told,
): Promise<number> {
  const { stdin, stdout, stderr, env } = parts;
  const asEvents =
    TOLD_AS_EVENTS.has(operation.name) || (operation.name === 'lab' && given['action'] === 'story');
  const interactive = stdin.isTTY === true && stderr.isTTY === true && !globals.json;
  const style = (): Style => styleOf(stdout, env, Date.now(), globals.verbose);
  const progress = progressFor(parts, globals, asEvents);
  const interrupt = listen(parts, globals, progress);
  progress.listen(stdin, interrupt.press);
  const questions = newQuestions({
    input: stdin,
    write: (text) => void stderr.write(text),
    style: () => styleOf(stderr, env, Date.now(), globals.verbose),
    signal: interrupt.signal,
    interrupt: interrupt.press,
    pause: progress.pause,
  });
  // On a terminal `up` waits for the answer that this face asks for; with --wait somebody else is asked.
  const asks = interactive && operation.name === 'up' && given['wait'] !== true;
  const followed = (operation.name === 'logs' || operation.name === 'diagnose') && given['follow'] === true;
  const stream = streamTo((text) => void stdout.write(text), style());
  const watched = watchMemory(stdout, { env, json: globals.json, plain: globals.plain, style });
  let broken: unknown;

  const seen = new Set<string>();
  const onEvent = (event: Event): void => {
    // An answer given here comes twice: from the journal, and from the run that takes it.
    const key = `${event.run} ${event.seq}`;
    if (event.type === 'run-started') seen.clear();
    if (seen.has(key)) return;
    seen.add(key);
    if (event.type === 'step-ended' && event.result === 'done') told.changed = true;
    if (event.type === 'run-started' || event.type === 'run-ended') told.ended = event.type === 'run-ended';
    questions.withdraw(event.run);
    progress.event(event);
    if (event.type !== 'consent-asked' || !asks) return;
    const state = progress.states().find((one) => one.run === event.run);
    questions.consent(event, state, world).catch((error: unknown) => {
      broken = error; // a mistake of ours in the question must not leave the run waiting for ever
      interrupt.press();
    });
  };
  const live = (update: Live): void => {
    if (update.kind === 'memory') watched.show(update.report);
    if (globals.json) return;
    // The ledger that is drawn over and over has no room above it.
    if (update.kind === 'quiet' && watched.showed()) return;
    if (update.kind === 'text') stream.text(update.part, update.text);
    else if (update.kind === 'lines' && followed) stream.lines(update);
    else if (update.kind !== 'memory') progress.live(update);
  };
  const world = parts.makeWorld({
    cluster: globals.cluster ?? (env['FIRSTLIGHT_CLUSTER'] || 'cluster.yaml'), // an empty variable is none
    sudoPasswordFiles: globals.sudoPasswordFiles,
    live,
    onEvent,
    signal: interrupt.signal,
    env,
    ...(interactive ? { askPassword: questions.password } : {}),
  });
  try {
    const nodes = interactive && operation.name === 'init' && given['nodes'] === undefined;
    const input = parseInput(operation, {
      ...(asks ? { wait: true } : {}),
      ...given,
      ...(nodes ? { nodes: await questions.nodes() } : {}),
    });
    for (const key of globals.acceptHostKeys) await acceptKey(key, spokenTo(input));
    let answer = await runTrusting(input);
    const found = answer.report.kind === 'adopt' ? answer.report.adopts : undefined;
    if (interactive && found !== undefined) {
      print(answer);
      if (!(await questions.adopt())) return answer.exit;
      answer = await runTrusting(parseInput(operation, found));
    }
    progress.stop();
    if (broken !== undefined) throw broken;
    print(answer);
    return answer.exit;
  } catch (error) {
    progress.stop();
    if (broken !== undefined) throw broken;
    if (!interrupt.pressed() || error instanceof UserError) throw error;
    if (followed) return 0;
    stderr.write('Ended by you. Nothing more was asked of any host.\n');
    return 2;
  } finally {
    interrupt.dispose();
    world.close();
  }

  /** The hosts whose keys may be asked about: of the cluster file, or those that init would write into one. */
  function spokenTo(input: unknown): Spoken {
    if (operation.name !== 'init') return world;
    const cluster = clusterOf(inputs.init.parse(input), world.clusterFile);
    return { cluster, hosts: world.openHosts(cluster), signal: world.signal };
  }

  /** Runs the operation, and once more for each host key that the person at the terminal trusts. */
  async function runTrusting(input: unknown): Promise<Answer> {
    for (let asked = 0; ; asked += 1) {
      try {
        return await operation.run(input, world);
      } catch (error) {
        if (!interactive || asked >= MOST_KEYS || !(error instanceof UserError)) throw error;
        if (error.code !== 'host-key-unknown') throw error;
        const { cluster, hosts } = spokenTo(input);
        const key = unknownKey(
          error,
          cluster.nodes.map((node) => node.name),
        );
        if (key === undefined || !(await questions.hostKey(key, error))) throw error;
        await hosts.acceptHostKey(key.node, key.fingerprint, { signal: interrupt.signal });
      }
    }
  }

  function print(answer: Answer): void {
    if (watched.showed()) return;
    if (globals.json) {
      if (!asEvents) stdout.write(`${safeJson(printed(answer.report), 2)}\n`);
      return;
    }
    // An answer to another's run is no run of its own.
    const states = answer.report.kind === 'said' ? [] : progress.states();
    for (const state of states) stdout.write(renderRun(state, style()));
    if (answer.report.kind === 'run' && states.length > 0) return;
    if (answer.report.kind === 'logs' && followed) return;
    const report = cleanAll<Report>(answer.report);
    stdout.write(renderReport(report, style(), { why: given['why'] === true, streamed: stream.began() }));
  }
}

/** A diagnosis is one object with nothing beside it, whether it was made of a run or of files. */
function printed(report: Report): unknown {
  if (report.kind === 'fit') return report.fit;
  return report.kind === 'diagnose' ? report.answer : report;
}

function listen(parts: CliParts, globals: Globals, progress: Progress): Interrupt {
  return listenForInterrupt({
    first: () => {
      progress.interrupted();
      if (!globals.json && !progress.draws) {
        parts.stderr.write('\nStopping where it is safe; Ctrl-C again leaves at once.\n');
      }
    },
    leave: () => {
      progress.stop();
      parts.stdin.setRawMode?.(false);
      parts.exit(130);
    },
  });
}

function progressFor(parts: CliParts, globals: Globals, asEvents: boolean): Progress {
  const { stdout, stderr, env } = parts;
  if (globals.json) return jsonProgress(asEvents ? (text) => void stdout.write(text) : () => {});
  if (asEvents && mayDraw(stderr, env, globals.plain)) {
    return liveProgress(createLiveView(stderr, env, { now: Date.now }));
  }
  const style = styleOf(stderr, env, Date.now(), globals.verbose);
  return plainProgress((text) => void stderr.write(text), style, { now: Date.now });
}

type Spoken = Pick<World, 'cluster' | 'hosts' | 'signal'>;

/** "spark-b=SHA256:…": written to known_hosts only while the host still shows that very key. */
async function acceptKey(text: string, world: Spoken): Promise<void> {
  const at = text.indexOf('=');
  const node = text.slice(0, at);
  const known = world.cluster.nodes.map((one) => one.name);
  if (at < 1 || !known.includes(node) || !text.slice(at + 1).startsWith('SHA256:')) {
    throw new UserError(
      'bad-input',
      `--accept-host-key ${text} is not NODE=SHA256:…`,
      `nodes are: ${known.join(', ')}; the fingerprint is the one that was shown`,
    );
  }
  await world.hosts.acceptHostKey(node, text.slice(at + 1), { signal: world.signal });
}

function parseInput(operation: Operation, given: Readonly<Record<string, unknown>>): unknown {
  const parsed = operation.input.safeParse(given);
  if (parsed.success) return parsed.data;
  const fields = fieldsOf(operation.input);
  const said = parsed.error.issues.map((issue) => {
    const field = fields.find(({ key }) => key === issue.path[0]);
    const name =
      field === undefined || field.positional ? issue.path.map(String).join('.') : `--${field.flag}`;
    return name === '' ? issue.message : `${name}: ${wordsOf(issue)}`;
  });
  const hint = `firstlight ${operation.name} --help shows what it takes`;
  throw new UserError('bad-input', said.join('; '), hint, parsed.error);
}

/** The usual mistakes in our own words; the rest as the schema says it. */
function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return `it must be at least ${issue.minimum}`;
  if (issue.code === 'too_big') return `it must be at most ${issue.maximum}`;
  if (issue.code === 'invalid_value') return `it must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_type')
    return `it must be ${issue.expected === 'int' ? 'a whole number' : `a ${issue.expected}`}`;
  return issue.message;
}
