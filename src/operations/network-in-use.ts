import type { Evidence, RankEvidence } from '../domain/evidence.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import { list } from '../domain/units.ts';

export type NetworkInUse = {
  readonly kind: 'rdma' | 'sockets' | 'unknown';
  readonly text: string;
  readonly warning: string | undefined;
};

/**
 * NCCL's own words of its network, for each communicator, "Using network IB" or a plugin's name; the same from 2.21
 * to 2.32. "NET/IB : Using" counts for less: from 2.27 on it is printed before the fall back to sockets too, as
 * "NET/IB : Using [RO]; OOB …", with no device in it.
 */
const CHOSEN = /\bUsing network (?<name>\S.*?)\s*$/;
const DEVICES = /\bNET\/(?<name>IB|Socket) : Using ?\[\d+\]|\bvia NET\/(?<via>IB|Socket)\//;

/** Why NCCL passed the RDMA devices by, as its log says it; first match wins. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/\bNCCL_IB_DISABLE set by environment to 1\b/, 'NCCL_IB_DISABLE=1 in the environment forbids RDMA'],
  [/\bFailed to open libibverbs/, 'the image lacks libibverbs'],
  [
    /\bNET\/IB : No device found/,
    'NCCL sees no device: see that a container gets --device /dev/infiniband, and that NCCL_IB_HCA names devices of that node',
  ],
];

/**
 * Which network the ranks use, from what NCCL wrote into their logs (NCCL_DEBUG=INFO). One rank on sockets is enough
 * to slow all. Sockets on a pair that has RDMA cost most of the link: a warning, with the reason where NCCL says it.
 */
export function networkInUse(evidence: Evidence, facts: readonly NodeFacts[]): NetworkInUse {
  const ranks = evidence.ranks.toSorted((a, b) => a.rank - b.rank);
  if (ranks.length < 2)
    return { kind: 'unknown', text: 'one node: no network between ranks', warning: undefined };
  const used = ranks.map((rank) => ({ rank, names: namesIn(rank) }));
  const onSockets = used.filter(({ names }) => names.some(isSockets)).map(({ rank }) => rank);
  if (onSockets.length > 0) {
    const where = onSockets.length === ranks.length ? '' : ` on ${list(onSockets.map(({ node }) => node))}`;
    return {
      kind: 'sockets',
      text: `TCP sockets${where}`,
      warning: sentencesOf([
        haveRdma(ranks, facts)
          ? `The ranks talk over TCP sockets${where} although every node has active RDMA devices: expect a fraction of the link. ${reason(onSockets)}`
          : undefined,
        ...onSockets.map((rank) => besideTheFabric(rank, evidence)),
      ]),
    };
  }
  const names = [...new Set(used.flatMap((one) => one.names))];
  const other = names.filter((name) => !/^IB/.test(name));
  if (names.length === 0)
    return {
      kind: 'unknown',
      text: 'unknown: the engine’s log does not say (NCCL_DEBUG=INFO in env tells)',
      warning: undefined,
    };
  if (other.length > 0)
    return { kind: 'unknown', text: `${list(other)}, by a plugin of NCCL`, warning: undefined };
  return { kind: 'rdma', text: rdmaText(ranks), warning: undefined };
}

/** Networks a rank's communicators use; by the devices only where no line names the network. */
function namesIn({ lines }: RankEvidence): readonly string[] {
  const chosen = lines.flatMap(({ text }) => CHOSEN.exec(text)?.groups?.['name'] ?? []);
  if (chosen.length > 0) return [...new Set(chosen)];
  const seen = lines.flatMap(({ text }) => {
    const groups = DEVICES.exec(text)?.groups;
    return groups?.['name'] ?? groups?.['via'] ?? [];
  });
  return [...new Set(seen)];
}

/** An interface of NCCL's sockets as its log lists them: "[0]enp1s0f0np0:192.168.200.12<0>". */
const SOCKET = /\[\d+\](?<name>[^\s:]+):(?<address>[^\s<]+)<\d+>/g;

/** A rank on sockets whose interfaces are others than the one that it was planned for. */
function besideTheFabric({ rank, node, lines }: RankEvidence, { services }: Evidence): string | undefined {
  const planned = services.find((service) => service.rank === rank)?.address;
  const listed = lines.filter(({ text }) => text.includes('NET/Socket : Using'));
  const used = listed.flatMap(({ text }) =>
    [...text.matchAll(SOCKET)].map(({ groups }) => ({
      name: groups?.['name'] ?? '',
      address: groups?.['address'] ?? '',
    })),
  );
  if (planned === undefined || used.length === 0) return undefined;
  if (used.some(({ address }) => address === planned)) return undefined;
  const over = list([...new Set(used.map(({ name, address }) => `${name} (${address})`))]);
  return `On ${node} NCCL talks over ${over}, not over ${planned}, the address between the nodes: network: auto chooses the interface that has it, as does NCCL_SOCKET_IFNAME.`;
}

function sentencesOf(parts: readonly (string | undefined)[]): string | undefined {
  const said = parts.filter((part) => part !== undefined);
  return said.length === 0 ? undefined : said.join(' ');
}

function isSockets(name: string): boolean {
  return /^Socket/.test(name);
}

/** Known for certain only: a node whose devices were not seen counts as having none. */
function haveRdma(ranks: readonly RankEvidence[], facts: readonly NodeFacts[]): boolean {
  return ranks.every(({ node }) => {
    const there = facts.find((one) => one.node === node);
    return there?.reached === true && (valueIf(there.rdma) ?? []).some((device) => device.active);
  });
}

function reason(ranks: readonly RankEvidence[]): string {
  const said = ranks.flatMap(({ node, lines }) => {
    const found = REASONS.find(([pattern]) => lines.some(({ text }) => pattern.test(text)));
    return found === undefined ? [] : [{ node, text: found[1] }];
  });
  const [first] = said;
  if (first === undefined)
    return 'See that a container gets --device /dev/infiniband, and that no variable forbids RDMA.';
  const nodes = said.filter(({ text }) => text === first.text).map(({ node }) => node);
  return `On ${list(nodes)} ${first.text}.`;
}

/** The kind of link is in the list of devices: "[0]rocep1s0f1:1/RoCE". */
function rdmaText(ranks: readonly RankEvidence[]): string {
  const devices = ranks.flatMap(({ lines }) => lines.filter(({ text }) => text.includes('NET/IB : Using')));
  if (devices.some(({ text }) => /:\d+\/RoCE\b/.test(text))) return 'RoCE (RDMA)';
  if (devices.some(({ text }) => /:\d+\/IB\b/.test(text))) return 'InfiniBand (RDMA)';
  return 'RDMA';
}
