import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Ran, script } from '../domain/command.ts';
import type { LockRecord } from '../domain/facts.ts';
import { numberAt, parseObject, textAt } from '../domain/json.ts';
import { LOCK_DEAD_SECONDS, LOCK_DIR_SH, LOCK_REFRESH_SECONDS } from '../domain/node-folder.ts';
import { UserError } from '../domain/user-error.ts';
import type { Host, RunOptions } from './host.ts';
import { pause } from './limit.ts';

export type Locked =
  | {
      readonly kind: 'held';
      /** Aborts when a node's lock was found to be somebody else's by now. */
      readonly lost: AbortSignal;
      /** Gives the lock back on all nodes; twice does no harm. Never rejects: a node out of reach forgets by itself. */
      release(): Promise<void>;
    }
  | { readonly kind: 'held-by'; readonly node: string; readonly lock: LockRecord };

/** A host that let us in and could not make a lock; `said` is what stood in its way. */
export class LockRefused extends UserError {
  readonly node: string;
  readonly said: string;
  constructor(node: string, said: string) {
    super(
      'not-serving',
      `${node} gives no lock in /tmp: ${said}`,
      `see whether its /tmp is full or read-only, on ${node}: df -h /tmp; ls -ld /tmp`,
    );
    this.node = node;
    this.said = said;
  }
}

/**
 * Takes the lock of each host in turn, in an order that all controllers share; all or none. A dead owner's lock is
 * taken over: nobody refreshed it for 45 s by the node's clock, or its owner was a process of this machine that is
 * gone. Hosts that do not answer are left out: what is done there fails too, and they forget by themselves. One that
 * refuses for another reason (a full disk) throws LockRefused.
 */
export async function takeLock(
  hosts: readonly Host[],
  { run, owner }: { readonly run: string; readonly owner: string },
  { signal }: RunOptions,
): Promise<Locked> {
  const token = randomBytes(8).toString('hex');
  const record = { owner, run, since: new Date().toISOString(), token, ...thisProcess() };
  const taken: Host[] = [];
  const release = async (): Promise<void> => {
    const patience = AbortSignal.timeout(15_000);
    await Promise.all(
      taken
        .splice(0)
        .map((host) =>
          host.run(script(RELEASE, [token], LIMIT), { signal: patience }).catch(() => undefined),
        ), // out of reach: it dies of age
    );
  };
  try {
    const ordered = [...hosts].sort(
      (a, b) => compare(a.node.ssh, b.node.ssh) || (a.node.port ?? 0) - (b.node.port ?? 0),
    );
    for (const host of ordered) {
      const end = await takeOne(host, token, JSON.stringify(record), signal, () => taken.push(host));
      if (end !== undefined) {
        await release();
        return end;
      }
    }
  } catch (error) {
    await release();
    throw error;
  }
  return keep(taken, { token, record: JSON.stringify(record) }, release);
}

function keep(
  taken: readonly Host[],
  { token, record }: { readonly token: string; readonly record: string },
  release: () => Promise<void>,
): Locked {
  const lost = new AbortController();
  const over = new AbortController();
  const refresh = async (host: Host): Promise<void> => {
    const ran = await host.run(script(REFRESH, [token], LIMIT), { signal: over.signal });
    if (ran.kind !== 'ran' || ran.code !== 4 || over.signal.aborted) return;
    // A restart of the host empties /tmp: a lock that nobody holds is taken again.
    const again = await host.run(script(TAKE, [token, record, ''], LIMIT), { signal: over.signal });
    if (again.kind === 'ran' && again.code === 0 && !again.stdout.startsWith('taken')) {
      lost.abort(new Error(`another controller took the lock of ${host.node.name}`));
    }
  };
  const timer = setInterval(() => {
    // A node out of reach is tried again at the next beat; it lets go after 45 s.
    for (const host of taken) refresh(host).catch(() => undefined);
  }, LOCK_REFRESH_SECONDS * 1000);
  timer.unref();
  return {
    kind: 'held',
    lost: lost.signal,
    release: async () => {
      clearInterval(timer);
      over.abort(new Error('the lock was released'));
      await release();
    },
  };
}

/** Undefined when it is ours, or the host does not answer. */
async function takeOne(
  host: Host,
  token: string,
  record: string,
  signal: AbortSignal,
  onTaken: () => void,
): Promise<Exclude<Locked, { kind: 'held' }> | undefined> {
  let dead = '';
  for (let tries = 0; ; tries += 1) {
    const ran = await host.run(script(TAKE, [token, record, dead], LIMIT), { signal });
    if (ran.kind === 'lost' || ran.kind === 'timeout') return undefined;
    if (ran.kind !== 'ran' || ran.code !== 0) throw new LockRefused(host.node.name, saidBy(ran));
    const [state = '', holder = '', age = ''] = ran.stdout.split('\n')[0]?.split(' ') ?? [];
    if (state === 'taken') {
      onTaken();
      return undefined;
    }
    // The same host under two names: its lock is ours already.
    if (holder === token) return undefined;
    const { lock, gone } = readHeld(ran.stdout.split('\n').slice(1).join('\n'), holder, Number(age));
    const free = holder !== '-' && (lock.ageSeconds >= LOCK_DEAD_SECONDS || gone);
    if (!free && (holder !== '-' || tries > 20)) return { kind: 'held-by', node: host.node.name, lock };
    dead = free ? holder : '';
    // Between two owners for a moment: somebody takes or gives back right now.
    if (tries > 0) await pause(50 + Math.random() * 100, signal);
  }
}

function readHeld(
  text: string,
  holder: string,
  age: number,
): { readonly lock: LockRecord; readonly gone: boolean } {
  // Half written, or not ours: then nothing of it is known.
  const value = parseObject(text) ?? {};
  const word = (key: string): string => textAt(value, key);
  const pid = numberAt(value, 'pid') ?? 0;
  const lock: LockRecord = {
    owner: word('owner') || 'somebody',
    run: word('run') || 'unknown',
    since: word('since') || 'unknown',
    ageSeconds: Number.isFinite(age) ? Math.max(0, age) : 0,
    host: word('host'),
    pid,
  };
  // While a lock changes hands its record may still be the last owner's: then only its age counts.
  return { lock, gone: word('token') === holder && ownerIsGone(word, pid) };
}

/** Only a process of this very machine, boot and pid namespace can be seen to be gone. */
function ownerIsGone(word: (key: string) => string, pid: number): boolean {
  const here = thisProcess();
  if (word('host') !== here.host || word('machine') !== here.machine) return false;
  if (word('boot') !== here.boot) return here.machine !== '' && here.boot !== '';
  return word('namespace') === here.namespace && startOf(pid) !== word('started');
}

/** What tells a process of this machine from one that got its pid later, or on another machine. */
function thisProcess(): {
  readonly host: string;
  readonly machine: string;
  readonly boot: string;
  readonly namespace: string;
  readonly pid: number;
  readonly started: string;
} {
  return {
    host: hostname(),
    machine: readIf('/etc/machine-id'),
    boot: readIf('/proc/sys/kernel/random/boot_id'),
    namespace: linkIf('/proc/self/ns/pid'),
    pid: process.pid,
    started: startOf(process.pid),
  };
}

/** Start time in clock ticks since boot; empty for a process that is not there. */
function startOf(pid: number): string {
  const stat = readIf(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (stat !== '') return fields[0] === 'Z' ? '' : (fields[19] ?? '');
  try {
    process.kill(pid, 0);
    return 'alive';
  } catch {
    return ''; // gone
  }
}

function readIf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return ''; // systems without it
  }
}

function linkIf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return ''; // systems without it
  }
}

function saidBy(ran: Extract<Ran, { kind: 'ran' | 'refused' }>): string {
  return ran.kind === 'ran' ? ran.stderr.trim().replaceAll('\n', '; ') || `exit ${ran.code}` : ran.text;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const LIMIT = { timeoutSeconds: 15 } as const;

/**
 * The folder is made by mkdir; inside, `owner.<token>` says whose it is, and `owner` holds the record. A dead owner's
 * lock changes hands by renaming its very token, which can work for one taker only, and never for a lock that
 * somebody made in the meantime.
 */
const HEAD = String.raw`R="$FIRSTLIGHT_ROOT"
${LOCK_DIR_SH}
L=$FL_LOCK; me=$1
mtime() { stat -c %Y "$1" 2>/dev/null || date -r "$1" +%s 2>/dev/null || date +%s; }
tokens() { for f in "$L"/owner.*; do [ -e "$f" ] && echo "${'$'}{f##*/owner.}"; done; }
`;

/** $1 token, $2 record, $3 token of an owner that is dead, or empty. Prints `taken`, or `held <token or -> <age>` and the record. */
const TAKE = `${HEAD}
held() { set -- $(tokens); f="$L"; [ -n "$1" ] && f="$L/owner.$1"; echo "held \${1:--} $(($(date +%s) - $(mtime "$f")))"; cat "$L/owner" 2>/dev/null; exit 0; }
# A shell says no more of a full disk than "I/O error".
refuse() { df -Pk "$R/tmp" | { read -r _; read -r _ _ _ free _; [ "\${free:-1}" -le 4 ] && echo "No space left on $R/tmp" || echo "$L cannot be made"; } >&2; exit 1; }
# Other users may take it over too, once it is dead.
umask 0
new="$L.$me"
trap 'rm -f "$new"' EXIT
printf '%s\\n' "$2" >"$new" 2>/dev/null || refuse
if [ -n "$3" ]; then
  # Fresh before it is ours, so that nobody takes it for dead a second time.
  touch -c "$L/owner.$3" 2>/dev/null
  mv "$L/owner.$3" "$L/owner.$me" 2>/dev/null && mv "$new" "$L/owner" && { echo taken; exit 0; }
fi
if mkdir "$L" 2>/dev/null; then
  cp "$new" "$L/owner.$me" && mv "$new" "$L/owner" || refuse
  [ "$(tokens)" = "$me" ] && { echo taken; exit 0; }
  rm -f "$L/owner.$me"
  held
fi
[ -d "$L" ] || refuse
# Left between two owners by somebody who was cut off there.
if [ -z "$(tokens)" ] && [ $(($(date +%s) - $(mtime "$L"))) -ge ${LOCK_DEAD_SECONDS} ]; then rm -f "$L/owner"; rmdir "$L" 2>/dev/null; fi
held
`;

/** $1 token. Exit 4 when the lock is somebody else's. */
const REFRESH = `${HEAD}
[ -e "$L/owner.$me" ] || exit 4
touch -c "$L/owner.$me" "$L/owner"
`;

const RELEASE = `${HEAD}
rm "$L/owner.$me" 2>/dev/null && rm -f "$L/owner" && rmdir "$L"
exit 0
`;
