import { Channel, ChannelClosed } from './channel.ts';
import { type EngineWorld, type Listener, WorldError } from './engine-world.ts';
import { Group, type Peer } from './group.ts';
import { numberOf, textOf } from './json.ts';
import { torchStamp } from './output.ts';
import { type Pace, within } from './pace.ts';
import { PythonError } from './python-error.ts';
import { type Store, socketWords } from './store.ts';

type Hands = {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly print: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
};

const LIMIT = 3;

/**
 * Gloo's full mesh: each rank picks the address it tells the others, as torch does, and the lower rank of each
 * pair dials what the higher one told. Throws PythonError in Gloo's words; the rank that is dialled just waits.
 */
export async function connectFullMesh(
  hands: Hands,
  {
    store,
    rank,
    size,
    timeoutSeconds,
  }: { readonly store: Store; readonly rank: number; readonly size: number; readonly timeoutSeconds: number },
): Promise<Group> {
  const own = await device(hands);
  const incoming = accept(own);
  await store.set(`gloo/${rank}`, { address: own.address, port: own.port });
  const peers: Peer[] = [];
  for (let other = 0; other < size; other += 1) {
    if (other === rank) continue;
    const told = await store.get(`gloo/${other}`);
    const address = textOf(told.address) ?? '';
    const port = numberOf(told.port) ?? 0;
    const channel =
      rank < other
        ? await dial(hands, { own: own.address, address, port, rank, other, size })
        : await within((timeoutSeconds * 1000) / hands.pace.speed, incoming.from(other), undefined);
    if (channel === undefined)
      throw new PythonError(
        'gloo',
        'RuntimeError',
        `Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: wait timeout after ${timeoutSeconds * 1000}ms, remote=[${address}]:${port}$0`,
      );
    peers.push({ rank: other, address, port, channel });
  }
  return new Group(rank, size, peers);
}

/** The address torch's ProcessGroupGloo binds: named interfaces, else what the host's own name resolves to. */
async function device({ world, env, print }: Hands): Promise<Listener> {
  const named = env.FIRSTLIGHT_LAB_PIN_HOSTNAME === '1' ? '' : (env.GLOO_SOCKET_IFNAME ?? '');
  if (named !== '') {
    // One device per exact name; NCCL's `^` and `=` forms mean nothing here.
    const first = named.split(',')[0] ?? '';
    const address = (await world.interfaceAddress(first))[0];
    if (address === undefined)
      throw new PythonError(
        'gloo',
        'RuntimeError',
        `[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ${first}`,
      );
    const listener = await bind(world, address);
    if (listener !== undefined) return listener;
  }
  for (const address of await world.resolve(world.hostname)) {
    const listener = await bind(world, address);
    if (listener !== undefined) return listener;
  }
  print(
    `${torchStamp('W', 'ProcessGroupGloo.cpp:514')} Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME. (function operator())\n`,
  );
  const loopback = await bind(world, '127.0.0.1');
  if (loopback === undefined) throw new Error('the loopback address cannot be bound');
  return loopback;
}

/** A random port, as Gloo's are: two hosts then hardly listen on the same one. Undefined when it is not ours to bind. */
async function bind(world: EngineWorld, address: string): Promise<Listener | undefined> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    try {
      return await world.listen(address, 10_000 + Math.floor(Math.random() * 20_000));
    } catch (error) {
      if (!(error instanceof WorldError)) throw error;
      if (error.code !== 'EADDRINUSE') return undefined;
    }
  }
  return undefined;
}

function accept({ server }: Listener): { from(rank: number): Promise<Channel> } {
  const arrived = new Map<number, Channel>();
  const waiting = new Map<number, (channel: Channel) => void>();
  server.on('connection', (socket) => {
    const channel = new Channel(socket);
    channel.receive().then(
      (hello) => {
        const rank = numberOf(hello.gloo) ?? -1;
        channel.send({ gloo: 'ok', of: rank });
        const waiter = waiting.get(rank);
        if (waiter === undefined) arrived.set(rank, channel);
        else waiter(channel);
      },
      () => channel.close(),
    );
  });
  return {
    from: (rank) =>
      new Promise((resolve) => {
        const there = arrived.get(rank);
        if (there === undefined) waiting.set(rank, resolve);
        else resolve(there);
      }),
  };
}

async function dial(
  { world, pace, print }: Hands,
  to: {
    readonly own: string;
    readonly address: string;
    readonly port: number;
    readonly rank: number;
    readonly other: number;
    readonly size: number;
  },
): Promise<Channel> {
  const remote = `[${to.address}]:${to.port}$0`;
  let words = '';
  for (let attempt = 1; attempt <= LIMIT + 1; attempt += 1) {
    try {
      const channel = new Channel(await world.dial(to.address, to.port));
      channel.send({ gloo: to.rank, to: to.other });
      await channel.receive();
      return channel;
    } catch (error) {
      if (!(error instanceof WorldError || error instanceof ChannelClosed)) throw error;
      words = socketWords(error);
      const local = `[${to.address.startsWith('127.') ? '127.0.0.1' : to.own}]:${1024 + Math.floor(Math.random() * 64_000)}`;
      print(
        `[/pytorch/third_party/gloo/gloo/transport/tcp/debug_logger.cc:9] ERROR failed to connect, willRetry=${attempt <= LIMIT ? 1 : 0}, retry=${attempt}, retryLimit=${LIMIT}, rank=${to.rank}, size=${to.size}, local=${local}, remote=${remote}, error=SO_ERROR: ${words}, remote=${remote}\n`,
      );
      if (attempt <= LIMIT) await pace.wait(300);
    }
  }
  const message = `Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: ${words}, remote=${remote}`;
  print(`${torchStamp('E', 'ProcessGroupGloo.cpp:67')} ${message}\n`);
  throw new PythonError('gloo', 'RuntimeError', message);
}
