import { connect, type Socket } from 'node:net';

export type DialFailure = 'ECONNREFUSED' | 'ETIMEDOUT' | 'EHOSTUNREACH';

export type LabInterface = {
  readonly name: string;
  readonly address: string | undefined;
  readonly prefix: number;
  readonly up: boolean;
  readonly mtu: number;
  readonly speedMbps: number;
  readonly mac: string;
  readonly port: string | undefined;
  readonly rdma: string | undefined;
};

export type Listener = {
  readonly host: string;
  readonly address: string;
  readonly port: number;
  readonly realPort: number;
  readonly pid: number;
  readonly program: string;
  readonly uid: number;
};

type TableHost = { readonly name: string; readonly interfaces: readonly LabInterface[] };

/**
 * The lab's network: the only place where its addresses mean something. Each listener on a host is a real one
 * on 127.0.0.1 under another port. 127.x always leads to the host that dials. Nothing outside the table is reachable.
 */
export class NetworkTable {
  readonly #hosts: readonly TableHost[];
  readonly #firewall: readonly { readonly from: string; readonly to: string; readonly port: number }[];
  readonly #listeners = new Set<Listener>();
  readonly #cut = new Set<string>();
  #ephemeral = 34000;

  constructor(
    hosts: readonly TableHost[],
    firewall: readonly { readonly from: string; readonly to: string; readonly port: number }[],
  ) {
    this.#hosts = hosts;
    this.#firewall = firewall;
  }

  /** Pulls, or plugs, the cable of that interface. */
  cut(host: string, interfaceName: string, down: boolean): void {
    if (down) this.#cut.add(`${host} ${interfaceName}`);
    else this.#cut.delete(`${host} ${interfaceName}`);
  }

  interfacesOf(host: string): readonly LabInterface[] {
    const found = this.#hosts.find(({ name }) => name === host)?.interfaces ?? [];
    return found.map((item) => (this.#cut.has(`${host} ${item.name}`) ? { ...item, up: false } : item));
  }

  listenersOf(host: string): readonly Listener[] {
    return [...this.#listeners].filter((listener) => listener.host === host);
  }

  /** The listener, or why the address cannot be had. Port 0 takes a free one. */
  listen(wish: Listener): Listener | 'EADDRINUSE' | 'EADDRNOTAVAIL' {
    if (!isWildcard(wish.address) && !isLoopback(wish.address) && !this.#owns(wish.host, wish.address)) {
      return 'EADDRNOTAVAIL';
    }
    const taken = (port: number): boolean =>
      this.listenersOf(wish.host).some(
        (other) =>
          other.port === port &&
          (other.address === wish.address || isWildcard(other.address) || isWildcard(wish.address)),
      );
    let { port } = wish;
    while (port === 0 || (wish.port === 0 && taken(port))) {
      this.#ephemeral = this.#ephemeral >= 60000 ? 34000 : this.#ephemeral + 1;
      port = this.#ephemeral;
    }
    if (taken(port)) return 'EADDRINUSE';
    const listener = { ...wish, port };
    this.#listeners.add(listener);
    return listener;
  }

  forget(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /** Where a connection from that host to address:port really leads, or why it fails. */
  find(fromHost: string, address: string, port: number): Listener | DialFailure {
    const to = this.#target(fromHost, address);
    if (to === undefined) return 'EHOSTUNREACH';
    const dropped = this.#firewall.some(
      (rule) => rule.from === fromHost && rule.to === to && rule.port === port && port !== 22,
    );
    if (dropped) return 'ETIMEDOUT';
    const listener = this.listenersOf(to).find(
      (candidate) =>
        candidate.port === port && (isWildcard(candidate.address) || candidate.address === address),
    );
    return listener ?? 'ECONNREFUSED';
  }

  /** A real connection. */
  dial(fromHost: string, address: string, port: number): Promise<Socket | { readonly error: DialFailure }> {
    const found = this.find(fromHost, address, port);
    if (typeof found === 'string') return Promise.resolve({ error: found });
    return new Promise((resolve) => {
      const socket = connect(found.realPort, '127.0.0.1');
      const refused = (): void => resolve({ error: 'ECONNREFUSED' });
      socket.once('error', refused);
      socket.once('connect', () => {
        socket.off('error', refused);
        resolve(socket);
      });
    });
  }

  /** The interface that a packet from the host to the address leaves by, undefined without a route. */
  route(fromHost: string, address: string): LabInterface | undefined {
    return this.interfacesOf(fromHost).find(
      (item) => item.up && item.address !== undefined && sameSubnet(item.address, address, item.prefix),
    );
  }

  #owns(host: string, address: string): boolean {
    return this.interfacesOf(host).some((item) => item.address === address);
  }

  #target(fromHost: string, address: string): string | undefined {
    if (isLoopback(address) || this.#owns(fromHost, address)) return fromHost;
    if (this.route(fromHost, address) === undefined) return undefined;
    return this.#hosts.find(({ name }) =>
      this.interfacesOf(name).some((item) => item.up && item.address === address),
    )?.name;
  }
}

export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1' || address === 'localhost';
}

function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || address === '::' || address === '*' || address === '';
}

function sameSubnet(a: string, b: string, prefix: number): boolean {
  const mask = prefix === 0 ? 0 : (0xffffffff << (32 - prefix)) >>> 0;
  const left = numeric(a);
  const right = numeric(b);
  return left !== undefined && right !== undefined && (left & mask) === (right & mask);
}

function numeric(address: string): number | undefined {
  const parts = address.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255)) {
    return undefined;
  }
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}
