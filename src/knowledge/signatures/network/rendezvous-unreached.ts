import { isLoopback, plainAddress } from '../../../domain/address.ts';
import type { Evidence } from '../../../domain/evidence.ts';
import { headOf, nodesOf, peerEndedBefore, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { RAY_LOCAL } from './addresses.ts';
import { INIT_METHOD, UNREACHED_FORMS, walledOff, whyUnreached } from './unreached.ts';

const retrying = pattern(
  'TCP client failed to connect/validate to host',
  /TCP client failed to connect\/validate to host \[?(?<address>[\w.:%-]{1,200}?)\]?:(?<port>\d{1,20}) - retrying \(.{0,400}?\): (?<reason>.{1,400})$/,
);
const timedOut = pattern(
  'while trying to connect to (',
  /client socket has timed out after (?<milliseconds>\d{1,20}) ?ms while trying to connect to \((?<address>[\w.:%-]{1,200}), (?<port>\d{1,20})\)/,
);
const failedTo = pattern(
  'client socket has failed to connect to',
  /client socket has failed to connect to (?:any network address of \()?\[?(?<address>[\w.:%-]{1,200}?)[\],]{1,200}:?\s{0,60}(?<port>\d{1,20})\)?.{0,400}?(?:errno: ?\d{1,20} - (?<reason>[^).]{1,200})|$)/,
);
const rayGcs = pattern(
  ['GCS', 'ray cluster'],
  /(?:[Ff]ailed to connect to|Unable to connect to|[Cc]ould not connect to|[Cc]an(?:no|')t connect to)(?: the)? (?:GCS|Ray cluster|ray cluster)(?: at)?(?: address)?[ =:]{0,200}(?<address>[\d.a-zA-Z][\w.-]{0,200}):(?<port>\d{1,20})(?<reason>.{0,400})$/,
);
const sglangArgs = pattern(
  ['dist_init_addr', 'dist-init-addr'],
  /nnodes['"]?[=: ]{1,200}['"]?(?<nnodes>[2-9]|\d\d{1,20}).{0,400}?dist[_-]init[_-]addr['"]?[=: ]{1,200}['"]?\[?(?<address>[\w.:-]{1,200}?)\]?:(?<port>\d{1,20})|dist[_-]init[_-]addr['"]?[=: ]{1,200}['"]?\[?(?<address2>[\w.:-]{1,200}?)\]?:(?<port2>\d{1,20}).{0,400}?nnodes['"]?[=: ]{1,200}['"]?(?<nnodes2>[2-9]|\d\d{1,20})/,
);
const headless = pattern(
  ['head node address', 'master_addr', 'master-addr', 'MASTER_ADDR'],
  /with head node address \[?(?<address>[\w.:-]{1,200}?)\]?:(?<port>\d{1,20})|master[_-]addr['"]?[=: ]{1,200}['"]?(?<address2>[\w.:-]{1,200}?)['",\s]|MASTER_ADDR=(?<address3>[\w.:-]{1,200})/,
);
/** What a rank says once the ranks have met: what it dialled in vain before was only early. */
const met = pattern(
  ['is assigned as DP rank', 'Init torch distributed ends'],
  /^rank \d{1,20} in world size \d{1,20} is assigned as|^Init torch distributed ends/,
);
const waits = pattern(
  ['seconds waiting for clients', 'No available shared memory broadcast'],
  /seconds waiting for clients|No available shared memory broadcast block/,
);

/** The store of the head is dialled at an address where it is not: loopback, another network, or behind a firewall. */
export const rendezvousUnreached: Signature = {
  name: 'rendezvous-unreached',
  causes: [
    'loopback-address-advertised',
    'wrong-network-address-advertised',
    'firewall-blocks-ports',
    'container-network-isolated',
    'wrong-socket-interface',
  ],
  seenOn: 'torch 2.4 to 2.13 under vLLM 0.23 and SGLang 0.5, 2025 and 2026; Ray 2.50',
  source:
    'TCPStore.cpp and socket.cpp of torch; vLLM parallel_state.py; SGLang server_args.py; Ray gcs_utils.py',
  looks: [
    '[c10d] TCP client failed to connect/validate to host 127.0.0.1:25000 - retrying (try=0, timeout=600000ms, delay=1042ms): Connection reset by peer',
    'The client socket has timed out after 600000ms while trying to connect to (10.1.0.20, 25000).',
  ],
  patterns: [retrying, timedOut, failedTo, rayGcs, sglangArgs, headless, waits, met, ...UNREACHED_FORMS],
  match(view) {
    const { evidence, find, stalled } = view;
    if (!severalNodes(evidence)) return undefined;
    const early = (dial: Found): boolean =>
      find(met).some((found) => found.rank === dial.rank && found.line.line > dial.line.line);
    const retries = find(retrying).filter((found) => !early(found));
    const dialled = [...find(timedOut), ...retries, ...find(failedTo), ...find(rayGcs)].filter(
      (found) => found.role === 'worker',
    );
    const first = dialled[0];
    const loop = loopbackTold(view);
    if (loop) return loopback(evidence, [loop, ...dialled.slice(0, 2)]);
    const own = rayLoopback(view);
    if (own !== undefined) return own;
    const waiting = find(waits)[0];
    if (first === undefined) return waiting === undefined ? undefined : walledOff(view, waiting);
    if (!isAddress(addressOf(first))) return undefined;
    if (isLoopback(addressOf(first))) return loopback(evidence, dialled.slice(0, 3));
    const final = evidence.ranks.some((rank) => rank.ended !== undefined) || find(rayGcs).length > 0;
    const over =
      find(timedOut)[0] ??
      find(failedTo)[0] ??
      find(rayGcs)[0] ??
      (stalled === 'rendezvous' || stalled === 'start' || final ? first : undefined);
    // A head that ended because nobody came was there all the time: the other side's end is no echo of it.
    const cameToNobody = waiting?.role === 'head';
    if (over === undefined || (peerEndedBefore(evidence, over) && !cameToNobody)) return undefined;
    const said = dialled.find((found) => found.groups['reason'] !== undefined) ?? first;
    return whyUnreached(view, {
      found: over,
      address: addressOf(over),
      port: over.groups['port'] ?? '',
      reason: said.groups['reason'] ?? '',
      phase: 'store',
      shown: over === said ? [over] : [over, said],
    });
  },
};

function addressOf(found: Found): string {
  return plainAddress(found.groups['address'] ?? '');
}

function isAddress(text: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$|^[\da-f]*:[\da-f:.]+$/i.test(text) || text === 'localhost';
}

/** The head's address as the ranks were told it, where that is loopback although there are other nodes. */
function loopbackTold({ find }: View): Found | undefined {
  const init = find(INIT_METHOD).find(
    (found) => isLoopback(found.groups['address'] ?? '') && found.groups['world'] !== '1',
  );
  if (init !== undefined) return init;
  const sglang = find(sglangArgs).find((found) =>
    isLoopback(found.groups['address'] ?? found.groups['address2'] ?? ''),
  );
  return (
    sglang ??
    find(headless).find(
      (found) =>
        found.role === 'worker' &&
        isLoopback(found.groups['address'] ?? found.groups['address2'] ?? found.groups['address3'] ?? ''),
    )
  );
}

/** Ray on a node calls itself 127.0.0.1. */
function rayLoopback({ evidence, find }: View): Match | undefined {
  const own = find(RAY_LOCAL).find((found) => isLoopback(found.groups['address'] ?? ''));
  if (own === undefined) return undefined;
  const address = own.groups['address'] ?? '';
  return {
    cause: 'loopback-address-advertised',
    node: own.node,
    shown: [own],
    title: `Ray on ${own.node} calls itself ${address}, where each node finds only itself`,
    why: `The other nodes are told that address for it. Its name leads to loopback in /etc/hosts, or it was started without a network.`,
    advice: [
      `Start Ray there with --node-ip-address and the fabric address; network: auto in the recipe does that.`,
      `On ${own.node}: getent hosts "$(hostname)"; all of ${nodesOf(evidence).length} nodes must show in ray status.`,
    ],
    values: { address },
    confidence: 0.85,
    specificity: 3,
  };
}

function loopback(evidence: Evidence, shown: readonly Found[]): Match {
  const groups: Found['groups'] = shown[0]?.groups ?? {};
  const address = groups['address'] ?? groups['address2'] ?? groups['address3'] ?? '127.0.0.1';
  return {
    cause: 'loopback-address-advertised',
    node: undefined,
    atFault: 'launcher',
    shown,
    title: `The ranks were told to meet at ${address}, where each node finds only itself`,
    why: `The address of the head was given as loopback, so the other ranks dial themselves instead of ${headOf(evidence) ?? 'the head'}.`,
    advice: [
      'Give the head by an address that the other nodes reach: fabric: in the cluster file, or network: auto in the recipe.',
    ],
    values: { address },
    confidence: 0.92,
    specificity: 3,
  };
}
