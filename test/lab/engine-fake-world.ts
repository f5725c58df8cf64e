import { createServer, type Server, type Socket } from 'node:net';

/** One host of the fake: addresses per interface, names of its etc/hosts, and a ledger of memory. */
export type FakeHost = {
  readonly name: string;
  readonly interfaces: Readonly<Record<string, string>>;
  readonly names: Readonly<Record<string, readonly string[]>>;
  readonly route: string;
  readonly totalBytes: number;
  freeBytes: number;
};

type Bound = {
  readonly host: string;
  readonly address: string;
  readonly port: number;
  readonly realPort: number;
};

/**
 * The protocol of the lab's daemon, as small as the engine tests need it: two hosts, a ledger, a port table.
 * 127.x leads to the asking host itself; memory comes back when a process's connection ends.
 */
export class FakeLab {
  readonly hosts: readonly FakeHost[];
  readonly bound: Bound[] = [];
  /** Addresses that no other host can reach. */
  readonly unreachable = new Set<string>();
  port = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(hosts: readonly FakeHost[]) {
    this.hosts = hosts;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    return this;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  variable(host: string): string {
    return `${this.port}:token:${host}`;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let rest = '';
    let host: FakeHost | undefined;
    let held = 0;
    const own: Bound[] = [];
    const answer = (message: Record<string, unknown>): object => {
      if (message.op === 'hello') {
        host = this.hosts.find((candidate) => candidate.name === message.host);
        return host === undefined || message.token !== 'token' ? refused('EPERM') : { ok: true };
      }
      if (host === undefined) return refused('EPERM');
      if (message.op === 'hold') {
        const more = Number(message.bytes) - held;
        if (more > host.freeBytes) return refused('out-of-memory');
        host.freeBytes -= more;
        held += more;
        return { ok: true };
      }
      if (message.op === 'memory')
        return {
          ok: true,
          totalBytes: host.totalBytes,
          freeBytes: host.freeBytes,
          availableBytes: host.freeBytes,
          unified: true,
        };
      if (message.op === 'read-files' || message.op === 'stage') return { ok: true };
      if (message.op === 'route') return { ok: true, addresses: [host.route] };
      if (message.op === 'resolve') return { ok: true, addresses: host.names[String(message.name)] ?? [] };
      if (message.op === 'interface') {
        const address = host.interfaces[String(message.name)];
        return address === undefined ? refused('ENOENT') : { ok: true, addresses: [address] };
      }
      if (message.op === 'listen') return this.#listen(host, message, own);
      if (message.op === 'dial') return this.#dial(host, String(message.address), Number(message.port));
      return refused('ENOENT');
    };
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) socket.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (host !== undefined) host.freeBytes += held;
      for (const entry of own) this.bound.splice(this.bound.indexOf(entry), 1);
    });
  }

  #listen(host: FakeHost, message: Record<string, unknown>, own: Bound[]): object {
    const address = String(message.address);
    const local =
      address === '0.0.0.0' || address.startsWith('127.') || Object.values(host.interfaces).includes(address);
    if (!local) return refused('EADDRNOTAVAIL');
    const port = Number(message.port) || 30_000 + this.bound.length;
    if (this.bound.some((entry) => entry.host === host.name && entry.port === port))
      return refused('EADDRINUSE');
    const entry = { host: host.name, address, port, realPort: Number(message.realPort) };
    this.bound.push(entry);
    own.push(entry);
    return { ok: true, port, realPort: entry.realPort };
  }

  #dial(from: FakeHost, address: string, port: number): object {
    const loop = address.startsWith('127.');
    const to = loop ? from : this.hosts.find((host) => Object.values(host.interfaces).includes(address));
    if (to === undefined || (to !== from && this.unreachable.has(address))) return refused('EHOSTUNREACH');
    const entry = this.bound.find(
      (candidate) =>
        candidate.host === to.name &&
        candidate.port === port &&
        (candidate.address === address || candidate.address === '0.0.0.0'),
    );
    return entry === undefined ? refused('ECONNREFUSED') : { ok: true, port, realPort: entry.realPort };
  }
}

function refused(error: string): object {
  return { ok: false, error, text: error };
}
