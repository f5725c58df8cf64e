import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster } from './domain/cluster.ts';
import type { Event } from './domain/event.ts';
import { readCluster } from './files/cluster-file.ts';
import { checkPasswordNodes, readPasswordFile } from './files/password-file.ts';
import type { Journal } from './journal/journal.ts';
import { journalFolder } from './journal/journal-folder.ts';
import { openJournal } from './journal/sqlite-journal.ts';
import type { Clock, Live, World } from './operations/world.ts';
import type { Hosts, Secrets } from './remote/host.ts';
import { openHosts } from './remote/open-hosts.ts';

export type WorldOptions = {
  /** Path of the cluster file; read when something first asks for it. */
  readonly cluster: string;
  /** Journal folder; from the environment when left out. */
  readonly home?: string;
  /** `FILE` for every node, or `NODE=FILE` for one. */
  readonly sudoPasswordFiles: readonly string[];
  /** Passwords that are known already, by node (a story's, say). */
  readonly passwords?: Readonly<Record<string, string>>;
  /** Asks a person; undefined where nobody can be asked. */
  readonly askPassword?: AskPassword;
  readonly live: (update: Live) => void;
  readonly onEvent: (event: Event) => void;
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of a World that is open already, where another one is made beside it for the same user. */
  readonly shared?: Pick<World, 'secrets' | 'journal'>;
};

/** `purpose`: what it is for, where that is known. `again`: the one before was not taken. */
type AskPassword = (
  node: string,
  why: { readonly purpose: string | undefined; readonly again: boolean },
) => Promise<string | undefined>;

/** As often as sudo itself asks. */
const PASSWORD_TRIES = 3;

export type OpenWorld = World & { close(): void };

const clock: Clock = {
  now: () => Date.now(),
  wait: async (milliseconds, signal) => {
    await wait(milliseconds, undefined, { signal });
  },
};

/** Joins the real parts. Files are read and the journal is opened when something first needs them. */
export function makeWorld(options: WorldOptions): OpenWorld {
  let cluster: Cluster | undefined;
  let hosts: Hosts | undefined;
  let journal: Journal | undefined;
  const secrets = options.shared?.secrets ?? openSecrets(options);
  const onQuiet = (host: string) => options.live({ kind: 'quiet', host });
  return {
    get cluster() {
      if (cluster === undefined) {
        cluster = readCluster(options.cluster);
        checkPasswordNodes(options.sudoPasswordFiles, cluster);
      }
      return cluster;
    },
    get hosts() {
      hosts ??= openHosts(this.cluster, { secrets, onQuiet });
      return hosts;
    },
    get journal() {
      if (options.shared) return options.shared.journal;
      if (journal === undefined) {
        journal = openJournal(options.home ?? journalFolder(options.env));
        journal.subscribe(options.onEvent);
      }
      return journal;
    },
    clusterFile: resolve(options.cluster),
    openHosts: (other) => openHosts(other, { secrets, onQuiet }),
    secrets,
    clock,
    signal: options.signal,
    live: options.live,
    told: options.onEvent,
    controller: { host: hostname(), user: userName(), pid: process.pid },
    version: version(),
    close() {
      journal?.close();
    },
  };
}

/** Name of the user who runs this; its number where the machine has no name for it, as in many containers. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`; // no entry in the password database
  }
}

/** Version of the package, for --version and for the journal. */
export function version(): string {
  const text = readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8');
  const parsed: unknown = JSON.parse(text);
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed
    ? String(parsed.version)
    : 'unknown';
}

function openSecrets(options: WorldOptions): Secrets {
  const used = new Set<string>();
  const keep = (value: string | undefined) => {
    if (value !== undefined && value !== '') used.add(value);
    return value;
  };
  let asked: Promise<string | undefined> | undefined;
  const tries = new Map<string, number>();
  const typed = (node: string) =>
    options.passwords?.[node] === undefined && passwordFileFor(node, options) === undefined;
  return {
    value: (name) => keep(options.env[name]),
    all: () => [...used],
    async sudoPassword(node, purpose) {
      const known = options.passwords?.[node];
      if (known !== undefined) return keep(known);
      const file = passwordFileFor(node, options);
      if (file !== undefined) return keep(readPasswordFile(file));
      asked ??= options.askPassword?.(node, { purpose, again: false });
      return keep(await asked);
    },
    async otherSudoPassword(node, refused) {
      if (!typed(node)) return undefined;
      const now = await asked;
      // It was typed anew meanwhile, for another node.
      if (now !== undefined && now !== refused) return keep(now);
      const before = tries.get(node) ?? 1;
      if (before >= PASSWORD_TRIES) return undefined;
      tries.set(node, before + 1);
      asked = options.askPassword?.(node, { purpose: undefined, again: true });
      return keep(await asked);
    },
  };
}

function passwordFileFor(node: string, options: WorldOptions): string | undefined {
  const prefix = `${node}=`;
  const own = options.sudoPasswordFiles.find((file) => file.startsWith(prefix));
  if (own !== undefined) return own.slice(prefix.length);
  const general = options.sudoPasswordFiles.find((file) => !/^[A-Za-z0-9][\w.-]*=/.test(file));
  // A variable that is set to nothing names no file.
  return general ?? (options.env['FIRSTLIGHT_SUDO_PASSWORD_FILE'] || undefined);
}
