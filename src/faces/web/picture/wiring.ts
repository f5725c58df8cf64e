import type { ClusterInfo } from '../../../domain/cluster.ts';
import { type NodeFacts, valueIf } from '../../../domain/facts.ts';
import type { RunState } from '../../../domain/run-state.ts';

/** The fabric between a node and the next one. */
export type Link = {
  readonly state: 'up' | 'slow' | 'down' | 'unknown';
  /** Beside the line: "200G". */
  readonly words: string;
  readonly text: string;
};

/** One node in the wiring, in the order of the recipe. */
export type Seat = {
  readonly name: string;
  readonly role: 'head' | 'worker';
  readonly box: string;
  readonly what: string;
  readonly address: string;
  /** How SSH gets there; undefined before any look. */
  readonly ssh: 'direct' | 'through' | 'lost' | undefined;
  readonly sshText: string;
  readonly link: Link;
  readonly sentence: string;
};

type Host = ClusterInfo['nodes'][number];

/** The nodes as they are wired: who is the head, who is reached through whom, how fast the fabric is. */
export function wiring(
  hosts: readonly Host[],
  state: RunState,
  facts: readonly NodeFacts[],
): readonly Seat[] {
  const names = state.nodes.length > 0 ? state.nodes : hosts.map((host) => host.name);
  const ranks = state.plan?.ranks ?? names;
  const ordered = [...names].sort((a, b) => place(ranks, a) - place(ranks, b));
  return ordered.map((name, index) => {
    const host = hosts.find((one) => one.name === name);
    const seen = facts.find((one) => one.node === name);
    const role = index === 0 ? 'head' : 'worker';
    const mine = ranks.flatMap((node, rank) => (node === name ? [rank] : []));
    const through = host?.jump;
    const what = [
      role,
      mine.length > 0 ? `rank ${mine.join(', ')}` : '',
      through === undefined ? '' : `via ${through}`,
    ];
    const ssh = seen === undefined ? undefined : seen.reached ? (through ? 'through' : 'direct') : 'lost';
    const next = ordered[index + 1];
    const link = linkOf(seen, next === undefined ? undefined : facts.find((one) => one.node === next), next);
    return {
      name,
      role,
      box: ordered.length > 2 && role === 'worker' ? `rank ${mine[0] ?? index}` : role,
      what: what.filter((part) => part !== '').join(' · '),
      address: host?.fabric ?? host?.ssh ?? '',
      ssh,
      sshText:
        seen?.reached === false
          ? seen.failure.sentence
          : through
            ? `reached through ${through}`
            : 'reached directly',
      link,
      sentence: `${name} is ${role === 'head' ? 'the head' : 'a worker'}, reached ${through ? `through ${through}` : 'directly'}. ${next === undefined ? '' : link.text}`,
    };
  });
}

function place(ranks: readonly string[], name: string): number {
  const at = ranks.indexOf(name);
  return at === -1 ? ranks.length : at;
}

function linkOf(from: NodeFacts | undefined, to: NodeFacts | undefined, next: string | undefined): Link {
  const unknown: Link = { state: 'unknown', words: '?', text: 'The fabric is unknown.' };
  if (!from?.reached || !to?.reached || next === undefined) return unknown;
  const all = valueIf(from.interfaces)?.filter((one) => one.reaches.includes(next)) ?? [];
  const used = all[0];
  if (used === undefined) return unknown;
  const mbps = valueIf(used.speedMbps);
  const rdma = valueIf(from.rdma) ?? [];
  const active = rdma.filter((device) => device.active).length;
  const words = mbps === undefined ? '? G' : `${Math.round(mbps / 1000)}G`;
  const roce = rdma.length > 0 ? `, RDMA ${active} of ${rdma.length} up` : '';
  return {
    state: used.up ? 'up' : 'down',
    words: `${words}${rdma.length > 0 ? ` RoCE ${active}/${rdma.length}` : ''}`,
    text: `${used.name}, ${mbps === undefined ? 'speed unknown' : `${mbps / 1000} Gb/s`}, MTU ${used.mtu}${roce}.`,
  };
}
