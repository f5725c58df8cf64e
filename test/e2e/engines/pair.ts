import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Event, parseEvent } from '../../../src/domain/event.ts';
import { type Ended, Fleet } from '../fleet.ts';
import { type Engine, engineFile, withoutPlaces } from './engine.ts';

export type Host = 'a' | 'b';
type Rank = { readonly host: Host; readonly args: readonly string[]; readonly env?: Record<string, string> };

/** Where logs of failures are kept for later: a folder for each. */
const KEEP = process.env['FIRSTLIGHT_E2E_KEEP'];
const HAND_LOG = '/srv/home/aurora/by-hand.log';

/** Two hosts with a tiny model and a real engine; what breaks on them, and what stands in their logs. */
export class EnginePair extends Fleet {
  readonly engine: Engine;

  constructor(engine: Engine) {
    super();
    this.engine = engine;
  }

  begin(): void {
    const script = join(import.meta.dirname, 'tiny-model.py');
    this.up((folder) => {
      execFileSync('python3', [script, folder, 'qwen3', '--context', '8192']);
    });
    this.#secondLink();
    // The machine's kernel log is one for all: what it says of one host would be read on the other.
    for (const host of ['a', 'b'] as const) this.must(host, 'mount --bind /dev/null /dev/kmsg');
    for (const host of ['a', 'b'] as const)
      for (const name of ['torch-engine.py', 'tiny-model.py'])
        this.write(host, `/srv/${name}`, engineFile(name));
    const key = (host: Host): string =>
      this.must(host, 'cut -d" " -f1,2 /etc/ssh/ssh_host_ed25519_key.pub').trim();
    writeFileSync(this.file('known_hosts'), `10.1.230.180 ${key('a')}\n10.1.231.181 ${key('b')}\n`);
  }

  /** The worker is reached through the head by a link of its own, so that the fabric may be cut alone. */
  #secondLink(): void {
    const [a, b] = [`${this.prefix}-a`, `${this.prefix}-b`];
    ip('link', 'add', 'enP7s8', 'netns', a, 'type', 'veth', 'peer', 'name', 'enP7s7', 'netns', b);
    ip('-n', a, 'addr', 'add', '10.1.231.180/24', 'dev', 'enP7s8');
    ip('-n', b, 'addr', 'add', '10.1.231.181/24', 'dev', 'enP7s7');
    ip('-n', a, 'link', 'set', 'enP7s8', 'up');
    ip('-n', b, 'link', 'set', 'enP7s7', 'up');
    const cluster = readFileSync(this.file('cluster.yaml'), 'utf8');
    writeFileSync(this.file('cluster.yaml'), cluster.replace('ssh: 192.168.200.13', 'ssh: 10.1.231.181'));
  }

  /** A shell line as root on a host. Throws an Error where it fails. */
  must(host: Host, line: string): string {
    const { code, stdout, stderr } = this.on(host, 'root', ['sh', '-c', line]);
    if (code !== 0) throw new Error(`on spark-${host}: ${line}\n${stdout}${stderr}`);
    return stdout;
  }

  write(host: Host, path: string, text: string): void {
    this.on(host, 'root', ['sh', '-c', 'printf %s "$1" >"$2"', 'sh', text, path]);
  }

  fabric(state: 'up' | 'down'): void {
    ip('-n', `${this.prefix}-b`, 'link', 'set', 'enp1s0f1np1', state);
  }

  /** Writes the recipe; lines of `more` stand in place of the usual ones of the same key. */
  recipe(more = ''): string {
    const own = (key: string): boolean => new RegExp(`^${key}:`, 'm').test(more);
    const { command, env, args } = this.engine;
    const pairs = Object.entries(env).map(([name, value]) => `${name}: "${value}"`);
    const usual = [
      own('path') ? '' : 'path: /srv/model',
      own('context') ? '' : 'context: 256',
      own('memory') ? '' : 'memory: {reserve: 1GiB}',
      own('args') || args.length === 0 ? '' : `args: {vllm: [${args.map((word) => `"${word}"`).join(', ')}]}`,
      own('env') || pairs.length === 0 ? '' : `env: {${pairs.join(', ')}}`,
    ];
    writeFileSync(
      this.file('recipe.yaml'),
      `recipe: tiny
model: example/tiny
engines: [vllm]
layout: {nodes: 2, tensor: 2}
sequences: 4
run:
  in: process
  command:
    vllm: [${command.join(', ')}]
serve: {port: 30000, reasoning: none, tools: none}
${[...usual, this.#withUsual(more)].filter((line) => line !== '').join('\n')}
`,
    );
    return this.file('recipe.yaml');
  }

  /** A case names what it adds; what the engine needs at all times stands there too. */
  #withUsual(more: string): string {
    const { env, args } = this.engine;
    const pairs = Object.entries(env).flatMap(([name, value]) =>
      more.includes(`${name}:`) ? [] : [`${name}: "${value}", `],
    );
    const words = args.map((word) => `"${word}", `);
    return more
      .replace(/^env: \{/m, `env: {${pairs.join('')}`)
      .replace(/^args: \{vllm: \[/m, `args: {vllm: [${words.join('')}`);
  }

  /** Ranks as a person types them, each in its own shell, until all have ended or the time is over. */
  async byHand(ranks: readonly Rank[], seconds: number): Promise<void> {
    const pids = ranks.map(({ host, args, env = {} }) => {
      const words = ['env', ...Object.entries({ ...this.engine.env, ...env }).map(([k, v]) => `${k}=${v}`)];
      const line = `cd; setsid "$@" >${HAND_LOG} 2>&1 </dev/null & echo $!`;
      const all = [...words, ...this.engine.command, ...args, ...this.engine.args];
      return { host, pid: this.on(host, 'aurora', ['sh', '-c', line, 'sh', ...all]).stdout.trim() };
    });
    const end = Date.now() + seconds * 1000;
    const lives = (): boolean =>
      pids.some(({ host, pid }) => this.on(host, 'root', ['kill', '-0', pid]).code === 0);
    while (lives() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 500));
    for (const { host, pid } of pids)
      this.on(host, 'root', ['sh', '-c', `kill -KILL -- -${pid} 2>/dev/null`]);
  }

  handLog(host: Host): string {
    return this.on(host, 'root', ['cat', HAND_LOG]).stdout;
  }

  /** What `diagnose --log` is given for the logs that lie on the hosts. */
  handLogs(hosts: readonly Host[]): readonly string[] {
    return hosts.flatMap((host) => [
      '--log',
      `${host === 'a' ? 'head' : 'worker'}=spark-${host}:${HAND_LOG}`,
    ]);
  }

  /** The first attempt's logs of a run, by role. */
  logsOf(events: readonly Event[]): Readonly<Record<string, string>> {
    const started = events.flatMap((event) => (event.type === 'rank-started' ? [event] : []));
    return Object.fromEntries(
      started
        .filter(({ attempt, log }) => attempt === started[0]?.attempt && existsSync(log))
        .map(({ role, log }) => [role, readFileSync(log, 'utf8')]),
    );
  }

  /** Keeps logs as samples, less what only this machine has, where a folder was named for that. */
  keep(what: string, logs: Readonly<Record<string, string>>): void {
    if (KEEP === undefined) return;
    const folder = join(KEEP, `${this.engine.kind}-${what.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase()}`);
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries(logs))
      writeFileSync(join(folder, `${name}.log`), withoutPlaces(text, this.engine));
  }

  /** Puts all that logs in on a host under a limit of memory; returns how many the kernel has killed in it since. */
  limitMemory(host: Host, bytes: number): { readonly kills: () => number; readonly lift: () => void } {
    const v1 = !existsSync('/sys/fs/cgroup/cgroup.controllers');
    const top = v1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup';
    const group = join(top, `${this.prefix}-limited`);
    if (!v1) spawnSync('sh', ['-c', 'echo +memory >/sys/fs/cgroup/cgroup.subtree_control']);
    mkdirSync(group);
    writeFileSync(join(group, v1 ? 'memory.limit_in_bytes' : 'memory.max'), String(bytes));
    // The host sees its cgroups.
    this.must(
      host,
      v1
        ? `mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && mount -t cgroup -o memory none ${top}`
        : 'mount -t cgroup2 none /sys/fs/cgroup',
    );
    // Of a connection that stands already, too: new sessions begin there.
    this.must(host, `for pid in $(pgrep -x sshd); do echo $pid >${group}/cgroup.procs || true; done`);
    return {
      kills: () => {
        const counted = readFileSync(join(group, v1 ? 'memory.oom_control' : 'memory.events'), 'utf8');
        return Number(/^oom_kill (\d+)$/m.exec(counted)?.[1] ?? 0);
      },
      lift: () => {
        this.must(host, v1 ? `umount ${top} && umount /sys/fs/cgroup` : 'umount /sys/fs/cgroup');
        // Sessions begin and end meanwhile.
        const emptied = `for i in $(seq 600); do while read -r pid; do echo $pid >${top}/cgroup.procs; done <${group}/cgroup.procs; rmdir ${group} && exit 0; sleep 0.1; done 2>/dev/null; exit 1`;
        execFileSync('sh', ['-c', emptied]);
      },
    };
  }
}

function ip(...words: readonly string[]): void {
  execFileSync('ip', words);
}

/** All events in what `up --json` printed. */
export function eventsOf(told: Ended): readonly Event[] {
  return told.stdout
    .split('\n')
    .filter((line) => line.startsWith('{"v":1,'))
    .map(parseEvent);
}

/** Its last words, for messages. */
export function tail(told: Ended): string {
  return `${told.stdout.slice(-4000)}\n${told.stderr.slice(-2000)}`;
}
