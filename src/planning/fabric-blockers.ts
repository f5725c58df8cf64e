import type { Node } from '../domain/cluster.ts';
import { type NetworkInterface, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Blocker } from '../domain/plan.ts';
import { list } from '../domain/units.ts';
import { linkAdvice } from '../knowledge/probes/interfaces.ts';
import { type Fabric, fabricOf } from './fabric.ts';
import { reachedOf } from './our-ranks.ts';

/** Fabric addresses that a node does not have or reach, and links without a carrier; one node needs none. */
export function fabricBlockers(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  if (nodes.length < 2) return [];
  return [...strayAddresses(nodes, facts), ...darkLinks(nodes, facts)];
}

function strayAddresses(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  const fabrics = fabricOf(nodes, facts);
  const routesAreKnown = facts.some(
    (one) => one.reached && (valueIf(one.interfaces) ?? []).some((each) => each.reaches.length > 0),
  );
  return nodes.flatMap((node, rank): readonly Blocker[] => {
    const there = reachedOf(facts, node.name);
    const fabric = fabrics[rank];
    if (there === undefined) return [];
    if (fabric === undefined)
      return [
        {
          cause: 'wrong-network-address-advertised',
          node: node.name,
          title: `No network was found that ${node.name} shares with the other nodes.`,
          advice: ['Name the address on it as fabric in the cluster file, for each node.'],
          userError: false,
        },
      ];
    if (!there.interfaces.known) return [];
    if (fabric.interfaceName === undefined) {
      const own = there.interfaces.value.flatMap((one) =>
        one.addresses.map(({ address }) => `${address} (${one.name})`),
      );
      return [
        {
          cause: 'wrong-network-address-advertised',
          node: node.name,
          title: `${node.name} has no interface with its fabric address ${fabric.address}.`,
          advice: [`Correct fabric in the cluster file; ${node.name} has ${list(own)}.`],
          userError: false,
        },
      ];
    }
    if (isDown(linkOf(there, fabric))) return [];
    const lost = routesAreKnown
      ? nodes.filter(
          (peer, other) =>
            other !== rank &&
            fabrics[other]?.given === true &&
            !valueIf(there.interfaces)?.some((one) => one.reaches.includes(peer.name)),
        )
      : [];
    return lost.map((peer) => ({
      cause: 'wrong-network-address-advertised',
      node: node.name,
      title: `${node.name} has no way to ${peer.name}'s fabric address.`,
      advice: [`On ${node.name}: ip route get ${fabrics[nodes.indexOf(peer)]?.address ?? ''}`],
      userError: false,
    }));
  });
}

/**
 * Fabric links without a carrier: a route stays where its link has none, and ranks would wait for each other until they
 * give up. Where two nodes both lack it, it is the cable between them, unless somebody has set one end down.
 */
export function darkLinks(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  const fabrics = fabricOf(nodes, facts);
  const ends = nodes.flatMap((node, rank) => {
    const link = linkOf(reachedOf(facts, node.name), fabrics[rank]);
    return link !== undefined && isDown(link) ? [{ node: node.name, link }] : [];
  });
  const why = 'Ranks that are started now would only wait for each other.';
  const common = { cause: 'fabric-link-down', why, userError: false } as const;
  const [first] = ends;
  if (
    first !== undefined &&
    nodes.length === 2 &&
    ends.length === 2 &&
    ends.every(({ link }) => link.setDown !== true)
  )
    return [
      {
        ...common,
        node: undefined,
        title: `The fabric link between ${list(ends.map(({ node, link }) => `${node} (${link.name})`))} is down.`,
        advice: [linkAdvice(first.node, first.link.name)],
      },
    ];
  return ends.map(({ node, link }) => ({
    ...common,
    node,
    title: `The fabric link of ${node} (${link.name}) is down.`,
    advice: [linkAdvice(node, link.name)],
  }));
}

function linkOf(there: ReachedFacts | undefined, fabric: Fabric | undefined): NetworkInterface | undefined {
  return valueIf(there?.interfaces)?.find(({ name }) => name === fabric?.interfaceName);
}

function isDown(link: NetworkInterface | undefined): boolean {
  return link?.up === false;
}
