import { isLoopback, plainAddress } from '../../domain/address.ts';
import type { Evidence } from '../../domain/evidence.ts';
import { fabricAddresses, ownersOf, peerEndedBefore, peerOf, severalNodes } from './scene.ts';
import { type Found, type Match, pattern, type Signature } from './signature.ts';

const unreached = pattern(
  'remote=[',
  /(?:connectFullMesh|failed to connect).*?error=?.*?remote=\[(?<address>[0-9a-fA-F.:%\w]+)\]:(?<port>\d+)|connectFullMesh failed with .*?(?:connecting|connect): (?<reason>.*?), remote=\[(?<address2>[0-9a-fA-F.:%\w]+)\]/,
);
const noError = pattern('connectFullMesh failed with', /connectFullMesh failed with \[[^\]]*\] no error/);

/** Gloo offered an address that is not the fabric's, and the others cannot get there. */
export const wrongNetworkAdvertised: Signature = {
  name: 'wrong-network-advertised',
  causes: ['wrong-network-address-advertised', 'firewall-blocks-ports'],
  seenOn: 'SGLang 0.4.2 with torch 2.5, January 2025; torch 2.11.0, November 2026',
  source: 'gloo transport/tcp/pair.cc; sgl-project/sglang issues',
  patterns: [unreached, noError],
  match({ evidence, find }) {
    if (!severalNodes(evidence)) return undefined;
    const tried = find(unreached).filter((found) => !isLoopback(addressOf(found)));
    const first = tried[0];
    if (first !== undefined) {
      return peerEndedBefore(evidence, first) ? undefined : told(evidence, tried, first);
    }
    const silent = find(noError);
    return silent[0] === undefined ? undefined : withoutReason(silent);
  },
};

function addressOf(found: Found): string {
  return plainAddress(found.groups['address'] ?? found.groups['address2'] ?? '');
}

function told(evidence: Evidence, tried: readonly Found[], first: Found): Match | undefined {
  const address = addressOf(first);
  const owner = ownersOf(evidence, address).find((node) => node !== first.node);
  const node = owner ?? peerOf(evidence, first.node);
  const fabric = node === undefined ? [] : fabricAddresses(evidence, node);
  const values = { address };
  const shown = [first, ...tried.slice(-1).filter((found) => found !== first)];
  if (fabric.includes(address)) {
    if (!/timed out|no route|unreachable/i.test(first.message.replace('timed out connecting', ''))) {
      return undefined; // refused at the right address: the peer was not there
    }
    return {
      cause: 'firewall-blocks-ports',
      node,
      shown,
      title: `${first.node} gets no answer from ${node} at ${address}`,
      why: 'The address is the right one on the fabric; packets to the ports that Gloo chose are dropped on the way.',
      advice: [
        `On ${node}: sudo ufw status; sudo nft list ruleset`,
        `On ${first.node}: ping -c 3 ${address}`,
      ],
      values,
      confidence: 0.55,
      specificity: 2,
    };
  }
  return {
    cause: 'wrong-network-address-advertised',
    node,
    shown,
    title: `${node ?? 'A node'} told the others to reach it at ${address}, which ${first.node} does not reach`,
    why:
      fabric.length > 0
        ? `The nodes reach each other at ${fabric.join(' or ')}; the engine picked an address of another network.`
        : 'The engine picked an address of a network that the nodes do not share.',
    advice: [
      "Set network: auto in the recipe, so that each rank offers its own node's fabric address.",
      `See which networks ${node ?? 'the node'} has with: ip -br addr`,
    ],
    values,
    confidence: fabric.length > 0 ? 0.9 : 0.7,
    specificity: 3,
  };
}

function withoutReason(shown: readonly Found[]): Match {
  return {
    cause: 'wrong-network-address-advertised',
    node: undefined,
    shown: shown.slice(0, 2),
    title: 'The nodes offered each other addresses that they do not reach',
    why: 'Gloo could not connect its ranks and gives no reason, as it does when a node has several networks and the wrong one was chosen.',
    advice: [
      "Set network: auto in the recipe, so that each rank offers its own node's fabric address.",
      'See which networks a node has with: ip -br addr',
    ],
    confidence: 0.55,
    specificity: 2,
  };
}
