import type { Evidence } from '../domain/evidence.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';

export type NetworkInUse = {
  readonly kind: 'rdma' | 'sockets' | 'unknown';
  readonly text: string;
  readonly warning: string | undefined;
};

/**
 * Which network the ranks use, from NCCL's own words (`Using network IB`, `NET/IB : Using`, `NET/Socket : Using`;
 * printed with NCCL_DEBUG=INFO). Sockets on a pair that has RDMA cost most of the link: a warning.
 */
export function networkInUse(evidence: Evidence, facts: readonly NodeFacts[]): NetworkInUse {
  if (evidence.ranks.length < 2)
    return { kind: 'unknown', text: 'one node: no network between ranks', warning: undefined };
  const lines = evidence.ranks.flatMap((rank) => rank.lines);
  const rdma = lines.some((line) => /Using network IB\b|NET\/IB : Using|NET\/IB\/\d+/.test(line.text));
  const sockets = lines.some((line) =>
    /Using network Socket\b|NET\/Socket : Using|NET\/Socket\/\d+/.test(line.text),
  );
  const active = facts.map((node) =>
    node.reached ? (valueIf(node.rdma) ?? []).filter((device) => device.active).length : 0,
  );
  const pairHasRdma = active.length > 1 && active.every((count) => count > 0);
  if (sockets && !rdma) {
    return {
      kind: 'sockets',
      text: 'TCP sockets',
      warning: pairHasRdma
        ? 'The ranks talk over TCP sockets although every node has active RDMA devices: expect a fraction of the link. In a container, see that /dev/infiniband is passed in and memlock is unlimited.'
        : undefined,
    };
  }
  if (rdma) return { kind: 'rdma', text: 'RoCE (RDMA)', warning: undefined };
  return {
    kind: 'unknown',
    text: 'unknown: the engine’s log does not say (NCCL_DEBUG=INFO in env tells)',
    warning: undefined,
  };
}
