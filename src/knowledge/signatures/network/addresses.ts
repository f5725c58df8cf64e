import { isLoopback, plainAddress } from '../../../domain/address.ts';
import type { Evidence } from '../../../domain/evidence.ts';
import { valueIf } from '../../../domain/facts.ts';
import { factsOf, headOf, nodesOf } from '../scene.ts';
import { type Found, pattern, type View } from '../signature.ts';

const bootstrap = pattern(
  'Bootstrap',
  /Bootstrap ?: ?Using (?:\[\d{1,20}\])?(?<interface>[^:\s]{1,200}):(?<address>[\da-fA-F:.]{1,200})(?:%\w{1,80})?</,
);
const outOfBand = pattern(
  '; OOB ',
  /; OOB (?<interface>[^:\s]{1,200}):(?<address>[\da-fA-F:.]{1,200})(?:%\w{1,80})?</,
);
const socketNet = pattern(
  'NET/Socket : Using',
  /NET\/Socket ?: Using (?:\[\d{1,20}\])?(?<interface>[^:\s]{1,200}):(?<address>[\da-fA-F:.]{1,200})(?:%\w{1,80})?</,
);
const rayLocal = pattern(
  ['Local node IP: ', 'node IP address'],
  /(?:Local node IP: |(?:[Tt]his node's|node) IP address[^\d]{0,12})(?<address>\d{1,20}\.\d{1,20}\.\d{1,20}\.\d{1,20})/,
);
const hostIp = pattern(
  'HOST_IP',
  /\b(?<name>(?:VLLM_|SGLANG_)?HOST_IP)['"]?\s{0,60}[=:]\s{0,60}['"]?(?<address>[\da-fA-F:.]{1,200}\w)/,
);

/** What a rank prints of the addresses that it uses itself. A signature that asks `addressBook` must list these. */
export const ADDRESS_FORMS = [bootstrap, outOfBand, socketNet, rayLocal, hostIp] as const;

/** NCCL's choice of interface for its first contact, by rank. */
export const BOOTSTRAP = bootstrap;
/** "VLLM_HOST_IP=10.0.0.1" as somebody printed it. */
export const HOST_IP = hostIp;
/** What Ray says its own address is. */
export const RAY_LOCAL = rayLocal;

/**
 * Addresses by node: interfaces that a look saw, and what the ranks printed of themselves. A variable such as
 * VLLM_HOST_IP is what a node was told, not what it has, and counts last.
 */
export function addressBook(view: View): ReadonlyMap<string, string> {
  const book = new Map<string, string>();
  const put = (address: string, node: string) => {
    const plain = plainAddress(address);
    if (!isLoopback(plain) && !book.has(plain)) book.set(plain, node);
  };
  for (const node of nodesOf(view.evidence))
    for (const one of valueIf(factsOf(view.evidence, node)?.interfaces) ?? [])
      for (const held of one.addresses) put(held.address, node);
  for (const form of [bootstrap, outOfBand, socketNet, rayLocal])
    for (const found of view.find(form)) put(found.groups['address'] ?? '', found.node);
  for (const service of view.evidence.services)
    if (service.address !== undefined) put(service.address, service.node);
  return book;
}

/** Addresses that a node has, by `addressBook`. */
export function addressesOf(book: ReadonlyMap<string, string>, node: string): readonly string[] {
  return [...book].flatMap(([address, owner]) => (owner === node ? [address] : []));
}

/** Whether two IPv4 addresses lie in one /24: what can be said without their masks. False for other forms. */
export function sameNetwork(a: string, b: string): boolean {
  const [left, right] = [v4(a), v4(b)];
  return left !== undefined && left === right;
}

/** The first three numbers of an IPv4 address, mapped into IPv6 or not. */
export function v4(address: string): string | undefined {
  return /^(\d+\.\d+\.\d+)\.\d+$/.exec(plainAddress(address))?.[1];
}

/** The default bridges of docker and podman: an address inside a container's own network. */
export function isContainerAddress(address: string): boolean {
  const plain = plainAddress(address);
  return /^172\.17\.\d+\.(?!1$)\d+$|^10\.88\.\d+\.(?!1$)\d+$|^10\.0\.2\.100$/.test(plain);
}

/** The networks that docker compose makes by default: 172.18.0.0/16 and so on, of which hosts use the first few addresses. */
export function isComposeAddress(address: string): boolean {
  return /^172\.(?:1[89]|2\d|3[01])\.0\.(?!1$)\d+$/.test(plainAddress(address));
}

/** Names of interfaces that no other host is behind: bridges and pairs of container engines and of virtual machines. */
export function isVirtualInterface(name: string): boolean {
  return /^(?:docker|br-|veth|virbr|cni|flannel|podman|lxc|lxd|kube|cali|tailscale|wg|zt|tun|tap)/.test(name);
}

/** The node that said it, or the one whose Ray address the message names. */
export function nodeAt(
  book: ReadonlyMap<string, string>,
  evidence: Evidence,
  found: Found,
  address: string | undefined,
): string {
  if (address === undefined) return found.node;
  return book.get(plainAddress(address)) ?? service(evidence, address) ?? found.node;
}

function service(evidence: Evidence, address: string): string | undefined {
  return evidence.services.find((one) => one.address === plainAddress(address))?.node;
}

/** The rank's peers by position: of two nodes the other one, else undefined. */
export function otherThanHead(evidence: Evidence): string | undefined {
  const head = headOf(evidence);
  const others = nodesOf(evidence).filter((node) => node !== head);
  return others.length === 1 ? others[0] : undefined;
}
