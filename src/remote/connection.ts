import { readFileSync, rmSync, statSync } from 'node:fs';
import type { Unreachable } from '../domain/command.ts';
import { classify, failureOf, type Symptom as Seen } from './classify.ts';
import { fetchHostKey } from './host-key.ts';
import { askJump, keyWithPassphrase } from './key-trouble.ts';
import { ANSWERS_NOTHING, jumpBroken, knock } from './knock.ts';
import { type Limit, limitTo, pause, Shared } from './limit.ts';
import { masterAlive } from './master-alive.ts';
import { type Place, placeOf } from './place.ts';
import { runLocal } from './ssh-child.ts';
import type { Link, LinkOptions } from './ssh-config.ts';

type Symptom = Seen & { readonly unclear?: boolean };

/** Logins through one jump host at once: sshd begins to drop them at ten (MaxStartups). */
const LOGINS_THROUGH_ONE = 8;
/** Questions about hosts behind one jump host at once: each is a session there. */
const ASKS = 4;
const TRIES = 4;
/** Found only after a long wait. */
const IN_VAIN: ReadonlySet<string> = new Set(['timeout-connect', 'timeout-banner']);

export type ConnectionOptions = LinkOptions & {
  /** How long the host may say nothing before it is asked, beside, whether it is there. */
  readonly quietMs: number;
  /** For so long nobody is waited for again who was just waited for in vain: by the look behind a lock, say. */
  readonly vainMs: number;
  /** For so long nobody is asked again who was found to be there, however slow. */
  readonly thereMs: number;
  /** Told when the host says nothing, once, with the link's name. */
  readonly onQuiet: (name: string) => void;
};

/** One multiplexed connection to one host, opened when it is needed and kept for ten minutes. */
export class Connection {
  readonly link: Link;
  readonly via: Connection | undefined;
  /** Questions to it about hosts behind it: each is a session, of which sshd allows ten (MaxSessions). */
  readonly asks = limitTo(ASKS);
  readonly #options: ConnectionOptions;
  readonly #limit: Limit;
  readonly #through = limitTo(LOGINS_THROUGH_ONE);
  readonly #shared: Shared<Unreachable | undefined>;
  readonly #knocks: Shared<Unreachable | undefined>;
  #openAt = 0;
  #vain: { readonly failure: Unreachable; readonly at: number } | undefined;
  #thereAt = Number.NEGATIVE_INFINITY;
  #quiet = false;

  constructor(link: Link, via: Connection | undefined, options: ConnectionOptions, limit: Limit) {
    this.link = link;
    this.via = via;
    this.#options = options;
    this.#limit = limit;
    this.#shared = new Shared((signal) => this.#open(signal));
    this.#knocks = new Shared((signal) => knock(this, options, signal));
  }

  /** How long the host may say nothing before it is asked whether it is there. */
  get quietMs(): number {
    return this.#options.quietMs;
  }

  /** Tells that the host says nothing, once until it is heard again. */
  quiet(): void {
    if (!this.#quiet) this.#options.onQuiet(this.link.name);
    this.#quiet = true;
  }

  /**
   * Asks a host that says nothing, past the connection that is open, whether it is still there. Undefined where it is,
   * however slow, and where nobody can tell. Many callers share one question.
   */
  async gone(signal: AbortSignal): Promise<Unreachable | undefined> {
    if (performance.now() - this.#thereAt < this.#options.thereMs) return undefined;
    const met = await this.#knocks.join(signal);
    if (met === undefined || !ANSWERS_NOTHING.has(met.why)) {
      this.#thereAt = performance.now();
      return undefined;
    }
    this.#failed(met);
    return met;
  }

  /** Undefined when it is open. Many callers share one attempt. */
  async connect(signal: AbortSignal): Promise<Unreachable | undefined> {
    if (this.#vain !== undefined && performance.now() - this.#vain.at < this.#options.vainMs)
      return this.#vain.failure;
    // A master that was used lately is there; one that is gone shows at the next command.
    if (performance.now() - this.#openAt < 300_000 && this.#openAt > 0) return undefined;
    const failure = await this.#shared.join(signal);
    if (failure !== undefined) this.#failed(failure);
    return failure;
  }

  /** The next use looks again. */
  forget(): void {
    this.#openAt = 0;
  }

  /** The master takes no new sessions and ends with those it has; the next use logs in anew. */
  async leave(signal: AbortSignal): Promise<void> {
    this.forget();
    await runLocal(this.argv(['-O', 'stop']), { signal, timeoutMs: 5000 });
  }

  used(): void {
    this.#quiet = false;
    this.#vain = undefined;
    if (this.#openAt > 0) this.#openAt = performance.now();
  }

  /** `ssh`, less the command: arguments in front, the destination behind `--`. */
  argv(options: readonly string[] = []): readonly string[] {
    return ['ssh', '-F', this.link.config, ...options, '--', this.link.destination];
  }

  #failed(failure: Unreachable): void {
    if (IN_VAIN.has(failure.why)) this.#vain = { failure, at: performance.now() };
  }

  async #open(signal: AbortSignal): Promise<Unreachable | undefined> {
    const broken = await this.via?.connect(signal);
    if (broken !== undefined) return this.#jumpBroken(broken, signal);
    if (await this.#check(signal)) return undefined;
    const limit = this.via === undefined ? this.#limit : this.via.#through;
    return limit(signal, () => this.#start(signal));
  }

  async #check(signal: AbortSignal): Promise<boolean> {
    const told = await masterAlive(this.link.socket);
    signal.throwIfAborted();
    const open =
      told === 'unclear'
        ? (await runLocal(this.argv(['-O', 'check']), { signal, timeoutMs: 5000 })).code === 0
        : told === 'alive';
    if (open) this.#openAt = performance.now();
    return open;
  }

  async #start(signal: AbortSignal): Promise<Unreachable | undefined> {
    for (let tries = 1; ; tries += 1) {
      const early = new AbortController();
      try {
        const { failure, symptom } = await this.#login(signal, AbortSignal.any([signal, early.signal]));
        if (failure === undefined) return undefined;
        // Sshd drops logins at random when many come at once; another controller may also have been faster.
        const again = symptom.why === 'too-many-connections' && tries < TRIES;
        if (!again) return await failure();
      } finally {
        early.abort();
      }
      await pause(200 * tries + Math.random() * 400 * tries, signal);
      if (await this.#check(signal)) return undefined;
    }
  }

  /** `early`: for what is asked beside it, which may outlast it. */
  async #login(
    signal: AbortSignal,
    early: AbortSignal,
  ): Promise<{
    readonly symptom: Symptom;
    readonly failure: (() => Promise<Unreachable>) | undefined;
  }> {
    const said = `${this.link.socket}.err-${process.pid}`;
    const log = this.link.log;
    const logAt = sizeOf(log);
    const jumpAt = this.via ? sizeOf(this.via.link.log) : 0;
    let knocked: Promise<Unreachable | undefined> | undefined;
    const quiet = setTimeout(() => {
      this.quiet();
      if (this.via === undefined) return;
      // What the jump host meets is asked while ssh waits, not when it has waited in vain.
      knocked = this.#knocks.join(early);
      knocked.catch(() => undefined); // the login has ended without need of it
    }, this.quietMs);
    try {
      // The master goes to the background; its own log tells later what it could not forward.
      const ended = await runLocal(this.argv(['-M', '-N', '-f', '-E', log, '-o', 'ControlMaster=yes']), {
        signal,
        timeoutMs: (this.#options.connectTimeoutSeconds * 3 + 15) * 1000,
        stderrFile: said,
      });
      if (ended.code === 0) {
        this.#openAt = performance.now();
        return { symptom: { why: 'unknown', atJump: false }, failure: undefined };
      }
      const text = `${tailFrom(said, 0)}${tailFrom(log, logAt)}`;
      const jumpLog = this.via ? tailFrom(this.via.link.log, jumpAt) : '';
      const symptom = ended.timedOut
        ? ({ why: 'timeout-banner', atJump: false } as const)
        : classify(text, jumpLog);
      return { symptom, failure: () => this.#explain(symptom, `${jumpLog}${text}`, signal, knocked) };
    } finally {
      clearTimeout(quiet);
      rmSync(said, { force: true });
    }
  }

  async #explain(
    symptom: Symptom,
    text: string,
    signal: AbortSignal,
    knocked: Promise<Unreachable | undefined> | undefined,
  ): Promise<Unreachable> {
    const place = await placeOf(this, signal);
    const vain = symptom.why === 'timeout-banner' || symptom.why === 'too-many-connections';
    if (this.via !== undefined && (symptom.unclear === true || vain)) {
      // Behind a jump host, silence and an end without a word may be its own vain attempt to connect: it is asked.
      const met = await (knocked ?? this.#knocks.join(signal));
      if (met !== undefined) return met;
    }
    switch (symptom.why) {
      case 'key-refused':
        return this.#keyRefused(symptom, place, text, signal);
      case 'jump-may-not-forward':
        // A login keeps the settings that its server had then: once they are mended, a new one is needed to see it.
        await this.via?.leave(signal);
        return failureOf(symptom, place, text);
      case 'host-key-unknown':
      case 'host-key-changed': {
        const fetched = await fetchHostKey(this, signal);
        const failure = failureOf(symptom, place, text);
        return fetched === undefined
          ? failure
          : {
              ...failure,
              // Works through jumps and with the cluster's own sshConfig, where a bare ssh may not.
              remedy: failure.remedy.replace(
                /accept it: .*$/,
                `accept it: firstlight check --accept-host-key ${place.node}=${fetched.fingerprint}`,
              ),
              hostKey: { type: fetched.type, fingerprint: fetched.fingerprint },
            };
      }
      default:
        return failureOf(symptom, place, text);
    }
  }

  async #keyRefused(symptom: Symptom, place: Place, text: string, signal: AbortSignal): Promise<Unreachable> {
    const locked = await keyWithPassphrase(place.identityFiles, signal);
    if (locked !== undefined) {
      const failure = failureOf({ ...symptom, why: 'passphrase-needed' }, place, text);
      return {
        ...failure,
        sentence: `The key ${locked} for ${place.node} has a passphrase, and no agent holds it.`,
        remedy: `ssh-add ${locked}`,
      };
    }
    const failure = failureOf(symptom, place, text);
    if (this.via === undefined) return failure;
    const asked = await askJump(this.via, place, 'with-its-key', signal);
    return asked === undefined
      ? failure
      : {
          ...failure,
          sentence: `${failure.sentence} ${asked.getsIn ? `${this.via.link.name}'s own key does get in there.` : `${this.via.link.name}'s own key does not get in either.`}`,
        };
  }

  async #jumpBroken(broken: Unreachable, signal: AbortSignal): Promise<Unreachable> {
    return jumpBroken(broken, await placeOf(this, signal));
  }
}

/** What was written to a file since it had that size. */
function tailFrom(file: string, from: number): string {
  try {
    return readFileSync(file).subarray(from).toString();
  } catch {
    return ''; // never written
  }
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0; // never written
  }
}
