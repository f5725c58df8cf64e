import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Node } from '../domain/cluster.ts';
import type { Command, Ran, Unreachable } from '../domain/command.ts';
import { classify, failureOf } from './classify.ts';
import type { Connection } from './connection.ts';
import { dialThrough } from './dial.ts';
import { Lines } from './frame.ts';
import type { Host, RunOptions, Secrets, StreamOptions } from './host.ts';
import { limitTo } from './limit.ts';
import { placeOf } from './place.ts';
import { runSession, type SessionEnd } from './session.ts';
import type { SudoMode } from './shell.ts';

/** sshd's MaxSessions is ten on one connection: two are left for a person who uses the same socket. */
const SESSIONS = 8;
const MOST_OUTPUT = 16 * 1024 * 1024;

/** One node behind its connection: commands are rendered, run and told as values. */
export class SshHost implements Host {
  readonly node: Node;
  readonly #connection: Connection;
  readonly #secrets: Secrets;
  readonly #limit = limitTo(SESSIONS);
  /** How sudo worked last here, so that it is not asked again each time. */
  #sudo: SudoMode = 'free';

  constructor(node: Node, connection: Connection, secrets: Secrets) {
    this.node = node;
    this.#connection = connection;
    this.#secrets = secrets;
  }

  connect({ signal }: RunOptions): Promise<Unreachable | undefined> {
    manyListeners(signal);
    return this.#connection.connect(signal);
  }

  async run(command: Command, { signal }: RunOptions): Promise<Ran> {
    const stdout = new Kept(MOST_OUTPUT);
    const stderr = new Kept(MOST_OUTPUT);
    const ran = await this.#run(command, signal, {
      stdout: (bytes) => stdout.take(bytes),
      stderr: (bytes) => stderr.take(bytes),
    });
    return ran.kind === 'ran' || ran.kind === 'timeout'
      ? { ...ran, stdout: stdout.text(), stderr: stderr.text() }
      : ran;
  }

  async stream(command: Command, { signal, stdout, stderrLine }: StreamOptions): Promise<Ran> {
    const lines = new Lines(stderrLine);
    const ran = await this.#run(command, signal, { stdout, stderr: (bytes) => lines.feed(bytes) });
    lines.finish();
    return ran;
  }

  leave({ signal }: RunOptions): Promise<void> {
    return this.#connection.leave(signal);
  }

  dial(address: string, port: number): Duplex {
    return dialThrough(this.#connection, address, port);
  }

  #run(command: Command, signal: AbortSignal, sinks: Sinks): Promise<Ran> {
    manyListeners(signal);
    return command.sudo === true
      ? this.#asRoot(command, signal, sinks)
      : this.#once(command, 'none', signal, sinks);
  }

  /** sudo without a password first; then with the run's password; then the command alone, which sudoers may let through. */
  async #asRoot(command: Command, signal: AbortSignal, sinks: Sinks): Promise<Ran> {
    const first = await this.#once(command, this.#sudo === 'none' ? 'free' : this.#sudo, signal, sinks);
    if (first.kind !== 'refused' || first.why !== 'sudo-needs-password') return first;
    const password = await this.#secrets.sudoPassword(this.node.name);
    signal.throwIfAborted();
    if (password === undefined) {
      const text = new Kept(64 * 1024);
      const tried = await this.#once(command, 'try', signal, {
        stdout: sinks.stdout,
        stderr: (bytes) => {
          text.take(bytes);
          sinks.stderr(bytes);
        },
      });
      const refusal =
        /^sudo: .*(password is required|terminal is required|may not run|not allowed|not in the sudoers)/im;
      return tried.kind === 'ran' && tried.code !== 0 && refusal.test(text.text()) ? first : tried;
    }
    return this.#withPassword(command, password, signal, sinks);
  }

  /** A password that is not taken is asked for anew, as sudo itself does. */
  async #withPassword(command: Command, first: string, signal: AbortSignal, sinks: Sinks): Promise<Ran> {
    for (let password = first; ; ) {
      const ran = await this.#once(command, { password }, signal, sinks);
      if (ran.kind === 'ran') this.#sudo = { password };
      if (ran.kind !== 'refused' || ran.why !== 'sudo-password-wrong') return ran;
      const other = await this.#secrets.otherSudoPassword?.(this.node.name, password);
      signal.throwIfAborted();
      if (other === undefined) return ran;
      password = other;
    }
  }

  /** Holds one place for as long as its session lasts: past MaxSessions, ssh would log in once more for it. */
  #once(command: Command, sudo: SudoMode, signal: AbortSignal, sinks: Sinks): Promise<Ran> {
    return this.#limit(signal, async (keep) => {
      const failure = await this.#connection.connect(signal);
      if (failure !== undefined) return { kind: 'lost', failure };
      const options = { sudo, secrets: this.#secrets, signal, keep, ...sinks };
      return this.#told(command, await runSession(this.#connection, command, options), signal);
    });
  }

  async #told(command: Command, ended: SessionEnd, signal: AbortSignal): Promise<Ran> {
    if (ended.kind === 'timeout') {
      this.#connection.forget();
      return { kind: 'timeout', seconds: command.timeoutSeconds ?? 0, stdout: '', stderr: '' };
    }
    if (ended.kind === 'gone') {
      this.#connection.forget();
      return { kind: 'lost', failure: ended.failure };
    }
    if (ended.kind === 'broken') {
      this.#connection.forget();
      const symptom = classify(ended.text, '');
      const why = symptom.why === 'unknown' && ended.text === '' ? ('closed' as const) : symptom.why;
      const place = await placeOf(this.#connection, signal);
      return { kind: 'lost', failure: failureOf({ ...symptom, why }, place, ended.text) };
    }
    this.#connection.used();
    const { end, milliseconds, noise } = ended;
    if (end.kind === 'refused') return { kind: 'refused', ...refusalOf(end.why, this.node.name, noise) };
    const seconds = command.timeoutSeconds;
    const cut = seconds !== undefined && milliseconds >= seconds * 1000 - 50;
    // `timeout` ends with 124 for TERM and 137 for KILL; so may any command, but not after that time.
    if (cut && (end.code === 124 || end.code === 137))
      return { kind: 'timeout', seconds, stdout: '', stderr: '' };
    return { kind: 'ran', code: end.code, stdout: '', stderr: '', milliseconds };
  }
}

/** One signal ends all commands of a run: more listeners than Node's warning expects. */
function manyListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

type Sinks = { readonly stdout: (bytes: Buffer) => void; readonly stderr: (bytes: Buffer) => void };

function refusalOf(
  why: 'missing' | 'password' | 'wrong',
  node: string,
  noise: string,
): Omit<Extract<Ran, { kind: 'refused' }>, 'kind'> {
  const said = noise
    .split('\n')
    .filter((line) => /sudo|sudoers|password/i.test(line))
    .join('\n')
    .trim();
  switch (why) {
    case 'missing':
      return { why: 'sudo-missing', text: `${node} has no sudo, and the login is not root` };
    case 'password':
      return {
        why: 'sudo-needs-password',
        text: `sudo on ${node} asks for a password, and none was given${said === '' ? '' : `: ${said}`}`,
      };
    case 'wrong':
      return /not in the sudoers|may not run|not allowed/i.test(said)
        ? { why: 'sudo-missing', text: `this user may not use sudo on ${node}: ${said}` }
        : { why: 'sudo-password-wrong', text: `sudo on ${node} does not accept that password` };
    default:
      return why satisfies never;
  }
}

/** The end of an output, so many bytes at most. */
class Kept {
  readonly #most: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  take(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    while (this.#bytes - (this.#chunks[0]?.length ?? 0) >= this.#most) {
      this.#bytes -= this.#chunks.shift()?.length ?? 0;
    }
  }

  text(): string {
    const all = Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - this.#most)).toString();
  }
}
