import { isLoopback, plainAddress } from '../../domain/address.ts';
import type { Evidence } from '../../domain/evidence.ts';
import { fabricAddresses, headOf, ownersOf, peerEndedBefore, severalNodes } from './scene.ts';
import { type Found, type Match, pattern, type Signature } from './signature.ts';

const retrying = pattern(
  'TCP client failed to connect/validate to host',
  /TCP client failed to connect\/validate to host \[?(?<address>[\w.:%-]+?)\]?:(?<port>\d+) - retrying \(.*?\): (?<reason>.+)$/,
);
const timedOut = pattern(
  'while trying to connect to (',
  /client socket has timed out after (?<milliseconds>\d+) ?ms while trying to connect to \((?<address>[\w.:%-]+), (?<port>\d+)\)/,
);
const initMethod = pattern(
  'distributed_init_method=tcp://',
  /^world_size=(?<world>\d+) rank=(?<rank>\d+) .*distributed_init_method=tcp:\/\/\[?(?<address>[\w.:%-]+?)\]?:(?<port>\d+) /,
);

/** The store of the head is dialled at an address where it is not: loopback, another network, or behind a firewall. */
export const rendezvousUnreached: Signature = {
  name: 'rendezvous-unreached',
  causes: ['loopback-address-advertised', 'wrong-network-address-advertised', 'firewall-blocks-ports'],
  seenOn: 'vLLM 0.23 with torch 2.10, June 2026',
  source: 'TCPStore.cpp and socket.cpp of torch; vLLM parallel_state.py',
  patterns: [retrying, timedOut, initMethod],
  match({ evidence, find, stalled }) {
    if (!severalNodes(evidence)) return undefined;
    const dialled = [...find(timedOut), ...find(retrying)].filter((found) => found.role === 'worker');
    const first = dialled[0];
    const loop = find(initMethod).find(
      (found) => isLoopback(found.groups['address'] ?? '') && found.groups['world'] !== '1',
    );
    if (loop) return loopback(evidence, [loop, ...dialled.slice(0, 2)]);
    if (first === undefined) return undefined;
    if (isLoopback(first.groups['address'] ?? '')) return loopback(evidence, dialled.slice(0, 3));
    const over = find(timedOut)[0] ?? (stalled === 'rendezvous' || stalled === 'start' ? first : undefined);
    return over === undefined || peerEndedBefore(evidence, over)
      ? undefined
      : elsewhere(evidence, over, first);
  },
};

function loopback(evidence: Evidence, shown: readonly Found[]): Match {
  const address = shown[0]?.groups['address'] ?? '127.0.0.1';
  return {
    cause: 'loopback-address-advertised',
    node: undefined,
    shown,
    title: `The ranks were told to meet at ${address}, where each node finds only itself`,
    why: `The address of the head was given as loopback, so the other ranks dial themselves instead of ${headOf(evidence) ?? 'the head'}.`,
    advice: [
      'Give the head by an address that the other nodes reach: fabric: in the cluster file, or network: auto in the recipe.',
    ],
    values: { address },
    confidence: 0.9,
    specificity: 3,
  };
}

function elsewhere(evidence: Evidence, over: Found, first: Found): Match | undefined {
  const address = plainAddress(over.groups['address'] ?? '');
  const port = over.groups['port'] ?? '';
  const head = headOf(evidence);
  if (head === undefined) return undefined;
  const owners = ownersOf(evidence, address);
  const fabric = fabricAddresses(evidence, head);
  const reason = (over.groups['reason'] ?? first.groups['reason'] ?? '').toLowerCase();
  const shown = over === first ? [first] : [over, first];
  const values = { address, port };
  const blocked = /timed out|no route|unreachable/.test(reason);
  if (fabric.includes(address)) {
    if (!blocked) return undefined; // refused or reset at the right address: the head is not there, ask why
    return {
      cause: 'firewall-blocks-ports',
      node: head,
      shown,
      title: `${over.node} gets no answer from ${head} at ${address} port ${port}`,
      why: `The address is ${head}'s own on the fabric, and yet nothing comes back: packets to that port are dropped on the way.`,
      advice: [
        `On ${over.node}: nc -vz ${address} ${port}`,
        `On ${head}: sudo ufw status; sudo nft list ruleset`,
      ],
      values,
      confidence: 0.6,
      specificity: 2,
    };
  }
  const known = fabric.length > 0;
  return {
    cause: 'wrong-network-address-advertised',
    node: head,
    shown,
    title: `${head} was to be met at ${address}, which ${over.node} does not reach`,
    why: known
      ? `The nodes reach ${head} at ${fabric.join(' or ')}; ${owners.length === 0 ? 'no node holds that address' : 'that address lies on another network'}.`
      : 'The other ranks dialled it until their time was over and got no answer.',
    advice: [
      `Set fabric: of ${head} in the cluster file to the address by which the other nodes reach it, and network: auto in the recipe.`,
      `On ${over.node}: nc -vz ${address} ${port}`,
    ],
    values,
    confidence: known ? 0.85 : blocked ? 0.6 : 0.5,
    specificity: 2,
  };
}
