import type { Channel } from './channel.ts';
import { type Json, numberOf, textOf } from './json.ts';
import { PythonError, type Site } from './python-error.ts';

export type Peer = {
  readonly rank: number;
  readonly address: string;
  readonly port: number;
  readonly channel: Channel;
};

type Waiting = {
  readonly need: number;
  readonly values: number[];
  resolve(value: number): void;
  reject(error: Error): void;
};

/**
 * The ranks of one model, over their real mesh connections. Barriers go through rank 0; a step of decoding asks
 * every other rank. A lost peer ends barriers with Gloo's words, and leaves steps unanswered, as NCCL does.
 */
export class Group {
  readonly rank: number;
  readonly size: number;
  /** Called on ranks ≥ 1 when the head asks the schedulers to leave their loops. */
  onShutdown: () => void = () => {};
  onLost: (peer: Peer) => void = () => {};
  /** Awaited on ranks ≥ 1 before a step that the head asks for. */
  beforeStep: () => Promise<void> = () => Promise.resolve();
  readonly #peers: readonly Peer[];
  readonly #barriers = new Map<string, Waiting>();
  readonly #early = new Map<string, number[]>();
  readonly #steps = new Map<number, { left: number; resolve(): void }>();
  readonly #lost = new Set<number>();
  #stepping = 0;

  constructor(rank: number, size: number, peers: readonly Peer[]) {
    this.rank = rank;
    this.size = size;
    this.#peers = peers;
    for (const peer of peers) {
      peer.channel.listen((message) => this.#take(peer, message));
      peer.channel.closed.then(
        () => this.#lose(peer),
        () => this.#lose(peer),
      );
    }
  }

  /** Waits for every rank to come to the same point; resolves to the least of their values. */
  async least(name: string, value: number, site: Site = 'barrier'): Promise<number> {
    if (this.size === 1) return value;
    const gone = this.#peers.find((peer) => this.#lost.has(peer.rank));
    if (gone !== undefined) throw closedByPeer(gone, site);
    if (this.rank === 0) {
      const all = await this.#wait(name, this.size - 1, site);
      const least = Math.min(value, all);
      for (const peer of this.#peers) peer.channel.send({ kind: 'release', name, value: least });
      return least;
    }
    for (const peer of this.#peers) if (peer.rank === 0) peer.channel.send({ kind: 'arrive', name, value });
    return this.#wait(name, 1, site);
  }

  /** One forward step of all ranks. Never resolves once a peer is gone. */
  step(): Promise<void> {
    if (this.size === 1) return Promise.resolve();
    if (this.#lost.size > 0) return new Promise(() => {});
    this.#stepping += 1;
    const step = this.#stepping;
    return new Promise((resolve) => {
      this.#steps.set(step, { left: this.size - 1, resolve });
      for (const peer of this.#peers) peer.channel.send({ kind: 'step', step });
    });
  }

  shutdown(): void {
    for (const peer of this.#peers) peer.channel.send({ kind: 'shutdown' });
  }

  #wait(name: string, need: number, site: Site): Promise<number> {
    return new Promise((resolve, reject) => {
      const values = this.#early.get(name) ?? [];
      this.#early.delete(name);
      if (values.length >= need) resolve(Math.min(...values));
      else
        this.#barriers.set(`${name}`, {
          need,
          values: [...values],
          resolve,
          reject: (error) =>
            reject(error instanceof PythonError ? new PythonError(site, error.type, error.message) : error),
        });
    });
  }

  #take(peer: Peer, message: Json): void {
    const kind = message.kind;
    if (kind === 'step')
      void this.beforeStep().then(() => peer.channel.send({ kind: 'stepped', step: message.step }));
    else if (kind === 'stepped') this.#stepped(numberOf(message.step) ?? 0);
    else if (kind === 'shutdown') this.onShutdown();
    else if (kind === 'arrive' || kind === 'release')
      this.#arrived(textOf(message.name) ?? '', numberOf(message.value) ?? 0);
  }

  #arrived(name: string, value: number): void {
    const waiting = this.#barriers.get(name);
    if (waiting === undefined) {
      this.#early.set(name, [...(this.#early.get(name) ?? []), value]);
      return;
    }
    waiting.values.push(value);
    if (waiting.values.length < waiting.need) return;
    this.#barriers.delete(name);
    waiting.resolve(Math.min(...waiting.values));
  }

  #stepped(step: number): void {
    const waiting = this.#steps.get(step);
    if (waiting === undefined) return;
    waiting.left -= 1;
    if (waiting.left > 0) return;
    this.#steps.delete(step);
    waiting.resolve();
  }

  #lose(peer: Peer): void {
    this.#lost.add(peer.rank);
    for (const waiting of this.#barriers.values()) waiting.reject(closedByPeer(peer, 'barrier'));
    this.#barriers.clear();
    this.onLost(peer);
  }
}

function closedByPeer(peer: Peer, site: Site): PythonError {
  return new PythonError(
    site,
    'RuntimeError',
    `[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [${peer.address}]:${peer.port}`,
  );
}
