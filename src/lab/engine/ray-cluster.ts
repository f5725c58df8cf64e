import type { Channel } from './channel.ts';
import { type Json, numberOf, textOf } from './json.ts';

/** One node's Ray as the head's knows it. */
type Node = {
  readonly address: string;
  readonly gpus: number;
  /** What `ray start` had in its environment there: a worker's is made of it. */
  readonly env: unknown;
  readonly channel: Channel;
  used: number;
};

/** A placement group of one driver; it ends with its driver's connection. */
type Group = { readonly driver: Channel; readonly seats: readonly Node[] };

/**
 * What the head's Ray keeps for all: which nodes have joined, and whose GPUs are given away. Every node's Ray, the
 * head's own too, speaks to it over a connection that lasts as long as it lives.
 */
export class RayCluster {
  readonly #nodes: Node[] = [];
  readonly #groups: Group[] = [];

  /** A connection to the head's port, from a node, a driver, or somebody who asks who is there. */
  take(channel: Channel): void {
    channel.listen((message) => this.#hear(channel, message));
    void channel.closed.then(() => this.#gone(channel));
  }

  #hear(channel: Channel, message: Json): void {
    switch (message.op) {
      case 'join':
        this.#nodes.push({
          address: textOf(message.address) ?? '',
          gpus: numberOf(message.gpus) ?? 0,
          env: message.env,
          channel,
          used: 0,
        });
        channel.send({ ok: true });
        return;
      case 'nodes':
        channel.send({ nodes: this.#nodes.map(({ address }) => address) });
        return;
      case 'place':
        this.#place(channel, numberOf(message.gpus) ?? 1);
        return;
      case 'start':
        this.#seatOf(channel, numberOf(message.rank) ?? -1)?.channel.send(message);
        return;
      default:
        // A worker's lines and its end, from its node to the driver.
        for (const { driver, seats } of this.#groups)
          if (seats.some((seat) => seat.channel === channel)) driver.send(message);
    }
  }

  /** Ray packs: as many on one node as it has GPUs for, the driver's own node first. */
  #place(driver: Channel, wanted: number): void {
    const seats = this.#nodes.flatMap((node) => Array.from({ length: node.gpus - node.used }, () => node));
    if (seats.length < wanted) {
      driver.send({ waiting: true });
      return;
    }
    const taken = seats.slice(0, wanted);
    for (const seat of taken) seat.used += 1;
    this.#groups.push({ driver, seats: taken });
    driver.send({ seats: taken.map(({ address, env }) => ({ address, env })) });
  }

  #seatOf(driver: Channel, rank: number): Node | undefined {
    return this.#groups.find((group) => group.driver === driver)?.seats[rank];
  }

  #gone(channel: Channel): void {
    const node = this.#nodes.findIndex((one) => one.channel === channel);
    if (node !== -1) this.#nodes.splice(node, 1);
    const group = this.#groups.findIndex((one) => one.driver === channel);
    for (const seat of this.#groups[group]?.seats ?? []) {
      seat.used -= 1;
      seat.channel.send({ op: 'end' });
    }
    if (group !== -1) this.#groups.splice(group, 1);
    for (const { driver, seats } of this.#groups) {
      const rank = seats.findIndex((seat) => seat.channel === channel);
      if (rank !== -1) driver.send({ op: 'ended', rank });
    }
  }
}
