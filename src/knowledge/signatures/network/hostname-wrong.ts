import { isLoopback, plainAddress } from '../../../domain/address.ts';
import { headOf, nodesOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { ADDRESS_FORMS, addressBook, addressesOf } from './addresses.ts';

const unknownName = pattern(
  [
    'Name or service not known',
    'Temporary failure in name resolution',
    'No address associated with hostname',
    'nodename nor servname',
    'gai error: -',
  ],
  /Name or service not known|Temporary failure in name resolution|No address associated with hostname|nodename nor servname|gai error: -\d{1,3}/,
);
/** The name in such a line: in the parentheses of torch, in quotes, or behind a word for a host. */
const NAMES: readonly RegExp[] = [
  /network addresses of \((?<name>[\w.-]{1,200}), \d{1,5}\)/,
  /['"](?<name>[A-Za-z][\w.-]{0,200})['"]/,
  /(?:resolve|host|hostname|node|address|to|lookup|getaddrinfo|ping:)[: (]{1,3}(?<name>[A-Za-z][\w.-]{0,200})/,
];
const named = pattern(
  [
    'while trying to connect to (',
    'failed to connect to',
    'failed to connect/validate to host',
    'Failed to connect to',
    'Connecting to',
  ],
  /(?:while trying to connect to \(|(?:[Ff]ailed to connect to|connect\/validate to host) (?:any network address of \()?\[?)(?<name>[A-Za-z][\w-]{0,200}(?:\.[\w-]{1,200})*)[\],:)]/,
);
const resolved = pattern(
  ['PING ', 'resolves to', 'resolved to', ' has address ', 'STREAM', 'getent hosts', 'Trying '],
  /PING (?<name>[A-Za-z][\w.-]{0,200}) \((?<address>[\d.]{1,200})\)|\b(?<name2>[A-Za-z][\w.-]{0,200}) (?:resolves? to|resolved to|has address|->|→) \[?(?<address2>[\d.]{7,}|[\da-f]{0,200}:[\da-f:]{1,200})|^(?<address3>\d{1,20}\.\d{1,20}\.\d{1,20}\.\d{1,20})\s{1,60}STREAM (?<name3>[\w.-]{1,200})/,
);
const actual = pattern(
  ['distributed_init_method=tcp://', 'dist_init_addr', 'head node address'],
  /(?:distributed_init_method=tcp:\/\/|dist_init_addr['"]?[=:]\s{0,60}['"]?|head node address )(?<name>[A-Za-z][\w-]{0,200}(?:\.[\w-]{1,200})*):\d{1,20}/,
);

const NO_HOST =
  /^(?:https?|tcp|localhost|huggingface|hf|pypi|github|registry|docker|cdn|proxy|raw|api|host|server|store|socket|client|address|error|failed|the|to|any)$|huggingface\.co|\.com$|\.io$|\.org$/i;

/** A node was named by its host name, and the name leads nowhere, or to another address than the node's. */
export const hostnameWrong: Signature = {
  name: 'hostname-wrong',
  causes: ['hostname-resolves-to-wrong-address'],
  seenOn: 'torch 2.4 to 2.13, Ray 2.50, glibc and systemd-resolved, 2024 to 2026',
  source:
    'torch socket.cpp; glibc gai_strerror; facts of DGX Spark: NAME.local leads to the management network',
  looks: [
    '[c10d] The IPv4 network addresses of (spark-a, 25000) cannot be retrieved (gai error: -2 - Name or service not known).',
    'PING spark-a (10.8.0.3) 56(84) bytes of data.',
  ],
  patterns: [unknownName, named, resolved, actual, ...ADDRESS_FORMS],
  match(view) {
    if (!severalNodes(view.evidence)) return undefined;
    return elsewhere(view) ?? nowhere(view) ?? silent(view);
  },
};

/** The log shows where the name leads, and the node itself shows where it is. */
function elsewhere(view: View): Match | undefined {
  const book = addressBook(view);
  const head = headOf(view.evidence);
  const wanted = new Set([...view.find(named), ...view.find(actual)].map(nameIn));
  for (const found of view.find(resolved)) {
    const name = nameIn(found);
    const address = plainAddress(
      found.groups['address'] ?? found.groups['address2'] ?? found.groups['address3'] ?? '',
    );
    const owner =
      nodesOf(view.evidence).find((node) => node === name) ?? (wanted.has(name) ? head : undefined);
    if (owner === undefined || NO_HOST.test(name) || book.get(address) === owner || isLoopback(address))
      continue;
    const own = addressesOf(book, owner);
    const tried = view.find(named).filter((one) => nameIn(one) === name);
    if (own.length === 0 && tried.length === 0) continue;
    return told(
      view,
      owner,
      name,
      [found, ...tried.slice(0, 2)],
      `It leads to ${address}${own.length > 0 ? `, and ${owner} is at ${own.join(', ')}` : ''}.`,
      own.length > 0 ? 0.9 : 0.75,
      3,
    );
  }
  return undefined;
}

/** The name is not known on a node. */
function nowhere(view: View): Match | undefined {
  const found = view
    .find(unknownName)
    .find((one) => !/https?:|huggingface|hub|pypi|proxy/i.test(one.message));
  if (found === undefined) return undefined;
  const name =
    NAMES.map((form) => form.exec(found.message)?.groups?.['name']).find(
      (one) => one !== undefined && !NO_HOST.test(one),
    ) ?? '';
  const known = name !== '' && !NO_HOST.test(name) ? name : undefined;
  const wanted = [...view.find(actual), ...view.find(named)].map(nameIn).find((one) => !NO_HOST.test(one));
  if (
    known === undefined &&
    wanted === undefined &&
    !/c10d|gloo|ray|init_process_group|MASTER|host not found/i.test(found.message)
  )
    return undefined;
  return told(
    view,
    found.node,
    known ?? wanted ?? 'the head',
    [found],
    'That node does not find it: no entry in /etc/hosts, and no server that knows it.',
    0.72,
    2,
  );
}

/** It was dialled by name in vain, and no address stands in the log. */
function silent(view: View): Match | undefined {
  const found = view
    .find(named)
    .find((one) => !NO_HOST.test(nameIn(one)) && /timed out|errno|refused|No route/.test(one.message));
  if (found === undefined) return undefined;
  return told(
    view,
    headOf(view.evidence) ?? found.node,
    nameIn(found),
    [found],
    'The ranks were given a name instead of an address, and what it leads to does not answer.',
    0.55,
    2,
  );
}

function nameIn(found: Found): string {
  const { name, name2, name3 } = found.groups;
  return name ?? name2 ?? name3 ?? '';
}

function told(
  view: View,
  node: string,
  name: string,
  shown: readonly Found[],
  why: string,
  confidence: number,
  specificity: 2 | 3,
): Match {
  const where = shown[0]?.node ?? node;
  return {
    cause: 'hostname-resolves-to-wrong-address',
    node,
    shown,
    title: `On ${where} the name ${name} does not lead to ${node === where ? 'the node that is meant' : node}`,
    why,
    advice: [
      `Give the head by its address on the fabric instead of a name: fabric: in the cluster file.`,
      `On ${where}: getent hosts ${name}; it must print an address that "ip -br addr" on ${headOf(view.evidence) ?? name} shows.`,
    ],
    values: { name },
    confidence,
    specificity,
  };
}
