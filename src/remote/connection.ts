import { readFileSync, rmSync, statSync } from 'node:fs';
import type { Unreachable } from '../domain/command.ts';
import { classify, failureOf, type Symptom as Seen } from './classify.ts';
import { fetchHostKey } from './host-key.ts';
import { askJump, keyWithPassphrase } from './key-trouble.ts';
import { type Limit, limitTo, pause, Shared } from './limit.ts';
import { masterAlive } from './master-alive.ts';
import { type Place, placeOf } from './place.ts';
import { runLocal } from './ssh-child.ts';
import type { Link, LinkOptions } from './ssh-config.ts';

type Symptom = Seen & { readonly unclear?: boolean };

/** Logins through one jump host at once: sshd begins to drop them at ten (MaxStartups). */
const LOGINS_THROUGH_ONE = 8;
const TRIES = 4;
/** What another client on the jump host may find out for us. */
const DIALLING: ReadonlySet<string> = new Set([
  'no-route',
  'refused',
  'timeout-connect',
  'timeout-banner',
  'name-unknown',
]);

/** One multiplexed connection to one host, opened when it is needed and kept for ten minutes. */
export class Connection {
  readonly link: Link;
  readonly via: Connection | undefined;
  readonly #options: LinkOptions;
  readonly #limit: Limit;
  readonly #through = limitTo(LOGINS_THROUGH_ONE);
  readonly #shared: Shared<Unreachable | undefined>;
  #openAt = 0;

  constructor(link: Link, via: Connection | undefined, options: LinkOptions, limit: Limit) {
    this.link = link;
    this.via = via;
    this.#options = options;
    this.#limit = limit;
    this.#shared = new Shared((signal) => this.#open(signal));
  }

  /** Undefined when it is open. Many callers share one attempt. */
  async connect(signal: AbortSignal): Promise<Unreachable | undefined> {
    // A master that was used lately is there; one that is gone shows at the next command.
    if (performance.now() - this.#openAt < 300_000 && this.#openAt > 0) return undefined;
    return this.#shared.join(signal);
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
    if (this.#openAt > 0) this.#openAt = performance.now();
  }

  /** `ssh`, less the command: arguments in front, the destination behind `--`. */
  argv(options: readonly string[] = []): readonly string[] {
    return ['ssh', '-F', this.link.config, ...options, '--', this.link.destination];
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
      const { failure, symptom } = await this.#login(signal);
      if (failure === undefined) return undefined;
      // Sshd drops logins at random when many come at once; another controller may also have been faster.
      const again = symptom.why === 'too-many-connections' && tries < TRIES;
      if (!again) return failure();
      await pause(200 * tries + Math.random() * 400 * tries, signal);
      if (await this.#check(signal)) return undefined;
    }
  }

  async #login(signal: AbortSignal): Promise<{
    readonly symptom: Symptom;
    readonly failure: (() => Promise<Unreachable>) | undefined;
  }> {
    const said = `${this.link.socket}.err-${process.pid}`;
    const log = this.link.log;
    const logAt = sizeOf(log);
    const jumpAt = this.via ? sizeOf(this.via.link.log) : 0;
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
      return { symptom, failure: () => this.#explain(symptom, `${jumpLog}${text}`, signal) };
    } finally {
      rmSync(said, { force: true });
    }
  }

  async #explain(symptom: Symptom, text: string, signal: AbortSignal): Promise<Unreachable> {
    const place = await placeOf(this, signal);
    const vain = symptom.why === 'timeout-banner' || symptom.why === 'too-many-connections';
    if (this.via !== undefined && (symptom.unclear === true || vain)) {
      // Behind a jump host, silence and an end without a word may be its own vain attempt to connect: it is asked.
      const asked = await askJump(this.via, place, signal);
      const seen = asked === undefined ? undefined : classify(asked.text, '').why;
      if (seen !== undefined && DIALLING.has(seen))
        return failureOf({ why: seen, atJump: true }, place, text);
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
    const asked = await askJump(this.via, place, signal);
    return asked === undefined
      ? failure
      : {
          ...failure,
          sentence: `${failure.sentence} ${asked.getsIn ? `${this.via.link.name}'s own key does get in there.` : `${this.via.link.name}'s own key does not get in either.`}`,
        };
  }

  async #jumpBroken(broken: Unreachable, signal: AbortSignal): Promise<Unreachable> {
    const place = await placeOf(this, signal);
    const failure = failureOf({ why: 'jump-unreachable', atJump: true }, place, broken.text);
    return {
      ...failure,
      sentence: `${failure.sentence} ${broken.sentence}`,
      remedy: broken.remedy,
      ...(broken.hostKey === undefined ? {} : { hostKey: broken.hostKey }),
    };
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
