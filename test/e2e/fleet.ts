import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  cpSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
const DIST = resolve(process.env['FIRSTLIGHT_DIST'] ?? join(ROOT, 'dist'));
const HOSTS = join(import.meta.dirname, 'hosts.sh');
const GIB = 2 ** 30;

/** What the suite needs on a Debian machine, and the package that has it. */
const NEEDS: readonly (readonly [program: string, pkg: string])[] = [
  ['/usr/sbin/sshd', 'openssh-server'],
  ['/usr/bin/ssh', 'openssh-client'],
  ['/usr/bin/sudo', 'sudo'],
  ['ip', 'iproute2'],
  ['pgrep', 'procps'],
  ['nsenter', 'util-linux'],
  ['runuser', 'util-linux'],
  ['systemd-nspawn', 'systemd-container'],
  ['mmdebstrap', 'mmdebstrap'],
  ['lxcfs', 'lxcfs'],
  ['mkfs.ext4', 'e2fsprogs'],
  ['setpriv', 'util-linux'],
];

/** Why the suite cannot run here, or undefined. Installs what is missing when it runs as root. */
export function whyNot(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces need Linux';
  if (process.getuid?.() !== 0) return 'hosts in network and mount namespaces need root';
  const missing = NEEDS.filter(
    ([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
  ).map(([, pkg]) => pkg);
  if (missing.length === 0) return undefined;
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('apt-get', ['update', '-qq'], { env });
  const done = spawnSync(
    'apt-get',
    ['install', '-y', '-qq', '--no-install-recommends', ...new Set(missing)],
    { env },
  );
  return done.status === 0 ? undefined : `these packages could not be installed: ${missing.join(', ')}`;
}

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Two real hosts and a controller that reaches the second only through the first. */
export class Fleet {
  readonly folder = mkdtempSync(join(tmpdir(), 'fl-e2e-'));
  readonly prefix = `fle${process.pid}`;
  readonly #holders: ChildProcess[] = [];

  /** Each host gets a copy of the model that `make` puts into a folder. */
  up(make: (folder: string) => void = writeModel): void {
    mkdirSync(join(this.folder, 'model'), { recursive: true });
    make(join(this.folder, 'model'));
    cpSync(join(ROOT, 'package.json'), join(this.folder, 'package.json'));
    cpSync(join(import.meta.dirname, 'nvidia-smi'), join(this.folder, 'nvidia-smi'));
    chmodSync(join(this.folder, 'nvidia-smi'), 0o755);
    execFileSync('bash', [HOSTS, 'up', this.folder, this.prefix, DIST, realpathSync(process.execPath)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    mkdirSync(join(this.folder, 'ctl', 'home', '.ssh'), { recursive: true, mode: 0o700 });
    writeFileSync(join(this.folder, 'ctl', 'password'), 'aurora-pw\n', { mode: 0o600 });
    this.writeCluster('');
  }

  writeCluster(more: string): void {
    const key = join(this.folder, 'ctl', 'id_ed25519');
    writeFileSync(
      this.file('cluster.yaml'),
      `cluster: sparks
sshConfig: ./ssh_config
defaults: {user: aurora, key: ${key}}
nodes:
  - {name: spark-a, ssh: 10.1.230.180, fabric: 192.168.200.12}
  - {name: spark-b, ssh: 192.168.200.13, jump: spark-a, fabric: 192.168.200.13}
${more}`,
    );
    writeFileSync(
      this.file('ssh_config'),
      `Host *\n  UserKnownHostsFile ${this.file('known_hosts')}\n  GlobalKnownHostsFile /dev/null\n`,
    );
  }

  /** Writes the recipe; `reserve` in bytes decides whether the model fits. */
  writeRecipe(reserve: number, more = ''): void {
    writeFileSync(
      this.file('recipe.yaml'),
      `recipe: tiny
model: example/tiny
path: /srv/model
engines: [sglang, vllm]
layout: {nodes: 2, tensor: 2}
context: 4096
sequences: 4
memory: {reserve: ${reserve}}
run:
  in: process
  command:
    sglang: [/srv/bin/node, /srv/dist/lab/engine/main.js, sglang]
    vllm: [/srv/bin/node, /srv/dist/lab/engine/main.js, vllm]
serve: {port: 30000}
${more}`,
    );
  }

  file(name: string): string {
    return join(this.folder, 'ctl', name);
  }

  /** firstlight, run in the controller's network namespace with a home of its own. */
  async firstlight(args: readonly string[], onLine?: (line: string) => void): Promise<Ended> {
    const child = this.start(args);
    return ended(child, onLine);
  }

  start(args: readonly string[]): ChildProcess {
    return spawn(
      'ip',
      [
        'netns',
        'exec',
        `${this.prefix}-ctl`,
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

  /** A command inside a host as a user, past sshd. */
  on(host: 'a' | 'b', user: string, command: readonly string[]): Ended {
    const { status, stdout, stderr } = spawnSync(
      'bash',
      [HOSTS, 'enter', this.folder, host, user, ...command],
      { encoding: 'utf8' },
    );
    return { code: status, stdout, stderr };
  }

  /** A process that stays and really holds that much memory. */
  hold(host: 'a' | 'b', user: string, gib: number, name: 'reranker'): ChildProcess {
    const program = `const b=Array.from({length:${gib}},()=>Buffer.alloc(${GIB},1));setInterval(()=>b[0],1e6)`;
    return this.#keep(
      spawn('bash', [HOSTS, 'enter', this.folder, host, user, `/srv/bin/${name}`, '-e', program], {
        stdio: 'ignore',
      }),
    );
  }

  /** A process that listens on a port of every address; it does when this returns. */
  listen(host: 'a' | 'b', user: string, port: number): void {
    const program = `require('net').createServer(()=>{}).listen(${port},'0.0.0.0')`;
    this.#keep(
      spawn('bash', [HOSTS, 'enter', this.folder, host, user, '/srv/bin/node', '-e', program], {
        stdio: 'ignore',
      }),
    );
    const listens = `for i in $(seq 600); do ss -ltnH 'sport = :${port}' | grep -q . && exit 0; sleep 0.05; done; exit 1`;
    if (this.on(host, 'root', ['sh', '-c', listens]).code !== 0)
      throw new Error(`nobody listens on port ${port} of spark-${host}`);
  }

  #keep(child: ChildProcess): ChildProcess {
    this.#holders.push(child);
    return child;
  }

  down(): void {
    for (const child of this.#holders) child.kill('SIGKILL');
    spawnSync('bash', [HOSTS, 'down', this.folder, this.prefix]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Resolves when it has ended, with all it said; whole lines of its output are handed on as they come. */
export function ended(child: ChildProcess, onLine?: (line: string) => void): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine?.(line);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

/** A small dense model: real config and index, weight files of their true size (or a share of it) with nothing in them. */
export function writeModel(folder: string, shareOf = 1): void {
  const config = {
    architectures: ['Qwen3ForCausalLM'],
    model_type: 'qwen3',
    hidden_size: 2048,
    intermediate_size: 6144,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    vocab_size: 151936,
    max_position_embeddings: 40960,
    torch_dtype: 'bfloat16',
    tie_word_embeddings: true,
    // A plan believes no files that are a small part of what the config tells of: a share is a narrower model.
    ...(shareOf > 1 ? { hidden_size: 256, intermediate_size: 768, vocab_size: 32_000 } : {}),
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const files = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
  writeFileSync(
    join(folder, 'model.safetensors.index.json'),
    JSON.stringify({
      metadata: { total_size: (4 * GIB) / shareOf },
      weight_map: Object.fromEntries(files.map((file, index) => [`model.layers.${index}.weight`, file])),
    }),
  );
  for (const file of files) {
    const handle = openSync(join(folder, file), 'w');
    ftruncateSync(handle, (2 * GIB) / shareOf);
    closeSync(handle);
  }
}

export function meminfoAvailable(): number {
  const match = /MemAvailable:\s+(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'));
  return Number(match?.[1] ?? 0) * 1024;
}
