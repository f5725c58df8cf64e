import { isLoopback, plainAddress } from '../../../domain/address.ts';
import { nodesOf, peerEndedBefore, peerOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import {
  addressBook,
  BOOTSTRAP,
  isContainerAddress,
  isVirtualInterface,
  sameNetwork,
  v4,
} from './addresses.ts';
import { IFNAME, UNREACHED_FORMS, whyUnreached } from './unreached.ts';

const unreached = pattern(
  'remote=[',
  /(?:connectFullMesh|failed to connect).{0,400}?error=?.{0,400}?remote=\[(?<address>[0-9a-fA-F.:%\w]{1,200})\]:(?<port>\d{1,20})|connectFullMesh failed with .{0,400}?(?:connecting|connect): (?<reason>.{0,400}?), remote=\[(?<address2>[0-9a-fA-F.:%\w]{1,200})\](?::(?<port2>\d{1,20}))?|timed out connecting: (?<reason2>.{0,400}?), remote=\[(?<address3>[0-9a-fA-F.:%\w]{1,200})\](?::(?<port3>\d{1,20}))?/,
);
const glooTimeout = pattern(
  ['Connect timeout', 'connect [', 'Connection timed out', 'No route to host', 'Network is unreachable'],
  /gloo.{0,400}(?:[Cc]onnect(?:ion)? time(?:out|d out)|connect|No route to host|Network is unreachable) ?\[(?<address>[0-9a-fA-F.:%]{1,200})\]:(?<port>\d{1,20})(?:: (?<reason>.{0,400}))?$/,
);
const nccl = pattern(
  [
    'socketStartConnect',
    'socketPollConnect',
    'ncclSocketConnect',
    'NCCL WARN Connect to',
    'NCCL WARN Call to connect',
  ],
  /(?:socketStartConnect|socketPollConnect|ncclSocketConnect|NCCL WARN)\S{0,300}:? .{0,400}?[Cc]onnect to (?<address>[\da-fA-F.:]{1,200}?)(?:%\w{1,80})?<(?<port>\d{1,20})> (?:failed|returned) ?:? ?(?<reason>[A-Z][A-Za-z ]{1,200})/,
);
const connection = pattern(
  [
    'Watchdog caught',
    'ncclSystemError',
    'ncclRemoteError',
    'ncclInternalError',
    'No available shared memory broadcast',
    'waiting for clients',
    'connectFullMesh failed',
    'remote process exited',
  ],
  /Watchdog caught|nccl(?:System|Remote|Internal)Error|No available shared memory broadcast block|seconds waiting for clients|connectFullMesh failed|remote process exited or there was a network error/,
);
const noError = pattern(
  'connectFullMesh failed with',
  /connectFullMesh failed with \[[^\]]{0,200}\] no error/,
);
const rayUnique = pattern(
  'Every node should have a unique IP',
  /Every node should have a unique IP address\. Got (?<nodes>\d{1,20}) nodes with node ids \[[^\]]{0,200}\] and (?<addresses>\d{1,20}) unique IP addresses (?<set>\{[^}]{0,200}\})/,
);

/** Gloo, NCCL or Ray offered an address that is not the fabric's, and the others cannot get there. */
export const wrongNetworkAdvertised: Signature = {
  name: 'wrong-network-advertised',
  causes: [
    'wrong-network-address-advertised',
    'firewall-blocks-ports',
    'container-network-isolated',
    'wrong-socket-interface',
    'duplicate-host-ip',
  ],
  seenOn:
    'SGLang 0.4.2 with torch 2.5, January 2025; torch 2.11.0, November 2026; NCCL 2.18 to 2.30; vLLM 0.21 over Ray',
  source:
    'gloo transport/tcp/pair.cc; NCCL misc/socket.cc; vLLM v1/executor/ray_utils.py; sgl-project/sglang#3226, vllm-project/vllm#43095',
  looks: [
    'RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: No route to host, remote=[192.168.1.20]:40121',
    'NCCL WARN socketStartConnect: Connect to 10.1.0.20<51203> failed : Connection timed out',
  ],
  patterns: [unreached, glooTimeout, nccl, noError, connection, rayUnique, ...UNREACHED_FORMS],
  match(view) {
    const { evidence, find } = view;
    const unique = find(rayUnique)[0];
    if (unique !== undefined) return notUnique(view, unique);
    if (!severalNodes(evidence)) return undefined;
    const tried = [...find(unreached), ...find(glooTimeout), ...find(nccl)]
      .filter((found) => !isLoopback(addressOf(found)) && addressOf(found) !== '')
      .toSorted((a, b) => a.line.at - b.line.at);
    const first = tried[0];
    if (first !== undefined && !peerEndedBefore(evidence, first)) {
      const told = dialledBy(view, tried, first);
      if (told !== undefined) return told;
    }
    const silent = find(noError);
    return silent[0] === undefined ? bridges(view) : withoutReason(view, silent);
  },
};

function addressOf(found: Found): string {
  const { address, address2, address3 } = found.groups;
  return plainAddress(address ?? address2 ?? address3 ?? '');
}

function dialledBy(view: View, tried: readonly Found[], first: Found): Match | undefined {
  const { groups, message } = first;
  // Gloo's own "timed out connecting" stands before every reason.
  const reason =
    groups['reason'] ?? groups['reason2'] ?? message.replace(/timed out connecting|Connect timeout/g, '');
  return whyUnreached(view, {
    found: first,
    address: addressOf(first),
    port: groups['port'] ?? groups['port2'] ?? groups['port3'] ?? '',
    reason: /timed out|no route|unreachable|prohibited|refused|reset/i.exec(reason)?.[0] ?? '',
    phase: 'later',
    shown: [first, ...tried.slice(-1).filter((found) => found !== first)],
  });
}

/** Too few addresses: one is used twice. Too many: a node has offered two. */
function notUnique(view: View, unique: Found): Match {
  const { nodes = '0', addresses = '0', set = '' } = unique.groups;
  const found = [...set.matchAll(/[\d.]{7,}|[\da-f]*:[\da-f:]+/gi)].map(([one]) => one);
  const values = { addresses: found.join(',') };
  if (Number(addresses) < Number(nodes)) {
    return {
      cause: 'duplicate-host-ip',
      node: undefined,
      atFault: 'launcher',
      shown: [unique],
      title: `${nodes} nodes call themselves by ${addresses} address${addresses === '1' ? '' : 'es'}${found[0] === undefined ? '' : `: ${found.join(', ')}`}`,
      why: 'VLLM_HOST_IP was set to the same value on every node, as by one file of variables for all.',
      advice: [
        'Take VLLM_HOST_IP out of env of the recipe and set network: auto: each rank then gets its own.',
      ],
      values,
      confidence: 0.95,
      specificity: 3,
    };
  }
  const odd = found.find((one) => !found.some((other) => other !== one && sameNetwork(one, other)));
  const node = ownerOf(view, odd, found) ?? unique.node;
  return {
    cause: 'wrong-network-address-advertised',
    node,
    shown: [unique],
    title: `${node} offers two addresses${odd === undefined ? '' : `, of which ${odd} is on another network`}`,
    why: 'Its processes chose differently: one took the address of the default route, another the one of the fabric.',
    advice: [
      'Set network: auto in the recipe: each rank then gets VLLM_HOST_IP with its own address.',
      `The Ray address of each node (ray status) must be the same as its VLLM_HOST_IP.`,
    ],
    values,
    confidence: 0.88,
    specificity: 3,
  };
}

/** By the book, else by the same last number: hosts often keep it on all their networks. */
function ownerOf(view: View, odd: string | undefined, all: readonly string[]): string | undefined {
  if (odd === undefined) return undefined;
  const book = addressBook(view);
  const known = book.get(odd);
  if (known !== undefined) return known;
  const twin = all.find((one) => one !== odd && one.split('.').at(-1) === odd.split('.').at(-1));
  const byTwin = twin === undefined ? undefined : (book.get(twin) ?? prefixed(view, twin));
  return byTwin ?? nodesOf(view.evidence)[1];
}

/** The node whose log has lines of Ray's with that address. */
function prefixed({ evidence }: View, address: string): string | undefined {
  const own = `ip=${address})`;
  return evidence.ranks.find(
    (rank) => rank.role === 'worker' && rank.lines.some((line) => line.text.includes(own)),
  )?.node;
}

/** NCCL's own choice of interface by each rank, where something waits or failed for want of a connection. */
function bridges(view: View): Match | undefined {
  if (view.serves) return undefined;
  const used = view.find(BOOTSTRAP);
  const waits = view.find(connection)[0];
  if (waits === undefined && view.find(nccl).length === 0 && !anyEnded(view)) return undefined;
  const bridged = used.find((found) => isContainerAddress(found.groups['address'] ?? ''));
  const virtual = used.find((one) => isVirtualInterface(one.groups['interface'] ?? ''));
  const found = bridged ?? virtual;
  if (found === undefined) return waits === undefined ? undefined : apart(view, used, waits);
  return whyUnreached(view, {
    found: used.find((one) => one.node !== found.node) ?? found,
    address: found.groups['address'] ?? '',
    port: '',
    reason: '',
    phase: 'later',
    shown: [found],
  });
}

/** The ranks chose interfaces on two networks, by themselves or by a variable that says the same everywhere. */
function apart(view: View, used: readonly Found[], waits: Found): Match | undefined {
  const nodes = nodesOf(view.evidence);
  const [a, b] = nodes.flatMap((node) => used.find((found) => found.node === node) ?? []);
  if (a === undefined || b === undefined) return undefined;
  const addresses = [a, b].map((found) => found.groups['address'] ?? '');
  if (addresses.some((one) => v4(one) === undefined) || sameNetwork(addresses[0] ?? '', addresses[1] ?? ''))
    return undefined;
  const named = view.find(IFNAME)[0];
  const same = a.groups['interface'] === b.groups['interface'];
  return {
    cause: named === undefined ? 'wrong-network-address-advertised' : 'wrong-socket-interface',
    node: undefined,
    atFault: 'both',
    shown: [a, b, ...(named === undefined ? [] : [named]), waits],
    title: `NCCL takes ${a.groups['interface']} on ${a.node} and ${same ? 'the same name' : b.groups['interface']} on ${b.node}, which lie on two networks`,
    why: `${addresses.join(' and ')} do not reach each other, and the ranks wait for a connection.`,
    advice: [
      "Set network: auto in the recipe, so that each rank gets the name of its own node's fabric interface.",
      'On each node: ip -br addr; "Bootstrap: Using" of all ranks must lie in one network.',
    ],
    values: named === undefined ? {} : { interface: named.groups['name'] ?? '' },
    confidence: named === undefined ? 0.6 : 0.72,
    specificity: 2,
  };
}

function anyEnded({ evidence }: View): boolean {
  return evidence.ranks.some((rank) => rank.ended !== undefined && !rank.ended.requested);
}

function withoutReason(view: View, shown: readonly Found[]): Match {
  const named = view.find(IFNAME).length > 0;
  const everywhere = nodesOf(view.evidence).every((node) => shown.some((found) => found.node === node));
  const node = everywhere ? undefined : peerOf(view.evidence, shown[0]?.node ?? '');
  return {
    cause: 'wrong-network-address-advertised',
    node,
    ...(node === undefined ? { atFault: 'both' } : {}),
    shown: shown.slice(0, 2),
    title: 'The nodes offered each other addresses that they do not reach',
    why: `Gloo could not connect its ranks${node === undefined ? '' : ` to ${node}`} and gives no reason, as it does when a node has several networks and the wrong one was chosen.`,
    advice: [
      "Set network: auto in the recipe, so that each rank offers its own node's fabric address.",
      'See which networks a node has with: ip -br addr',
    ],
    confidence: named ? 0.5 : 0.65,
    specificity: 2,
  };
}
