import type { Evidence } from '../domain/evidence.ts';
import { type NetworkInterface, type NodeFacts, valueIf } from '../domain/facts.ts';
import type { Finding } from '../domain/finding.ts';
import { familyField } from '../knowledge/causes.ts';
import { linkAdvice } from '../knowledge/probes/interfaces.ts';
import { DURING } from './during.ts';

/**
 * The interface over which a rank's peers know it, down after the attempt: whatever the ranks say of silent peers then
 * follows from it. Ranks that ran before this run came may have lost it before its first look.
 */
export function linkDown(evidence: Evidence, final: boolean): Finding | undefined {
  for (const { node, address, rank } of evidence.services) {
    if (address === undefined) continue;
    const before = interfaceWith(evidence.before, node, address);
    const after = interfaceWith(evidence.after, node, address) ?? sameNamed(evidence.after, node, before);
    if (after === undefined || after.up) continue;
    const seen = evidence.ranks.find((one) => one.rank === rank);
    const stage = seen?.stage;
    return {
      cause: 'fabric-link-down',
      ...familyField('fabric-link-down'),
      node,
      rank,
      role: rank === 0 ? 'head' : 'worker',
      stage,
      final,
      confidence: 0.95,
      title: before?.up
        ? `The fabric link of ${node} (${after.name}) went down ${stage === undefined ? '' : DURING[stage]}`.trim()
        : `The fabric link of ${node} (${after.name}) is down`,
      why: 'The ranks wait for each other over it, and none says so by itself for many minutes.',
      quotes: [],
      consequences: evidence.ranks
        .filter(({ ended }) => ended !== undefined && !ended.requested)
        .map((other) => `Rank ${other.rank} on ${other.node} ended.`),
      advice: [linkAdvice(node, after.name)],
      values: { interface: after.name, address },
    };
  }
  return undefined;
}

function interfacesOf(facts: readonly NodeFacts[], node: string): readonly NetworkInterface[] {
  const seen = facts.find((one) => one.node === node);
  return seen?.reached ? (valueIf(seen.interfaces) ?? []) : [];
}

function interfaceWith(
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
