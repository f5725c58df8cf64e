import { isLoopback, plainAddress } from '../../../domain/address.ts';
import type { Evidence } from '../../../domain/evidence.ts';
import { valueIf } from '../../../domain/facts.ts';
import { list } from '../../../domain/units.ts';
import { fabricAddresses, factsOf, peersOf, setByRecipe, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const refused = pattern(
  ['remote=[127.', 'remote=[::1]', 'remote=[::ffff:127.'],
  /(?:gloo|Gloo|connectFullMesh|failed to connect).{0,400}?remote=\[(?<address>[0-9a-fA-F.:]{1,200})\]:(?<port>\d{1,20})/,
);
/** The same from older Gloo. */
const refusedOnce = pattern(
  ['connect [127.', 'connect [::1]'],
  /gloo\S{0,200}pair\.cc:\d{1,20}\] connect \[(?<address>[0-9a-fA-F.:]{1,200})\]:(?<port>\d{1,20}): /,
);
const fallback = pattern(
  'Unable to resolve hostname to a (local) address',
  /Unable to resolve hostname to a \(local\) address\. Using the loopback address/,
);

const ncclLo = pattern(
  ':127.',
  /(?:Bootstrap ?: ?Using|NET\/Socket ?: Using|; OOB) (?:\[\d{1,20}\])?lo:(?<address>127\.[\d.]{1,200})</,
);
const hostsLine = pattern(
  ['127.0.1.1', '127.0.0.1', '127.0.0.53'],
  /^(?:\S{1,300}: ?)?(?<address>127\.[\d.]{1,200})\s{1,60}(?:STREAM\s{1,60})?(?<name>(?!localhost)[A-Za-z][\w.-]{0,200})\s{0,60}(?:#.{0,400})?$|\b(?<name2>[A-Za-z][\w.-]{0,200}) (?:resolves to|resolved to|->|→) (?<address2>127\.[\d.]{1,200})/,
);
const waits = pattern(
  ['waiting for clients', 'connectFullMesh failed', 'while trying to connect to', 'failed to connect'],
  /seconds waiting for clients|connectFullMesh failed|while trying to connect to|failed to connect/,
);
const queue = pattern(
  'mq_connect_ip=',
  /^DP group leader: .{0,400}mq_connect_ip=(?<address>127\.[\d.]{1,200}|::1|localhost)\b.{0,400}world_size=(?<world>\d{1,20})/,
);

/** Gloo tells its peers the address that the host's own name resolves to, and that is 127.x there. */
export const loopbackAdvertised: Signature = {
  name: 'loopback-advertised',
  causes: ['loopback-address-advertised'],
  seenOn:
    'torch 1.13 and 2.11.0 (gloo of 2022 and 2026), two network namespaces, November 2026; vLLM 0.10 and SGLang 0.4 before',
  source: 'captured; sgl-project/sglang#3226',
  looks: [
    'RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:40121',
  ],
  patterns: [refused, refusedOnce, fallback, ncclLo, hostsLine, waits, queue],
  match(view) {
    if (!severalNodes(view.evidence)) return undefined;
    const tried = [...view.find(refused), ...view.find(refusedOnce)].filter((found) =>
      isLoopback(found.groups['address'] ?? ''),
    );
    const said = view.find(fallback);
    return fromRefusal(view, tried, said) ?? fromWarning(view, said) ?? fromChoice(view) ?? fromHosts(view);
  },
};

function fromRefusal({ evidence }: View, tried: readonly Found[], said: readonly Found[]): Match | undefined {
  const first = tried[0];
  if (first === undefined) return undefined;
  const address = plainAddress(first.groups['address'] ?? '');
  // Hosts of one kind map their names alike: unless a look says otherwise, the silent side does it too.
  const known = evidence.ranks.some((rank) => factsOf(evidence, rank.node) !== undefined);
  // Who says of itself that it fell back, and then dials loopback, has met its own kind: it is as much to blame.
  const self = tried.find((found) => said.some((one) => one.node === found.node));
  const node = self?.node ?? advertiser(evidence, first);
  const cure = advice(evidence, node, address, setByRecipe(evidence, ['GLOO_SOCKET_IFNAME']));
  return {
    cause: 'loopback-address-advertised',
    node,
    ...(self === undefined && !known ? { atFault: 'both' as const } : {}),
    shown: enough(tried),
    title:
      node === undefined
        ? `One of ${list(peersOf(evidence, first.node))} told ${first.node} to reach it at ${address}`
        : `${node} told the others to reach it at ${address}`,
    why: `That address leads every node to itself, so ${first.node} found nobody there and the other side waits in silence. Gloo takes the address that a host's own name resolves to; /etc/hosts maps it to 127.x.`,
    advice: cure,
    values: { address, ...(first.groups['port'] ? { port: first.groups['port'] } : {}) },
    confidence: 0.97,
    specificity: 3,
  };
}

function fromWarning({ evidence }: View, said: readonly Found[]): Match | undefined {
  const first = said[0];
  if (first === undefined) return undefined;
  return {
    cause: 'loopback-address-advertised',
    node: first.node,
    shown: said.slice(0, 3),
    title: `${first.node} could not resolve its own name and told the others to reach it at 127.0.0.1`,
    why: 'Without an address of its own Gloo falls back to loopback, which leads every other node to itself.',
    advice: advice(evidence, first.node, '127.0.0.1', []),
    values: { address: '127.0.0.1' },
    confidence: 0.75,
    specificity: 2,
  };
}

/** The file of hosts, or what it leads to, stands in the log beside a connection that did not come about. */
function fromHosts(view: View): Match | undefined {
  const lines = view.find(hostsLine);
  const first = lines[0];
  const wait = view.find(waits)[0];
  if (first === undefined || wait === undefined || view.serves) return undefined;
  const address = first.groups['address'] ?? first.groups['address2'] ?? '127.0.1.1';
  const nodes = new Set(lines.map((found) => found.node));
  const node = nodes.size === 1 ? first.node : undefined;
  return {
    cause: 'loopback-address-advertised',
    node,
    ...(node === undefined ? { atFault: 'both' } : {}),
    shown: [first, wait],
    title: `The name of ${first.node} leads to ${address} there, and that is what the others are told`,
    why: 'That address leads every node to itself, so the ranks never meet.',
    advice: advice(view.evidence, node, address, setByRecipe(view.evidence, ['GLOO_SOCKET_IFNAME'])),
    values: { address },
    confidence: 0.7,
    specificity: 2,
  };
}

/** NCCL or vLLM's queue stands on loopback by its own word, while there are other nodes. */
function fromChoice(view: View): Match | undefined {
  const { evidence, find } = view;
  const chosen = [...find(ncclLo), ...find(queue).filter((found) => found.groups['world'] !== '1')];
  const first = chosen[0];
  if (first === undefined || view.serves) return undefined;
  const address = first.groups['address'] ?? '127.0.0.1';
  const nodes = new Set(chosen.map((found) => found.node));
  const node = nodes.size === 1 ? first.node : undefined;
  return {
    cause: 'loopback-address-advertised',
    node,
    ...(node === undefined ? { atFault: 'both' } : {}),
    shown: chosen.slice(0, 3),
    title: `${first.node} tells the others to reach it at ${address}`,
    why: 'It chose the loopback interface, which leads every other node to itself.',
    advice: advice(
      evidence,
      node,
      address,
      setByRecipe(evidence, ['NCCL_SOCKET_IFNAME', 'GLOO_SOCKET_IFNAME']),
    ),
    values: { address },
    confidence: 0.8,
    specificity: 2,
  };
}

/** Who advertised it: not the rank that dialled, but its peer. Of several, the one whose name is known to resolve so. */
function advertiser(evidence: Evidence, dialled: Found): string | undefined {
  const peers = peersOf(evidence, dialled.node);
  if (peers.length < 2) return peers[0];
  const guilty = peers.filter((node) =>
    (valueIf(valueIf(factsOf(evidence, node)?.host)?.ownAddresses) ?? []).some(isLoopback),
  );
  return guilty.length === 1 ? guilty[0] : undefined;
}

/** The first tries, and the line that gave up. */
function enough(tried: readonly Found[]): readonly Found[] {
  const last = tried.at(-1);
  return tried.length <= 3 || last === undefined ? tried : [...tried.slice(0, 2), last];
}

function advice(
  evidence: Evidence,
  node: string | undefined,
  address: string,
  overridden: readonly string[],
): readonly string[] {
  const where = node ?? 'each node';
  const fabric = node === undefined ? undefined : fabricAddresses(evidence, node)[0];
  const hosts = `On ${where}, in /etc/hosts, give the host's own name ${fabric === undefined ? 'its fabric address' : `the address ${fabric}`} instead of ${address}; then firstlight up. See it with: getent hosts "$(hostname)"`;
  if (evidence.recipe.network === 'auto' && overridden.length === 0) {
    // It was told its own interface and did not take it: the image or a wrapper sets or drops the variable.
    return [hosts, 'Look what the image does with GLOO_SOCKET_IFNAME: it was given, and was not used.'];
  }
  const own = `${evidence.engine === 'sglang' ? 'SGLANG_HOST_IP' : 'VLLM_HOST_IP'} and GLOO_SOCKET_IFNAME`;
  return [
    ...overridden.map((name) => `Take ${name} out of the recipe's env: one value cannot suit all nodes.`),
    `Set network: auto in the recipe, so that each rank gets its own node's ${own}.`,
    hosts,
  ];
}
