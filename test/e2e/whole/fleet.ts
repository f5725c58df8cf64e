import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Ended, ended, writeModel } from '../fleet.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const DIST = resolve(process.env['FIRSTLIGHT_DIST'] ?? join(ROOT, 'dist'));
const SCRIPT = join(import.meta.dirname, 'hosts.sh');
const GIB = 2 ** 30;

export type Letter = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h';
export type Json = Readonly<Record<string, unknown>>;

/** One run of firstlight, ended or made to end. */
export type Told = Ended & {
  readonly events: readonly Json[];
  readonly seconds: number;
  /** It had to be ended from outside: that is always a failure of firstlight. */
  readonly overdue: boolean;
  /** Everything it said, for messages and for what must be named. */
  readonly text: string;
};

/** Whole hosts, `a` the only one that the controller reaches by itself. */
export class WholeFleet {
  readonly folder = mkdtempSync(join(tmpdir(), 'flw-'));
  readonly prefix: string;
  readonly letters: readonly Letter[];

  constructor(count: number) {
    this.prefix = `flw${process.pid}${this.folder.slice(-2).toLowerCase()}`;
    this.letters = (['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const).slice(0, count);
  }

  up(): void {
    const began = Date.now();
    const node = realpathSync(process.execPath);
    // Cleans up when this process is gone, however it ended.
    spawn('bash', [SCRIPT, 'watch', String(process.pid), this.folder, this.prefix], {
      detached: true,
      stdio: 'ignore',
    }).unref();
    const srv = join(this.folder, 'srv');
    mkdirSync(join(srv, 'bin'), { recursive: true });
    mkdirSync(join(srv, 'model'));
    writeModel(join(srv, 'model'), 64);
    cpSync(join(ROOT, 'package.json'), join(srv, 'package.json'));
    for (const name of ['hold.mjs', 'listener.mjs']) cpSync(join(import.meta.dirname, name), join(srv, name));
    cpSync(join(import.meta.dirname, '..', 'nvidia-smi'), join(srv, 'bin', 'nvidia-smi'));
    chmodSync(join(srv, 'bin', 'nvidia-smi'), 0o755);
    for (const name of ['reranker', 'trainer']) symlinkSync('node', join(srv, 'bin', name));
    this.script('up', this.folder, this.prefix, DIST, node, String(this.letters.length));
    mkdirSync(join(this.file('home'), '.ssh'), { recursive: true, mode: 0o700 });
    writeFileSync(this.file('password'), 'aurora-pw\n', { mode: 0o600 });
    this.writeKnownHosts();
    this.writeCluster(this.letters);
    console.log(`${this.letters.length} whole hosts: ${((Date.now() - began) / 1000).toFixed(1)} s`);
  }

  down(): void {
    this.script('down', this.folder, this.prefix);
  }

  /** One command of hosts.sh; its own words on failure. */
  script(...args: readonly string[]): string {
    return execFileSync('bash', [SCRIPT, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 240_000,
    });
  }

  host(command: string, host: Letter, ...args: readonly string[]): string {
    return this.script(command, this.folder, host, ...args);
  }

  file(name: string): string {
    return join(this.folder, 'ctl', name);
  }

  fabric(host: Letter): string {
    return `192.168.77.${12 + this.letters.indexOf(host)}`;
  }

  management(host: Letter): string {
    return `10.77.230.${180 + this.letters.indexOf(host)}`;
  }

  writeKnownHosts(): void {
    const lines = this.letters.map((host) => {
      const key = readFileSync(
        join(this.folder, 'hosts', host, 'upper/etc/ssh/ssh_host_ed25519_key.pub'),
        'utf8',
      );
      return `${this.management(host)},${this.fabric(host)} ${key.split(' ').slice(0, 2).join(' ')}`;
    });
    writeFileSync(this.file('known_hosts'), `${lines.join('\n')}\n`);
  }

  writeCluster(hosts: readonly Letter[]): void {
    const nodes = hosts.map((host) => {
      const jump = host === 'a' ? '' : ', jump: spark-a';
      return `  - {name: spark-${host}, ssh: ${this.management(host)}${jump}, fabric: ${this.fabric(host)}}`;
    });
    writeFileSync(
      this.file('cluster.yaml'),
      `cluster: sparks
sshConfig: ./ssh_config
defaults: {user: aurora, key: ${this.file('id_ed25519')}}
nodes:
${nodes.join('\n')}
`,
    );
    writeFileSync(
      this.file('ssh_config'),
      `Host *\n  UserKnownHostsFile ${this.file('known_hosts')}\n  GlobalKnownHostsFile /dev/null\n`,
    );
  }

  /** `run` is YAML; plain processes where it is left out. `speed` is the stand-in engine's. */
  writeRecipe(options: {
    readonly name?: string;
    readonly nodes: readonly Letter[];
    readonly reserve?: number;
    readonly run?: string;
    readonly speed?: number;
    readonly engines?: string;
    /** The model's folder; `/srv/model` where left out. */
    readonly path?: string;
    /** Further variables, as YAML inside braces. */
    readonly env?: string;
    /** Further lines of the recipe, as YAML. */
    readonly more?: string;
  }): void {
    const count = options.nodes.length;
    writeFileSync(
      this.file('recipe.yaml'),
      `recipe: ${options.name ?? 'tiny'}
model: example/tiny
path: ${options.path ?? '/srv/model'}
nodes: [${options.nodes.map((host) => `spark-${host}`).join(', ')}]
engines: [${options.engines ?? 'sglang'}]
layout: {nodes: ${count}, tensor: ${count}}
context: 2048
sequences: 2
memory: {reserve: ${Math.round(options.reserve ?? 0)}}
run:
${options.run ?? '  in: process\n  command: {sglang: [/srv/bin/node, /srv/dist/lab/engine/main.js, sglang], vllm: [/srv/bin/node, /srv/dist/lab/engine/main.js, vllm]}'}
env: {FIRSTLIGHT_LAB_SPEED: "${options.speed ?? 6}"${options.env === undefined ? '' : `, ${options.env}`}}
serve: {port: 30000}
${options.more ?? ''}
`,
    );
  }

  start(args: readonly string[]): ChildProcess {
    return spawn(
      'nsenter',
      [
        `--net=/run/netns/${this.prefix}-ctl`,
        process.execPath,
        join(DIST, 'main.js'),
        '--cluster',
        this.file('cluster.yaml'),
        ...args,
      ],
      {
        env: {
          PATH: process.env['PATH'],
          HOME: this.file('home'),
          FIRSTLIGHT_HOME: this.file('state'),
          XDG_RUNTIME_DIR: this.file('run'),
          LANG: 'C.UTF-8',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
  }

  /** firstlight on the controller, for so many seconds at most; each event is handed on as it comes. */
  async firstlight(
    args: readonly string[],
    more: { readonly seconds?: number; readonly onEvent?: (event: Json) => void } = {},
  ): Promise<Told> {
    const began = Date.now();
    const child = this.start(args);
    let overdue = false;
    const timer = setTimeout(
      () => {
        overdue = true;
        child.kill('SIGKILL');
      },
      (more.seconds ?? 120) * 1000,
    );
    const end = await ended(child, (line) => {
      if (line.startsWith('{')) more.onEvent?.(JSON.parse(line));
    });
    clearTimeout(timer);
    const events = end.stdout
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line): Json => JSON.parse(line));
    const told = events.filter((event) => event['type'] !== 'looked' && event['type'] !== 'planned');
    const text = `${told.length > 0 ? told.map((event) => JSON.stringify(event)).join('\n') : end.stdout}\n${end.stderr}`;
    return { ...end, events, seconds: (Date.now() - began) / 1000, overdue, text };
  }

  /** A command inside a host as a user, past sshd. */
  on(host: Letter, user: string, command: string): Ended {
    const { status, stdout, stderr } = spawnSync(
      'bash',
      [SCRIPT, 'enter', this.folder, host, user, 'sh', '-c', command],
      { encoding: 'utf8', timeout: 120_000, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    return { code: status, stdout, stderr };
  }

  /** The same, where failing is the test's own mistake. */
  must(host: Letter, user: string, command: string): string {
    const { code, stdout, stderr } = this.on(host, user, command);
    if (code !== 0) throw new Error(`on spark-${host}: ${command}\nended with ${code}: ${stdout}${stderr}`);
    return stdout.trim();
  }

  /** A command through a login of its own, as a person's: with a session, and the user's own manager. */
  login(host: Letter, command: string): string {
    const far = host === 'a' ? [] : ['-o', `ProxyCommand=${this.#ssh('a').join(' ')} -W %h:%p`];
    const { status, stdout, stderr } = spawnSync(
      'nsenter',
      [`--net=/run/netns/${this.prefix}-ctl`, ...this.#ssh(host, far), command],
      { encoding: 'utf8', timeout: 120_000, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    if (status !== 0) throw new Error(`as aurora on spark-${host}: ${command}\n${stdout}${stderr}`);
    return stdout.trim();
  }

  #ssh(host: Letter, more: readonly string[] = []): readonly string[] {
    const key = ['-i', this.file('id_ed25519'), '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=no'];
    const known = ['-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR'];
    return ['ssh', ...key, ...known, ...more, `aurora@${this.management(host)}`];
  }

  /** MemAvailable of a host, bytes. */
  available(host: Letter): number {
    const text = this.must(host, 'root', 'cat /proc/meminfo');
    return Number(/MemAvailable:\s+(\d+)/.exec(text)?.[1] ?? 0) * 1024;
  }

  /** What the plan needs at most on a node, bytes, and how far that may be off. */
  async need(): Promise<{ readonly sum: number; readonly error: number }> {
    const { stdout, text } = await this.firstlight(['plan', this.file('recipe.yaml'), '--json']);
    let report: { readonly plan: { readonly memory: readonly { sumBytes: number; errorBytes: number }[] } };
    try {
      report = JSON.parse(stdout);
    } catch {
      throw new Error(`no plan: ${text}`);
    }
    return {
      sum: Math.max(...report.plan.memory.map((one) => one.sumBytes)),
      error: Math.max(...report.plan.memory.map((one) => one.errorBytes)),
    };
  }
}

export function eventOf(told: Told, type: string): Json | undefined {
  return told.events.findLast((event) => event['type'] === type);
}

export function outcomeOf(told: Told): unknown {
  return eventOf(told, 'run-ended')?.['outcome'];
}

/** Waits until it holds, without holding up what else this process does. */
export async function until(what: string, holds: () => boolean, seconds = 120): Promise<void> {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`in ${seconds} s it did not come to pass that ${what}`);
}

export { GIB };
