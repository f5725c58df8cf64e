import type { Evidence } from '../domain/evidence.ts';
import { type NetworkInterface, type NodeFacts, valueIf } from '../domain/facts.ts';
import type { Finding } from '../domain/finding.ts';
import type { Service } from '../domain/plan.ts';
import { familyField } from '../knowledge/causes.ts';
import { linkAdvice } from '../knowledge/probes/interfaces.ts';
import { DURING } from './during.ts';

/**
 * The interface over which a rank's peers know it, down after the attempt: whatever the ranks say of silent peers then
 * follows from it. Ranks that ran before this run came may have lost it before its first look. A cable between two
 * nodes takes the carrier of both when it is pulled: then it is the link, and neither node, unless one was set down.
 */
export function linkDown(evidence: Evidence, final: boolean): Finding | undefined {
  const ends = evidence.services.flatMap((service) => downEnd(evidence, service));
  const end = ends.find(({ link }) => link.setDown === true) ?? ends[0];
  if (end === undefined) return undefined;
  const both = ends.length === 2 && end.link.setDown !== true;
  const { node, rank, link, address, wasUp } = end;
  const stage = evidence.ranks.find((one) => one.rank === rank)?.stage;
  const which = both
    ? `The fabric link between ${ends.map((one) => `${one.node} (${one.link.name})`).join(' and ')}`
    : `The fabric link of ${node} (${link.name})`;
  return {
    cause: 'fabric-link-down',
    ...familyField('fabric-link-down'),
    node: both ? undefined : node,
    ...(both ? { atFault: 'network' as const } : {}),
    rank: both ? undefined : rank,
    role: both ? undefined : rank === 0 ? 'head' : 'worker',
    stage,
    final,
    confidence: 0.95,
    title: wasUp
      ? `${which} went down ${stage === undefined ? '' : DURING[stage]}`.trim()
      : `${which} is down`,
    why: `${link.setDown === true ? 'Somebody has set it down. ' : ''}The ranks wait for each other over it, and none says so by itself for many minutes.`,
    quotes: [],
    consequences: evidence.ranks
      .filter(({ ended }) => ended !== undefined && !ended.requested)
      .map((other) => `Rank ${other.rank} on ${other.node} ended.`),
    advice: [linkAdvice(node, link.name)],
    values: { interface: link.name, address },
  };
}

type End = {
  readonly node: string;
  readonly rank: number;
  readonly link: NetworkInterface;
  readonly address: string;
  readonly wasUp: boolean;
};

/** A service's end of the fabric, where that is down now. */
function downEnd(evidence: Evidence, { node, address, rank }: Service): readonly End[] {
  if (address === undefined) return [];
  const before = interfaceWith(evidence.before, node, address);
  const link = interfaceWith(evidence.after, node, address) ?? sameNamed(evidence.after, node, before);
  return link === undefined || link.up ? [] : [{ node, rank, link, address, wasUp: before?.up === true }];
}

function interfacesOf(facts: readonly NodeFacts[], node: string): readonly NetworkInterface[] {
  const seen = facts.find((one) => one.node === node);
  return seen?.reached ? (valueIf(seen.interfaces) ?? []) : [];
}

/** The interface of a node that holds an address, as a look saw it. */
export function interfaceWith(
  facts: readonly NodeFacts[],
  node: string,
  address: string,
): NetworkInterface | undefined {
  return interfacesOf(facts, node).find(({ addresses }) => addresses.some((one) => one.address === address));
}

/** A manager may take the address away with the link. */
function sameNamed(
  facts: readonly NodeFacts[],
  node: string,
  before: NetworkInterface | undefined,
): NetworkInterface | undefined {
  return interfacesOf(facts, node).find(({ name }) => name === before?.name);
}
