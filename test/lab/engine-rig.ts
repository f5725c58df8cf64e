import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeHost, FakeLab } from './engine-fake-world.ts';

const MAIN = join(process.env.FIRSTLIGHT_DIST ?? 'dist', 'lab/engine/main.js');
export const GIB = 2 ** 30;

/** One engine process under test, with all it has printed. */
export class Engine {
  text = '';
  readonly #child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;

  constructor(words: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [MAIN, ...words], {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const take = (chunk: unknown): void => {
      this.text += String(chunk);
    };
    this.#child.stdout?.on('data', take);
    this.#child.stderr?.on('data', take);
    this.ended = new Promise((resolve) =>
      this.#child.on('close', (code, signal) => resolve({ code, signal })),
    );
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  lines(): readonly string[] {
    return this.text.split(/\r\n|\n|\r/).filter((line) => line !== '');
  }

  /** Waits until the text is there; throws with all the output when the process ends or twenty seconds pass. */
  async until(pattern: RegExp): Promise<void> {
    const limit = Date.now() + 20_000;
    while (!pattern.test(this.text)) {
      if (!this.running || Date.now() > limit) {
        if (pattern.test(this.text)) return;
        throw new Error(`${pattern} never came:\n${this.text}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Two Sparks of the fake lab, a small model on disk, and the engines started on them. */
export class Rig {
  readonly lab: FakeLab;
  readonly model: string;
  readonly a: FakeHost;
  readonly b: FakeHost;
  readonly #folder: string;
  readonly #engines: Engine[] = [];

  private constructor(lab: FakeLab, folder: string) {
    this.lab = lab;
    this.#folder = folder;
    this.model = join(folder, 'model');
    const [a, b] = lab.hosts;
    if (a === undefined || b === undefined) throw new Error('the rig needs two hosts');
    this.a = a;
    this.b = b;
    writeModel(this.model, {});
    writeNetwork(folder, true);
  }

  /** What both hosts' RDMA devices are from now on. */
  set rdma(active: boolean) {
    writeNetwork(this.#folder, active);
  }

  static async open(names: 'loopback' | 'fabric' = 'loopback'): Promise<Rig> {
    const host = (name: string, last: number): FakeHost => ({
      name,
      interfaces: { enp1s0f0np0: `192.168.200.${last}`, enP7s7: `10.1.230.${last}` },
      names: { [name]: [names === 'loopback' ? '127.0.1.1' : `192.168.200.${last}`] },
      route: `10.1.230.${last}`,
      totalBytes: 121.69 * GIB,
      freeBytes: 112 * GIB,
    });
    const lab = await new FakeLab([host('spark-a', 12), host('spark-b', 13)]).open();
    return new Rig(lab, mkdtempSync(join(tmpdir(), 'engine-')));
  }

  start(host: FakeHost, words: readonly string[], env: Readonly<Record<string, string>> = {}): Engine {
    const engine = new Engine(words, {
      FIRSTLIGHT_LAB: this.lab.variable(host.name),
      FIRSTLIGHT_LAB_SPEED: '12',
      FIRSTLIGHT_ROOT: this.#folder,
      ...env,
    });
    this.#engines.push(engine);
    return engine;
  }

  /** Both ranks; worker first. Environment is shared, but `{ip}` in a value is the rank's fabric address. */
  pair(
    engine: 'sglang' | 'vllm',
    more: readonly string[] = [],
    env: Readonly<Record<string, string>> = AUTO,
  ): { readonly head: Engine; readonly worker: Engine } {
    const worker = this.start(this.b, words(engine, this.model, 1, more), filled(env, '192.168.200.13'));
    const head = this.start(this.a, words(engine, this.model, 0, more), filled(env, '192.168.200.12'));
    return { head, worker };
  }

  async request(
    host: FakeHost,
    address: string,
    port: number,
    text: string,
  ): Promise<{ readonly status: number; readonly body: string }> {
    const entry = this.lab.bound.find((bound) => bound.host === host.name && bound.port === port);
    if (entry === undefined) throw new Error(`nothing listens at ${address}:${port}`);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(entry.realPort, '127.0.0.1', () => socket.write(text));
      let all = '';
      socket.setEncoding('utf8');
      socket.on('data', (chunk) => {
        all += String(chunk);
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(all));
    });
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);
    return { status, body: answer.slice(answer.indexOf('\r\n\r\n') + 4) };
  }

  get(path: string, headers = '', port = 30000): Promise<{ readonly status: number; readonly body: string }> {
    return this.request(this.a, '127.0.0.1', port, `GET ${path} HTTP/1.0\r\nHost: x\r\n${headers}\r\n`);
  }

  post(
    path: string,
    body: unknown,
    headers = '',
    port = 30000,
  ): Promise<{ readonly status: number; readonly body: string }> {
    const text = JSON.stringify(body);
    const head = `POST ${path} HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n${headers}\r\n`;
    return this.request(this.a, '127.0.0.1', port, head + text);
  }

  async close(): Promise<void> {
    for (const engine of this.#engines) if (engine.running) engine.signal('SIGKILL');
    await Promise.all(this.#engines.map((engine) => engine.ended));
    this.lab.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export const AUTO = {
  GLOO_SOCKET_IFNAME: 'enp1s0f0np0',
  SGLANG_HOST_IP: '{ip}',
  VLLM_HOST_IP: '{ip}',
} as const;

function filled(env: Readonly<Record<string, string>>, ip: string): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value.replace('{ip}', ip)]));
}

export function words(
  engine: 'sglang' | 'vllm',
  model: string,
  rank: number,
  more: readonly string[] = [],
): readonly string[] {
  if (engine === 'sglang')
    return [
      ...['sglang', 'serve', '--model-path', model, '--tp-size', '2', '--nnodes', '2'],
      ...['--node-rank', String(rank), '--dist-init-addr', '192.168.200.12:20000', '--port', '30000'],
      ...more,
    ];
  return [
    ...['vllm', 'serve', model, '-tp', '2', '--nnodes', '2', '--node-rank', String(rank)],
    ...['--master-addr', '192.168.200.12', '--master-port', '20000'],
    ...(rank === 0 ? ['--host', '127.0.0.1', '--port', '30000'] : ['--headless']),
    ...more,
  ];
}

/** The interfaces and RDMA devices of a Spark, as sysfs shows them; the same names on both hosts. */
function writeNetwork(root: string, active: boolean): void {
  for (const name of ['lo', 'enP7s7', 'enp1s0f0np0'])
    mkdirSync(join(root, 'sys/class/net', name), { recursive: true });
  for (const device of ['rocep1s0f0', 'roceP2p1s0f0']) {
    const port = join(root, 'sys/class/infiniband', device, 'ports/1');
    mkdirSync(port, { recursive: true });
    writeFileSync(join(port, 'state'), active ? '4: ACTIVE\n' : '1: DOWN\n');
    // 192.168.200.12, as RoCE v2 has it.
    mkdirSync(join(port, 'gids'), { recursive: true });
    writeFileSync(join(port, 'gids/3'), '0000:0000:0000:0000:0000:ffff:c0a8:c80c\n');
  }
}

/** A folder that looks like a hybrid mixture of 100 GB in four shards. */
export function writeModel(folder: string, config: Readonly<Record<string, unknown>>): void {
  mkdirSync(folder, { recursive: true });
  const text = {
    num_hidden_layers: 48,
    num_attention_heads: 32,
    num_key_value_heads: 2,
    head_dim: 256,
    full_attention_interval: 4,
    linear_num_key_heads: 16,
    linear_num_value_heads: 64,
    linear_key_head_dim: 128,
    linear_value_head_dim: 128,
    linear_conv_kernel_dim: 4,
    mamba_ssm_dtype: 'float32',
    max_position_embeddings: 262144,
  };
  const all = {
    architectures: ['Qwen3_5MoeForConditionalGeneration'],
    model_type: 'qwen3_5_moe',
    quantization_config: { quant_method: 'fp8' },
    text_config: { ...text, ...config },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(all));
  const shards = [1, 2, 3, 4].map((n) => `model-0000${n}-of-00004.safetensors`);
  for (const shard of shards) writeFileSync(join(folder, shard), 'weights');
  const weight_map = Object.fromEntries(shards.map((shard, index) => [`layer.${index}`, shard]));
  const index = { metadata: { total_size: 100 * GIB }, weight_map };
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify(index));
}
