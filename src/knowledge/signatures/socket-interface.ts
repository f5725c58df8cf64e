import { valueIf } from '../../domain/facts.ts';
import { list } from '../../domain/units.ts';
import { factsOf, nodesOf, setByRecipe } from './scene.ts';
import { pattern, type Signature } from './signature.ts';

const gloo = pattern('Unable to find address for: ', /Unable to find address for: (?<name>\S+)/);
const nccl = pattern('no socket interface found', /Bootstrap ?: no socket interface found/i);
const wanted = pattern(
  'NCCL_SOCKET_IFNAME set',
  /NCCL_SOCKET_IFNAME set (?:by environment )?to (?<name>\S+)/,
);
const VARIABLES = ['GLOO_SOCKET_IFNAME', 'NCCL_SOCKET_IFNAME', 'TP_SOCKET_IFNAME'];

/** An interface is asked for that this node does not have, or in a form that only NCCL understands. */
export const socketInterface: Signature = {
  name: 'socket-interface',
  causes: ['wrong-socket-interface'],
  seenOn: 'torch 2.7 and later, NCCL 2.28, 2025 and 2026',
  source: 'gloo transport/tcp/device.cc; NCCL bootstrap.cc',
  patterns: [gloo, nccl, wanted],
  match({ evidence, find }) {
    const shown = [...find(gloo), ...find(nccl)].toSorted((a, b) => a.line.at - b.line.at);
    const first = shown[0];
    if (first === undefined) return undefined;
    const asked = find(wanted).find((found) => found.rank === first.rank);
    const name = first.groups['name'] ?? asked?.groups['name'] ?? '';
    const everywhere = nodesOf(evidence).every((node) => shown.some((found) => found.node === node));
    const node = everywhere && nodesOf(evidence).length > 1 ? undefined : first.node;
    const has = (valueIf(factsOf(evidence, first.node)?.interfaces) ?? []).map((one) => one.name);
    const variables = setByRecipe(evidence, VARIABLES);
    return {
      cause: 'wrong-socket-interface',
      node,
      shown: [...shown.slice(0, 2), ...(asked && !first.groups['name'] ? [asked] : [])],
      title:
        node === undefined
          ? `No node has a network interface named ${name || 'as the recipe says'}`
          : `${node} has no network interface named ${name || 'as the recipe says'}`,
      why: reason(name, has),
      advice: [
        ...variables.map(
          (variable) => `Take ${variable} out of the recipe's env: names differ from node to node.`,
        ),
        "Set network: auto in the recipe, so that each rank gets the name of its own node's interface.",
      ],
      values: name === '' ? {} : { interface: name },
      confidence: 0.95,
      specificity: 3,
    };
  },
};

function reason(name: string, has: readonly string[]): string {
  if (/^[\^=]/.test(name))
    return 'Gloo takes plain names only: the signs ^ and = mean something to NCCL alone.';
  if (/^[\d.]+$|:/.test(name))
    return 'That is an address; the variable wants the name of the interface that holds it.';
  return has.length > 0
    ? `It has ${list(has)}.`
    : 'The same name was given to all nodes, and interfaces are named differently on each.';
}
