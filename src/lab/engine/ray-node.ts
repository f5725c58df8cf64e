import { type ChildProcess, spawn } from 'node:child_process';
import { Channel, ChannelClosed } from './channel.ts';
import { type EngineWorld, WorldError } from './engine-world.ts';
import { listOf, numberOf, textOf } from './json.ts';
import { write } from './output.ts';
import type { Pace } from './pace.ts';
import { RayCluster } from './ray-cluster.ts';

type Hands = {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** How long a worker's Ray goes on without the head's (gcs_rpc_server_reconnect_timeout_s, Ray 2.60). */
const HEAD_GONE_MS = 60_000;

/** `ray start --block …`: this node's Ray until SIGTERM, or until the head's is gone. The exit code. */
export async function runRayNode({ world, pace, env }: Hands, words: readonly string[]): Promise<number> {
  const head = words.includes('--head');
  const named = flagIn(words, '--address') ?? '127.0.0.1:6379';
  const port = head ? Number(flagIn(words, '--port') ?? 6379) : Number(/\d+$/.exec(named)?.[0] ?? 6379);
  const own = flagIn(words, '--node-ip-address') ?? (await world.routeAddress()) ?? '127.0.0.1';
  const gpus = Number(flagIn(words, '--num-gpus') ?? 1);
  const at = head ? own : named.replace(/:\d+$/, '');
  say('INFO', 'scripts.py:1043', `Local node IP: ${own}`);
  await pace.wait(1500);
  if (head) {
    const cluster = new RayCluster();
    try {
      const { server } = await world.listen('0.0.0.0', port);
      server.on('connection', (socket) => cluster.take(new Channel(socket)));
    } catch (error) {
      if (!(error instanceof WorldError)) throw error;
      write(
        2,
        `ConnectionError: Ray is trying to start at ${own}:${port}, but is already running at ${own}:${port}. Please specify a different port using the \`--port\` flag of \`ray start\` command.\n`,
      );
      return 1;
    }
  }
  const channel = await join(world, at, port, { op: 'join', address: own, gpus, env });
  if (channel === undefined) {
    write(2, `RuntimeError: Failed to connect to GCS at ${at}:${port}.\n`);
    return 1;
  }
  for (const text of ['--------------------', 'Ray runtime started.', '--------------------'])
    say('SUCC', 'scripts.py:1085', text);
  say('INFO', 'scripts.py:1265', '--block');
  say('INFO', 'scripts.py:1266', 'This command will now block forever until terminated by a signal.');
  const watch = watchMemory({ world, env }, channel, own);
  return serve(channel, pace, watch);
}

/** Starts workers as the head's Ray tells it, and brings it their lines. */
function serve(
  channel: Channel,
  pace: Pace,
  watch: (workers: ReadonlyMap<number, ChildProcess>) => void,
): Promise<number> {
  const workers = new Map<number, ChildProcess>();
  watch(workers);
  channel.listen((message) => {
    const rank = numberOf(message.rank) ?? 0;
    if (message.op === 'end') endAll(workers);
    if (message.op === 'start') workers.set(rank, startWorker(channel, rank, message));
  });
  return new Promise((resolve) => {
    process.once('SIGTERM', () => {
      endAll(workers);
      void pace.wait(500).then(() => {
        resolve(1);
      });
    });
    void channel.closed
      .then(() => pace.wait(HEAD_GONE_MS))
      .then(() => {
        endAll(workers);
        say('ERR', 'scripts.py:1307', 'Some Ray subprocesses exited unexpectedly:');
        say('ERR', 'scripts.py:1315', 'Remaining processes will be killed.');
        resolve(1);
      });
  });
}

/** From this share of the host's memory on Ray ends workers (RAY_memory_usage_threshold). */
const THRESHOLD = 0.95;

/**
 * Ray's memory monitor (memory_monitor.cc): every RAY_memory_monitor_refresh_ms, 0 is never, it looks how much of the
 * host is not free, page cache too, and ends the newest worker where that is too much.
 */
function watchMemory(
  { world, env }: Pick<Hands, 'world' | 'env'>,
  channel: Channel,
  own: string,
): (workers: ReadonlyMap<number, ChildProcess>) => void {
  const every = Number(env['RAY_memory_monitor_refresh_ms'] ?? 250);
  return (workers) => {
    if (!(every > 0)) return;
    const timer = setInterval(() => {
      void world.memory().then(({ totalBytes, freeBytes }) => {
        const [rank, child] = [...workers].at(-1) ?? [];
        if (child === undefined || child.exitCode !== null || freeBytes > totalBytes * (1 - THRESHOLD))
          return;
        clearInterval(timer);
        channel.send({
          op: 'said',
          rank,
          raylet: own,
          text: `[2026-11-29 10:00:00,000 E 1 1] (raylet) node_manager.cc:3193: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 8289e0f3, IP: ${own}) over the last time period. To see more information about the Workers killed on this node, use \`ray logs raylet.out -ip ${own}\``,
        });
        child.kill('SIGKILL');
      });
    }, every);
    timer.unref();
  };
}

function startWorker(
  channel: Channel,
  rank: number,
  message: Readonly<Record<string, unknown>>,
): ChildProcess {
  const words = listOf(message.argv).filter((word) => typeof word === 'string');
  const copied = Object.fromEntries(
    Object.entries(message.env ?? {}).flatMap(([name, value]) => {
      const text = textOf(value);
      return text === undefined ? [] : [[name, text]];
    }),
  );
  const child = spawn(process.execPath, [process.argv[1] ?? '', 'ray::RayWorkerProc', ...words], {
    env: { ...process.env, ...copied },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split(/\r\n|\n|\r/);
      rest = lines.pop() ?? '';
      for (const text of lines) channel.send({ op: 'said', rank, pid: child.pid, text });
    });
  }
  child.on('close', () => channel.send({ op: 'ended', rank, pid: child.pid }));
  return child;
}

function endAll(workers: Map<number, ChildProcess>): void {
  for (const child of workers.values()) child.kill('SIGKILL');
  workers.clear();
}

/** Dials the head's Ray and tells it something; undefined where nobody answers in 35 s. */
async function join(
  world: EngineWorld,
  address: string,
  port: number,
  first: Readonly<Record<string, unknown>>,
): Promise<Channel | undefined> {
  try {
    const channel = new Channel(await world.dial(address, port));
    channel.send(first);
    await channel.receive();
    return channel;
  } catch (error) {
    if (error instanceof WorldError || error instanceof ChannelClosed) return undefined;
    throw error;
  }
}

function flagIn(words: readonly string[], flag: string): string | undefined {
  const at = words.indexOf(flag);
  return at === -1
    ? words.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1)
    : words[at + 1];
}

/** `2026-11-29 17:39:44,898	SUCC scripts.py:1085 -- Ray runtime started.` */
function say(level: 'INFO' | 'SUCC' | 'ERR', place: string, text: string): void {
  const now = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString();
  write(2, `${now.slice(0, 10)} ${now.slice(11, 19)},${now.slice(20, 23)}\t${level} ${place} -- ${text}\n`);
}
