import { subnetOf } from '../domain/address.ts';
import type { Node } from '../domain/cluster.ts';
import { type NetworkInterface, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import { reachedOf } from './our-ranks.ts';

/** Where a rank of one node is met by the others. */
export type Fabric = {
  readonly address: string;
  /** The interface that holds the address on its own node; undefined when none was seen to. */
  readonly interfaceName: string | undefined;
  readonly given: boolean;
};

/** Bridges and tunnels that never lead to another host's ranks. */
const INNER = /^(?:lo|docker|br-|veth|virbr|cni|flannel|cali|tailscale|wg|tun|tap|podman)/;

/**
 * The fabric address of each node, by rank: the cluster file's, else one found from what the nodes have. Found is
 * the address in a subnet that all nodes share, over RDMA first, then the fastest. Undefined where there is none.
 */
export function fabricOf(
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
): readonly (Fabric | undefined)[] {
  const seen = nodes.map((node) => reachedOf(facts, node.name));
  const best = sharedSubnet(seen);
  return nodes.map((node, rank) => {
    const there = seen[rank];
    const interfaces = valueIf(there?.interfaces) ?? [];
    if (node.fabric !== undefined)
      return { address: node.fabric, interfaceName: holderOf(interfaces, node.fabric), given: true };
    const own = best === undefined || there === undefined ? undefined : inSubnet(there, best);
    return own === undefined ? undefined : { ...own, given: false };
  });
}

/** Each node's fabric address by name, given or found; empty when one of them has none. */
export function fabricAddresses(
  nodes: readonly Node[],
  facts: readonly NodeFacts[],
): ReadonlyMap<string, string> {
  const found = fabricOf(nodes, facts);
  const pairs = nodes.flatMap((node, rank): readonly (readonly [string, string])[] => {
    const fabric = found[rank];
    return fabric === undefined ? [] : [[node.name, fabric.address]];
  });
  return new Map(pairs.length === nodes.length ? pairs : []);
}

/** Names of the active RDMA devices of a node whose interface has an address, sorted. */
export function activeRdma(facts: ReachedFacts): readonly string[] {
  const interfaces = valueIf(facts.interfaces) ?? [];
  return (valueIf(facts.rdma) ?? [])
    .filter((device) => {
      if (!device.active) return false;
      const name = valueIf(device.interfaceName);
      const found = interfaces.find((one) => one.name === name);
      // A port without an address has no RoCE v2 GID to speak of, and NCCL would fail on it.
      return found === undefined || (found.up && found.addresses.length > 0);
    })
    .map((device) => device.device)
    .sort();
}

function holderOf(interfaces: readonly NetworkInterface[], address: string): string | undefined {
  return interfaces.find((one) => one.addresses.some((each) => each.address === address))?.name;
}

type Candidate = {
  readonly subnet: string;
  readonly address: string;
  readonly interfaceName: string;
  readonly weight: number;
};

function candidates(facts: ReachedFacts): readonly Candidate[] {
  const rdma = new Set((valueIf(facts.rdma) ?? []).map((device) => valueIf(device.interfaceName)));
  return (valueIf(facts.interfaces) ?? [])
    .filter((one) => one.up && !INNER.test(one.name))
    .flatMap((one) =>
      one.addresses.flatMap(({ address, prefix }) => {
        const subnet = subnetOf(address, prefix);
        const speed = valueIf(one.speedMbps) ?? 0;
        return subnet === undefined
          ? []
          : [{ subnet, address, interfaceName: one.name, weight: (rdma.has(one.name) ? 1e9 : 0) + speed }];
      }),
    );
}

function sharedSubnet(seen: readonly (ReachedFacts | undefined)[]): string | undefined {
  const all = seen.map((facts) => (facts === undefined ? [] : candidates(facts)));
  const [first = [], ...others] = all;
  return first
    .filter(({ subnet }) => others.every((list) => list.some((one) => one.subnet === subnet)))
    .map(({ subnet }) => ({
      subnet,
      weight: Math.min(
        ...all.map((list) =>
          Math.max(...list.filter((one) => one.subnet === subnet).map((one) => one.weight)),
        ),
      ),
    }))
    .sort((a, b) => b.weight - a.weight || (a.subnet < b.subnet ? -1 : 1))[0]?.subnet;
}

function inSubnet(
  facts: ReachedFacts,
  subnet: string,
): { readonly address: string; readonly interfaceName: string } | undefined {
  const found = candidates(facts)
    .filter((one) => one.subnet === subnet)
    .sort((a, b) => b.weight - a.weight)[0];
  return found === undefined ? undefined : { address: found.address, interfaceName: found.interfaceName };
}
