import { isLoopback, plainAddress } from '../../../domain/address.ts';
import { list } from '../../../domain/units.ts';
import { fabricAddresses, headOf, nodesOf, ownersOf, peerOf } from '../scene.ts';
import { type Found, type Match, type Pattern, pattern, type View } from '../signature.ts';
import {
  ADDRESS_FORMS,
  addressBook,
  addressesOf,
  BOOTSTRAP,
  isComposeAddress,
  isContainerAddress,
  isVirtualInterface,
  sameNetwork,
} from './addresses.ts';

const firewall = pattern(
  [
    'UFW BLOCK',
    'Status: active',
    'policy DROP',
    'policy REJECT',
    'DROP ',
    'REJECT ',
    '-j DROP',
    '-j REJECT',
    'ufw',
    'firewalld',
    'iptables',
    'nft',
    'FINAL_REJECT',
    'admin-prohibited',
    'administratively prohibited',
    'Packet filtered',
    'filtered',
  ],
  /\[UFW BLOCK\]|FINAL_REJECT|ufw.{0,400}Status: active|^Status: active|firewalld.{0,400}(?:running|active|REJECT)|(?:iptables|nft)\b.{0,400}(?:DROP|REJECT|drop|reject|blocked)|(?:policy|-j) (?:DROP|REJECT)|^(?:DROP|REJECT)\s{1,60}(?:all|tcp|udp|6)\b|admin(?:istratively)?[- ]prohibited|Packet filtered|\/tcp +filtered/,
);
const storePort = pattern(
  'distributed_init_method=tcp://',
  /^world_size=(?<world>\d{1,20}) rank=(?<rank>\d{1,20}) .{0,400}distributed_init_method=tcp:\/\/\[?(?<address>[\w.:%-]{1,200}?)\]?:(?<port>\d{1,20}) /,
);
const joined = pattern(
  ['clients joined', 'is assigned as DP rank', 'ncclCommInitRank', 'Init START'],
  /(?<there>\d{1,20})\/(?<all>\d{1,20}) clients joined|is assigned as DP rank|ncclCommInitRank\w{0,80} comm .{0,400} (?:rank|nranks)/,
);
const probe = pattern(
  ['nc: ', ' port ', 'packets transmitted', 'bytes from', 'succeeded!'],
  /^nc: connect to (?<ncAddress>\S{1,300}) port (?<ncPort>\d{1,20}).{0,400}(?:timed out|refused|No route)|Connection to \S{1,300} (?<open>\d{1,20}) port.{0,400}succeeded|\d{1,20} packets transmitted, [1-9]\d{0,20} (?:packets )?received|\d{1,20} bytes from (?<ping>[\d.:a-f]{1,200})/,
);
const ifname = pattern(
  ['SOCKET_IFNAME'],
  /(?<variable>(?:NCCL|GLOO|TP)_SOCKET_IFNAME)(?:=| set by environment to | set to )['"]?(?<name>[^\s'",;]{1,200})/,
);

/** What helps to tell why an address is not reached. A signature that asks `whyUnreached` lists these. */
export const UNREACHED_FORMS: readonly Pattern[] = [
  firewall,
  storePort,
  joined,
  probe,
  ifname,
  ...ADDRESS_FORMS,
];
/** The address of the head's store by each rank's own word. */
export const INIT_METHOD = storePort;
/** A variable that names an interface, as NCCL or somebody printed it. */
export const IFNAME = ifname;

/** A connection that did not come about. */
export type Dial = {
  /** The rank that dialled. */
  readonly found: Found;
  readonly address: string;
  readonly port: string;
  /** In the system's words; empty where none are given. */
  readonly reason: string;
  /** Whether it was the first contact with the store, or one of the connections that the ranks make once they have met. */
  readonly phase: 'store' | 'later';
  readonly shown: readonly Found[];
};

/** Why the address was not reached: a bridge of containers, a packet filter, another network; undefined where it cannot be told. */
export function whyUnreached(view: View, dial: Dial): Match | undefined {
  const { evidence } = view;
  const { found, phase } = dial;
  const address = plainAddress(dial.address);
  const values = { address, ...(dial.port === '' ? {} : { port: dial.port }) };
  if (isLoopback(address)) return undefined;
  const book = addressBook(view);
  const owner =
    ownersOf(evidence, address).find((node) => node !== found.node) ??
    book.get(address) ??
    (phase === 'store' ? headOf(evidence) : peerOf(evidence, found.node));
  const node = owner === found.node ? peerOf(evidence, found.node) : owner;
  const fabric = node === undefined ? [] : fabricAddresses(evidence, node);
  const reason = dial.reason.toLowerCase();
  const dropped = /timed? ?out|no route|unreachable|prohibited/.test(reason) || reason === '';
  if (isContainerAddress(address) || isComposeAddress(address)) return isolated(view, dial, node, values);
  const wall = view.find(firewall)[0];
  if (wall !== undefined && dropped) return blocked(view, dial, node, values, [wall], 0.92);
  if (fabric.includes(address))
    return dropped ? blocked(view, dial, node, values, [], reason === '' ? 0.5 : 0.7) : undefined;
  if (fabric.length > 0) return elsewhere(view, dial, node, values, fabric, 0.9);
  const tried = view.find(probe);
  const pinged = tried.find(
    (one) => one.groups['ping'] !== undefined && plainAddress(one.groups['ping']) === address,
  );
  const closed = tried.find((one) => one.groups['ncAddress'] === address);
  if (dropped && (pinged !== undefined || closed !== undefined))
    return blocked(
      view,
      dial,
      node,
      values,
      [pinged, closed].filter((one) => one !== undefined),
      0.8,
    );
  const given = strayInterface(view);
  if (given !== undefined) return given;
  const own = addressesOf(book, found.node);
  const near = own.some((one) => sameNetwork(one, address));
  const store = view.find(storePort).some((one) => plainAddress(one.groups['address'] ?? '') === address);
  if (dropped && phase === 'later' && store) return blocked(view, dial, node, values, [], 0.72);
  if (dropped && near)
    return blocked(view, dial, node, values, [], reason.includes('no route') ? 0.72 : 0.66);
  if (!dropped && near) return undefined;
  return elsewhere(
    view,
    dial,
    node,
    values,
    own,
    own.length > 0 ? 0.78 : phase === 'later' ? 0.7 : dropped ? 0.62 : 0.5,
  );
}

/** Interfaces were named by a variable, and NCCL's first contact lies on two networks. */
function strayInterface(view: View): Match | undefined {
  const nodes = nodesOf(view.evidence);
  const named = view.find(ifname);
  const used = nodes.flatMap((node) => view.find(BOOTSTRAP).find((found) => found.node === node) ?? []);
  const [a, b] = used;
  if (named[0] === undefined || a === undefined || b === undefined) return undefined;
  if (sameNetwork(a.groups['address'] ?? '', b.groups['address'] ?? '')) return undefined;
  const odd = used.find((found) => isVirtualInterface(found.groups['interface'] ?? ''));
  return {
    cause: 'wrong-socket-interface',
    node: odd?.node,
    ...(odd === undefined ? { atFault: 'both' } : {}),
    shown: [a, b, named[0]],
    title: `NCCL takes ${a.groups['interface']} on ${a.node} and ${b.groups['interface']} on ${b.node}, which are not on one network`,
    why: `${a.groups['address']} and ${b.groups['address']} do not reach each other; the interface was named by ${named[0].groups['variable']}.`,
    advice: [
      "Set network: auto in the recipe, so that each rank gets the name of its own node's interface.",
      'On each node: ip -br addr; "Bootstrap: Using" of all ranks must lie in one network.',
    ],
    values: { interface: named[0].groups['name'] ?? '' },
    confidence: 0.85,
    specificity: 3,
  };
}

function isolated(view: View, dial: Dial, node: string | undefined, values: Match['values']): Match {
  const address = plainAddress(dial.address);
  const own = addressesOf(addressBook(view), dial.found.node).some(isContainerAddress);
  return {
    cause: 'container-network-isolated',
    node: own ? undefined : node,
    ...(own || node === undefined ? { atFault: 'both' } : {}),
    shown: dial.shown,
    title: `${node ?? 'The container'} is in a network of its own: it offers ${address}, which only its own host knows`,
    why: `That is an address of a container engine's bridge; ${dial.found.node} has no way to it, and the ports between the ranks are not published.`,
    advice: [
      'Start the containers with --network host on every node; firstlight up does so.',
      `"Bootstrap: Using" or the Ray address in each log must then be the node's own fabric address.`,
    ],
    ...(values === undefined ? {} : { values }),
    confidence: 0.88,
    specificity: 3,
  };
}

function blocked(
  view: View,
  dial: Dial,
  node: string | undefined,
  values: Match['values'],
  proof: readonly Found[],
  confidence: number,
): Match {
  const address = plainAddress(dial.address);
  return {
    cause: 'firewall-blocks-ports',
    node: undefined,
    atFault: 'network',
    shown: [...proof.slice(0, 2), ...dial.shown].slice(0, 4),
    title: `${dial.found.node} gets no answer from ${node ?? 'the other node'} at ${address}${dial.port === '' ? '' : ` port ${dial.port}`}`,
    why:
      dial.phase === 'later'
        ? 'The nodes meet at the store, and then the ports that NCCL and Gloo choose at random get no answer: packets to them are dropped on the way.'
        : 'The address lies on the network that the nodes share, and yet nothing comes back: packets to that port are dropped on the way.',
    advice: [
      `On ${dial.found.node}: nc -vz ${address} ${dial.port === '' ? 'PORT' : dial.port}`,
      `On ${node ?? 'each node'}: sudo ufw status; sudo nft list ruleset; then allow all between the nodes: sudo ufw allow from ${peerNetwork(view, dial)}`,
    ],
    ...(values === undefined ? {} : { values }),
    confidence,
    specificity: proof.length > 0 ? 3 : 2,
    alternatives: [{ cause: 'wrong-network-address-advertised', confidence: 1 - confidence }],
  };
}

/** Ranks that wait for each other while a packet filter speaks in a log; undefined without its word. */
export function walledOff(view: View, waits: Found): Match | undefined {
  const wall = view.find(firewall)[0];
  const store = view.find(storePort).find((found) => found.role === 'worker') ?? view.find(storePort)[0];
  if (wall === undefined) return undefined;
  const dial: Dial = {
    found: waits,
    address: store?.groups['address'] ?? '',
    port: /DPT=(\d+)/.exec(wall.message)?.[1] ?? store?.groups['port'] ?? '',
    reason: '',
    phase: 'store',
    shown: [waits],
  };
  return blocked(view, dial, wall.node, {}, [wall], 0.8);
}

function peerNetwork(view: View, dial: Dial): string {
  return (
    addressesOf(addressBook(view), dial.found.node).find((one) => sameNetwork(one, dial.address)) ??
    'THE-FABRIC-NETWORK'
  );
}

function elsewhere(
  view: View,
  dial: Dial,
  node: string | undefined,
  values: Match['values'],
  known: readonly string[],
  confidence: number,
): Match {
  const address = plainAddress(dial.address);
  return {
    cause: 'wrong-network-address-advertised',
    node,
    // The store's address is one argument to all ranks; what Gloo and NCCL offer, a node chose by itself.
    ...(dial.phase === 'store' ? { atFault: 'launcher' as const } : {}),
    shown: dial.shown,
    title: `${node ?? 'A node'} was to be met at ${address}, which ${dial.found.node} does not reach`,
    why:
      known.length > 0
        ? `${ownersOf(view.evidence, address).length > 0 ? 'That address lies on another network' : 'It is not on a network that the nodes share'}; they know each other by ${list(known)}.`
        : 'The other ranks dialled it until their time was over and got no answer.',
    advice: [
      `Set fabric: of ${node ?? 'the node'} in the cluster file to the address by which the other nodes reach it, and network: auto in the recipe.`,
      `On ${dial.found.node}: nc -vz ${address}${dial.port === '' ? '' : ` ${dial.port}`}; ip route get ${address}`,
    ],
    ...(values === undefined ? {} : { values }),
    confidence,
    specificity: confidence >= 0.75 || dial.phase === 'later' ? 3 : 2,
    alternatives: [{ cause: 'firewall-blocks-ports', confidence: Math.max(0.05, 0.9 - confidence) }],
  };
}
