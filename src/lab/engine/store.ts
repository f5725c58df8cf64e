import { Channel, ChannelClosed } from './channel.ts';
import { type EngineWorld, WorldError } from './engine-world.ts';
import { isJson, type Json, numberOf, textOf } from './json.ts';
import { torchStamp } from './output.ts';
import { type Pace, within } from './pace.ts';
import { PythonError } from './python-error.ts';

export type Rendezvous = {
  readonly address: string;
  readonly port: number;
  readonly rank: number;
  readonly size: number;
  readonly timeoutSeconds: number;
};

/** torch's TCPStore: rank 0 holds keys, every rank (0 too) dials it. `get` waits until the key is there. */
export class Store {
  readonly #channel: Channel;
  constructor(channel: Channel) {
    this.#channel = channel;
  }
  /** Resolves when the head that has it is gone. */
  get lost(): Promise<void> {
    return this.#channel.closed;
  }
  async set(key: string, value: Json): Promise<void> {
    await this.#ask({ op: 'set', key, value });
  }
  async get(key: string): Promise<Json> {
    const { value } = await this.#ask({ op: 'get', key });
    return isJson(value) ? value : {};
  }

  async #ask(message: Json): Promise<Json> {
    try {
      this.#channel.send(message);
      return await this.#channel.receive();
    } catch (error) {
      if (!(error instanceof ChannelClosed)) throw error;
      throw new PythonError('store', 'torch.distributed.DistNetworkError', 'failed to recv, got 0 bytes');
    }
  }
}

type Hands = { readonly world: EngineWorld; readonly pace: Pace; readonly print: (text: string) => void };

/**
 * Rank 0 listens on all its addresses at the port, then every rank dials `address:port` until it gets through or
 * the time is over. Throws PythonError in torch's words.
 */
export async function rendezvous(hands: Hands, at: Rendezvous): Promise<Store> {
  const started = Date.now();
  const everyone = at.rank === 0 ? await host(hands.world, at) : undefined;
  const channel = await join(hands, at, started);
  if (everyone !== undefined) {
    const limit = (at.timeoutSeconds * 1000) / hands.pace.speed;
    const joined = await within(limit, everyone.complete, undefined);
    if (joined === undefined)
      throw new PythonError(
        'store',
        'torch.distributed.DistStoreError',
        `Timed out after ${at.timeoutSeconds + 1} seconds waiting for clients. ${everyone.joined()}/${at.size} clients joined.`,
      );
  }
  return new Store(channel);
}

/** What NCCL's watchdog thread of a rank says when the head's store is gone (torch 2.11, ProcessGroupNCCL.cpp). */
export function lostStore(rank: number): string {
  return `[rank${rank}]:${torchStamp('W', 'ProcessGroupNCCL.cpp:1826')} [PG ID 0 PG GUID 0 Rank ${rank}] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: failed to recv, got 0 bytes\n`;
}

async function join({ world, pace, print }: Hands, at: Rendezvous, started: number): Promise<Channel> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const channel = new Channel(await world.dial(await addressOf(world, at.address), at.port));
      channel.send({ op: 'join', rank: at.rank });
      await channel.receive();
      print(
        `${torchStamp('W', 'socket.cpp:207')} [c10d] The hostname of the client socket cannot be retrieved. err=-3\n`,
      );
      return channel;
    } catch (error) {
      if (!(error instanceof WorldError || error instanceof ChannelClosed)) throw error;
      const passed = ((Date.now() - started) * pace.speed) / 1000;
      if (passed > at.timeoutSeconds)
        throw new PythonError(
          'store',
          'torch.distributed.DistNetworkError',
          `The client socket has timed out after ${at.timeoutSeconds * 1000}ms while trying to connect to (${at.address}, ${at.port}).`,
        );
      const delay = Math.min(2000, Math.round(300 * 1.5 ** attempt));
      // torch is silent about the first refusals: a worker that is a moment early is no news.
      if (attempt >= 3)
        print(
          `${torchStamp('W', 'TCPStore.cpp:358')} [c10d] TCP client failed to connect/validate to host ${at.address}:${at.port} - retrying (try=${attempt}, timeout=${at.timeoutSeconds * 1000}ms, delay=${delay}ms): ${said(error)}\n`,
        );
      await pace.wait(delay);
    }
  }
}

/** What a name leads to on this host, as getaddrinfo says; a name that leads nowhere is dialled in vain. */
async function addressOf(world: EngineWorld, name: string): Promise<string> {
  return (await world.resolve(name))[0] ?? name;
}

function said(error: Error): string {
  const code = error instanceof WorldError ? error.code : 'ECONNRESET';
  return SAID[code] ?? 'Connection reset by peer';
}

const SAID: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused',
  ETIMEDOUT: 'Connection timed out',
  EHOSTUNREACH: 'No route to host',
};

/** What a socket error is called in C++. */
export function socketWords(error: unknown): string {
  return error instanceof WorldError ? (SAID[error.code] ?? error.message) : 'Connection reset by peer';
}

async function host(
  world: EngineWorld,
  at: Rendezvous,
): Promise<{ readonly complete: Promise<true>; joined(): number }> {
  const values = new Map<string, unknown>();
  const waiting = new Map<string, Channel[]>();
  const ranks = new Set<number>();
  let all: (value: true) => void = () => {};
  const complete = new Promise<true>((resolve) => {
    all = resolve;
  });
  const serve = (channel: Channel, message: Json): void => {
    const key = textOf(message.key) ?? '';
    if (message.op === 'join') {
      ranks.add(numberOf(message.rank) ?? -1);
      channel.send({ ok: true });
      if (ranks.size === at.size) all(true);
    } else if (message.op === 'set') {
      values.set(key, message.value);
      channel.send({ ok: true });
      for (const waiter of waiting.get(key) ?? []) waiter.send({ value: message.value });
      waiting.delete(key);
    } else if (values.has(key)) channel.send({ value: values.get(key) });
    else waiting.set(key, [...(waiting.get(key) ?? []), channel]);
  };
  try {
    const { server } = await world.listen('0.0.0.0', at.port);
    server.on('connection', (socket) => {
      const channel = new Channel(socket);
      channel.listen((message) => serve(channel, message));
    });
  } catch (error) {
    if (!(error instanceof WorldError)) throw error;
    throw new PythonError(
      'store',
      'torch.distributed.DistNetworkError',
      `The server socket has failed to listen on any local network address. port: ${at.port}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use`,
    );
  }
  return { complete, joined: () => ranks.size };
}
