import { valueIf } from '../../../domain/facts.ts';
import { list } from '../../../domain/units.ts';
import { factsOf, nodesOf, setByRecipe } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const gloo = pattern(
  ['Unable to find address for: ', 'ifa != nullptr', 'no such interface', 'Interface not found'],
  /Unable to find address for: (?<name>\S{1,300})|gloo.{0,400}(?:no such interface|[Ii]nterface not found)[: ]{1,200}(?<name2>\S{1,300})/,
);
const nccl = pattern(
  [
    'no socket interface',
    'o interface found',
    'o usable listening interface',
    'interface matching',
    'interfaces matching',
    'interface found matching',
  ],
  /Bootstrap ?: no socket interface found|NET\/Socket ?: [Nn]o (?:interface found|usable listening interface)|NCCL.{0,400}[Nn]o (?:socket |network |usable )?interfaces? (?:found|match)|[Nn]o (?:network )?interfaces? (?:found )?matching \S{0,300}/i,
);
const others = pattern(
  [
    'UCX',
    'ucx',
    'btl_tcp_if_include',
    'is not available, please use one or more of',
    'SGLANG_LOCAL_IP_NIC',
    'valid interface name',
    'Cannot find device',
    'does not exist',
  ],
  /network device '(?<name>(?!mlx5_|roce)[\w.:-]{1,200})' is not available|btl_tcp_if_include[\s\S]{0,200}?(?:[Uu]nknown|[Ii]nvalid|not found)[^"']{0,200}["']?(?<name2>[\w.-]{0,200})|You must specify a valid interface name|Device "?(?<name3>[\w.-]{1,200})"? does not exist\.|Cannot find device "(?<name4>[\w.-]{1,200})"/,
);
const wanted = pattern(
  'SOCKET_IFNAME',
  /(?<variable>(?:NCCL|GLOO|TP)_SOCKET_IFNAME)(?: set (?:by environment )?to |=)['"]?(?<name>[^\s'"]{1,200})/,
);
const VARIABLES = ['GLOO_SOCKET_IFNAME', 'NCCL_SOCKET_IFNAME', 'TP_SOCKET_IFNAME'];

/** An interface is asked for that this node does not have, or in a form that only NCCL understands. */
export const socketInterface: Signature = {
  name: 'socket-interface',
  causes: ['wrong-socket-interface'],
  seenOn: 'torch 2.4 to 2.13, NCCL 2.18 to 2.30, 2024 to 2026',
  source:
    'gloo transport/tcp/device.cc; NCCL bootstrap.cc and net_socket.cc; UCX uct_iface.c; SGLang utils/network.py',
  looks: [
    'RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ^lo',
    'NCCL WARN Bootstrap : no socket interface found',
  ],
  patterns: [gloo, nccl, others, wanted],
  match(view) {
    const { evidence, find } = view;
    const shown = [...find(gloo), ...find(nccl), ...find(others)].toSorted((a, b) => a.line.at - b.line.at);
    const first = shown[0];
    if (first === undefined || view.serves) return undefined;
    const asked = find(wanted).find((found) => found.rank === first.rank);
    const name = nameIn(first) ?? asked?.groups['name'] ?? '';
    const nodes = nodesOf(evidence);
    const everywhere = nodes.length > 1 && nodes.every((one) => shown.some((found) => found.node === one));
    const has = (valueIf(factsOf(evidence, first.node)?.interfaces) ?? []).map((one) => one.name);
    const variables = setByRecipe(evidence, VARIABLES);
    return {
      cause: 'wrong-socket-interface',
      ...placeOf(view, name, first, everywhere),
      shown: [
        first,
        ...shown.filter((found) => found.node !== first.node).slice(0, 1),
        ...(asked && nameIn(first) === undefined ? [asked] : []),
      ],
      title: everywhere
        ? `No node has a network interface named ${name || 'as it was told'}`
        : `${first.node} has no network interface named ${name || 'as it was told'}`,
      why: reason(name, has),
      advice: [
        ...variables.map(
          (variable) => `Take ${variable} out of the recipe's env: names differ from node to node.`,
        ),
        "Set network: auto in the recipe, so that each rank gets the name of its own node's interface.",
        `On ${first.node}: ip -br addr; the name stands in the first column.`,
      ],
      values: name === '' ? {} : { interface: name },
      confidence: 0.95,
      specificity: 3,
    };
  },
};

function nameIn(found: Found): string | undefined {
  const { name, name2, name3, name4 } = found.groups;
  return name ?? name2 ?? name3 ?? name4;
}

/** An address in the place of a name was put there by whoever launched; a name that one node lacks is that node's. */
function placeOf(
  view: View,
  name: string,
  first: Found,
  everywhere: boolean,
): { readonly node: string | undefined; readonly atFault?: 'both' | 'launcher' } {
  if (isAddress(name)) return { node: undefined, atFault: 'launcher' };
  if (nodesOf(view.evidence).length < 2) return { node: first.node };
  return everywhere ? { node: undefined, atFault: 'both' } : { node: first.node };
}

function isAddress(name: string): boolean {
  return /^[\d.]+$|^[\da-f]*:[\da-f:]+$/i.test(name);
}

function reason(name: string, has: readonly string[]): string {
  if (/^[\^=]/.test(name))
    return 'Gloo takes plain names only: the signs ^ and = mean something to NCCL alone.';
  if (isAddress(name))
    return 'That is an address; the variable wants the name of the interface that holds it.';
  return has.length > 0
    ? `It has ${list(has)}.`
    : 'The same name was given to all nodes, and interfaces are named differently on each.';
}
