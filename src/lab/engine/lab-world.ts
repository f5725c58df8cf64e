import { connect, createServer, type Server, type Socket } from 'node:net';
import type { LabRequest } from '../protocol.ts';
import { Channel } from './channel.ts';
import {
  type EngineWorld,
  type Listener,
  WorldError,
  type WorldErrorCode,
  type WorldMemory,
} from './engine-world.ts';
import { type Json, listOf, numberOf, textOf } from './json.ts';

type Asked = Exclude<LabRequest, { op: 'hello' | 'tool' }>;

/** `<port>:<token>:<host name>` → its parts, or undefined when it is not of that form. */
export function parseLabVariable(
  text: string,
): { readonly port: number; readonly token: string; readonly host: string } | undefined {
  const match = /^(\d+):([^:]+):(.+)$/.exec(text);
  if (match === null) return undefined;
  return { port: Number(match[1]), token: match[2] ?? '', host: match[3] ?? '' };
}

/** The lab, over one connection to its daemon. Throws WorldError when the daemon does not take this process. */
export async function openLabWorld(
  lab: { readonly port: number; readonly token: string; readonly host: string },
  process: {
    readonly pid: number;
    readonly ppid: number;
    readonly uid: string;
    readonly argv: readonly string[];
  },
): Promise<EngineWorld> {
  const channel = new Channel(await connectLoopback(lab.port));
  channel.send({ op: 'hello', token: lab.token, host: lab.host, ...process });
  accepted(await channel.receive());
  return new LabWorld(lab.host, channel);
}

class LabWorld implements EngineWorld {
  readonly hostname: string;
  readonly gone: Promise<void>;
  readonly #channel: Channel;
  #held = 0;

  constructor(hostname: string, channel: Channel) {
    this.hostname = hostname;
    this.#channel = channel;
    this.gone = channel.closed;
  }

  async memory(): Promise<WorldMemory> {
    const reply = await this.#ask({ op: 'memory' });
    return {
      totalBytes: numberOf(reply.totalBytes) ?? 0,
      freeBytes: numberOf(reply.freeBytes) ?? 0,
      availableBytes: numberOf(reply.availableBytes) ?? 0,
      unified: reply.unified === true,
    };
  }

  async hold(bytes: number, gpu: boolean): Promise<void> {
    const all = Math.max(this.#held, Math.ceil(bytes));
    await this.#ask({ op: 'hold', bytes: all, gpu });
    this.#held = all;
  }

  async stage(bytes: number, program?: string): Promise<void> {
    await this.#ask({
      op: 'stage',
      bytes: Math.ceil(bytes),
      ...(program === undefined ? {} : { program }),
    });
  }

  async readFiles(bytes: number): Promise<number> {
    return numberOf((await this.#ask({ op: 'read-files', bytes: Math.ceil(bytes) })).slowed) ?? 1;
  }

  async askHub(): Promise<number | undefined> {
    try {
      return numberOf((await this.#ask({ op: 'ask-hub' })).status);
    } catch (error) {
      if (error instanceof WorldError) return undefined;
      throw error;
    }
  }

  async asked(): Promise<void> {
    await this.#ask({ op: 'asked' });
  }

  resolve(name: string): Promise<readonly string[]> {
    return this.#addresses({ op: 'resolve', name });
  }

  interfaceAddress(name: string): Promise<readonly string[]> {
    return this.#addresses({ op: 'interface', name });
  }

  async routeAddress(): Promise<string | undefined> {
    return (await this.#addresses({ op: 'route' }))[0];
  }

  async listen(address: string, port: number): Promise<Listener> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    try {
      const reply = await this.#ask({ op: 'listen', address, port, realPort: portOf(server) });
      return { server, address, port: numberOf(reply.port) ?? port };
    } catch (error) {
      server.close();
      throw error;
    }
  }

  async dial(address: string, port: number): Promise<Socket> {
    const reply = await this.#ask({ op: 'dial', address, port });
    return connectLoopback(numberOf(reply.realPort) ?? 0);
  }

  async #addresses(request: Asked): Promise<readonly string[]> {
    try {
      const reply = await this.#ask(request);
      return listOf(reply.addresses).filter((entry) => typeof entry === 'string');
    } catch (error) {
      // A name that nobody knows is an empty answer, as for getaddrinfo.
      if (error instanceof WorldError) return [];
      throw error;
    }
  }

  async #ask(request: Asked): Promise<Json> {
    this.#channel.send(request);
    // Replies come in the order of the requests, so the next message is this one's.
    return accepted(await this.#channel.receive());
  }
}

function accepted(reply: Json): Json {
  if (reply.ok === true) return reply;
  const error = textOf(reply.error) ?? 'ENOENT';
  throw new WorldError(CODES[error] ?? 'ENOENT', textOf(reply.text) ?? error);
}

const CODES: Readonly<Record<string, WorldErrorCode>> = {
  'out-of-memory': 'out-of-memory',
  EADDRINUSE: 'EADDRINUSE',
  EADDRNOTAVAIL: 'EADDRNOTAVAIL',
  ECONNREFUSED: 'ECONNREFUSED',
  ETIMEDOUT: 'ETIMEDOUT',
  EHOSTUNREACH: 'EHOSTUNREACH',
  ENOENT: 'ENOENT',
  /** A process that may not use the GPU sees none. */
  EPERM: 'no-gpu',
  'gpu-lost': 'gpu-lost',
};

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function connectLoopback(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.removeListener('error', refused);
      resolve(socket);
    });
    const refused = (error: Error): void => reject(new WorldError('ECONNREFUSED', error.message));
    socket.once('error', refused);
  });
}
