import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import {
  type EngineWorld,
  type Listener,
  WorldError,
  type WorldErrorCode,
  type WorldMemory,
} from './engine-world.ts';

/**
 * This real host, for the end-to-end tests: real addresses, real sockets, memory from /proc/meminfo. What is
 * held is really allocated and touched, `scale` times smaller; what free memory is told counts it whole, so that
 * an engine's own arithmetic adds up.
 */
export function openHostWorld(scale: number): EngineWorld {
  return new HostWorld(scale);
}

const CODES: Readonly<Record<string, WorldErrorCode>> = {
  EADDRINUSE: 'EADDRINUSE',
  EADDRNOTAVAIL: 'EADDRNOTAVAIL',
  ECONNREFUSED: 'ECONNREFUSED',
  ETIMEDOUT: 'ETIMEDOUT',
  EHOSTUNREACH: 'EHOSTUNREACH',
  ENETUNREACH: 'EHOSTUNREACH',
};

class HostWorld implements EngineWorld {
  readonly hostname = hostname();
  readonly gone = new Promise<void>(() => {});
  readonly #scale: number;
  readonly #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(scale: number) {
    this.#scale = scale;
  }

  memory(): Promise<WorldMemory> {
    const text = readFileSync('/proc/meminfo', 'utf8');
    const field = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;
    const unreal = this.#heldBytes - this.#held.reduce((sum, part) => sum + part.length, 0);
    return Promise.resolve({
      totalBytes: field('MemTotal'),
      freeBytes: Math.max(0, field('MemFree') - unreal),
      availableBytes: Math.max(0, field('MemAvailable') - unreal),
      unified: true,
    });
  }

  async hold(bytes: number): Promise<void> {
    const more = Math.ceil(bytes) - this.#heldBytes;
    if (more <= 0) return;
    if (more > (await this.memory()).availableBytes) throw new WorldError('out-of-memory', 'out of memory');
    // 1 as fill makes every page this process's own.
    this.#held.push(Buffer.alloc(Math.ceil(more * this.#scale), 1));
    this.#heldBytes += more;
  }

  /** On a real host it is the real kernel's to say. */
  stage(): Promise<void> {
    return Promise.resolve();
  }

  readFiles(): Promise<number> {
    return Promise.resolve(1);
  }

  /** The stand-ins ask nobody outside. */
  askHub(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  asked(): Promise<void> {
    return Promise.resolve();
  }

  async resolve(name: string): Promise<readonly string[]> {
    try {
      return (await lookup(name, { all: true, family: 4 })).map((entry) => entry.address);
    } catch {
      // No such name: getaddrinfo's own empty answer.
      return [];
    }
  }

  interfaceAddress(name: string): Promise<readonly string[]> {
    const entries = networkInterfaces()[name] ?? [];
    return Promise.resolve(entries.filter((entry) => entry.family === 'IPv4').map((entry) => entry.address));
  }

  routeAddress(): Promise<string | undefined> {
    const device = defaultRouteDevice();
    const first = Object.entries(networkInterfaces())
      .filter(([name]) => device === undefined || name === device)
      .flatMap(([, entries]) => entries ?? [])
      .find((entry) => entry.family === 'IPv4' && !entry.internal);
    return Promise.resolve(first?.address);
  }

  listen(address: string, port: number): Promise<Listener> {
    const server = createServer();
    return new Promise((resolve, reject) => {
      server.once('error', (error) => reject(worldError(error)));
      server.listen({ host: address, port, exclusive: true }, () => {
        const bound = server.address();
        resolve({ server, address, port: typeof bound === 'object' && bound !== null ? bound.port : port });
      });
    });
  }

  dial(address: string, port: number): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: address, port, timeout: 20_000 });
      socket.once('timeout', () => {
        socket.destroy();
        reject(new WorldError('ETIMEDOUT', 'timed out'));
      });
      const failed = (error: Error): void => reject(worldError(error));
      socket.once('error', failed);
      socket.once('connect', () => {
        socket.setTimeout(0);
        socket.removeListener('error', failed);
        resolve(socket);
      });
    });
  }
}

function worldError(error: Error): WorldError {
  const code = 'code' in error ? String(error.code) : '';
  return new WorldError(CODES[code] ?? 'ENOENT', error.message);
}

/** /proc/net/route: the interface whose destination is 00000000. */
function defaultRouteDevice(): string | undefined {
  try {
    const rows = readFileSync('/proc/net/route', 'utf8').split('\n').slice(1);
    return rows.map((row) => row.split('\t')).find((cells) => cells[1] === '00000000')?.[0];
  } catch {
    // No such file outside Linux: then the first address there is.
    return undefined;
  }
}
