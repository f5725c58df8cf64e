import { plainAddress } from '../../domain/address.ts';
import type { Evidence } from '../../domain/evidence.ts';
import { type Holder, type NodeFacts, type ReachedFacts, valueIf } from '../../domain/facts.ts';
import type { Found } from './signature.ts';

/** What the look after the failure saw of a node, or undefined. */
export function factsAfter(evidence: Evidence, node: string): ReachedFacts | undefined {
  return reached(evidence.after, node);
}

/** The newest look at a node: after the failure, else before the launch. */
export function factsOf(evidence: Evidence, node: string): ReachedFacts | undefined {
  return reached(evidence.after, node) ?? reached(evidence.before, node);
}

function reached(all: readonly NodeFacts[], node: string): ReachedFacts | undefined {
  const facts = all.find((one) => one.node === node);
  return facts?.reached ? facts : undefined;
}

/** Names of the nodes that take part, by rank, each once. */
export function nodesOf(evidence: Evidence): readonly string[] {
  return [...new Set(evidence.ranks.map((rank) => rank.node))];
}

/** The head's node, or undefined without ranks. */
export function headOf(evidence: Evidence): string | undefined {
  return evidence.ranks.find((rank) => rank.role === 'head')?.node;
}

/** The other nodes. */
export function peersOf(evidence: Evidence, node: string): readonly string[] {
  return nodesOf(evidence).filter((other) => other !== node);
}

/** The one other node of a pair; undefined where there are more, or none. */
export function peerOf(evidence: Evidence, node: string): string | undefined {
  const peers = peersOf(evidence, node);
  return peers.length === 1 ? peers[0] : undefined;
}

/** Nodes with an interface that holds the address, by the newest look. */
export function ownersOf(evidence: Evidence, address: string): readonly string[] {
  return nodesOf(evidence).filter((node) =>
    (valueIf(factsOf(evidence, node)?.interfaces) ?? []).some((one) =>
      one.addresses.some((held) => held.address === plainAddress(address)),
    ),
  );
}

/** Addresses of a node by which the other nodes reach it: the ones its rank was told, and its fabric interfaces'. */
export function fabricAddresses(evidence: Evidence, node: string): readonly string[] {
  const told = evidence.services
    .filter((service) => service.node === node)
    .flatMap((service) => [service.env['VLLM_HOST_IP'], service.env['SGLANG_HOST_IP']]);
  const seen = (valueIf(factsOf(evidence, node)?.interfaces) ?? [])
    .filter((one) => one.reaches.length > 0)
    .flatMap((one) => one.addresses.map((held) => held.address));
  return [...new Set([...told, ...seen])].filter((address) => address !== undefined);
}

/** Whether the ranks stand on more than one node. */
export function severalNodes(evidence: Evidence): boolean {
  return nodesOf(evidence).length > 1;
}

/** Whoever holds memory on the node and is no rank of ours, largest first. Undefined where that was not seen. */
export function foreignHolders(facts: ReachedFacts | undefined): readonly Holder[] | undefined {
  return valueIf(facts?.holders)
    ?.filter((holder) => holder.owner.kind !== 'rank')
    .toSorted((a, b) => b.bytes - a.bytes);
}

/** Whether another rank ended before the line came: then the line may be no more than its echo. */
export function peerEndedBefore(evidence: Evidence, found: Found): boolean {
  return evidence.ranks.some(
    (rank) => rank.rank !== found.rank && rank.ended !== undefined && rank.ended.at < found.line.at,
  );
}

/** The user's env of the recipe is what set one of these variables: then the engine is not to blame. */
export function setByRecipe(evidence: Evidence, names: readonly string[]): readonly string[] {
  return names.filter((name) => name in evidence.recipe.env);
}
