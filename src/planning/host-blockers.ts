import type { Node } from '../domain/cluster.ts';
import {
  type GpuTrouble,
  type Holder,
  type ListeningPort,
  type NodeFacts,
  type ReachedFacts,
  valueIf,
} from '../domain/facts.ts';
import type { Blocker } from '../domain/plan.ts';
import type { EngineName, Recipe } from '../domain/recipe.ts';
import { list } from '../domain/units.ts';
import { engines } from '../knowledge/engines/index.ts';
import { isStoppable } from './allocate.ts';
import type { Going } from './clear.ts';
import { fabricOf } from './fabric.ts';
import { fabricBlockers } from './fabric-blockers.ts';
import { rankNameOf, reachedOf } from './our-ranks.ts';

/** Hosts that do not answer, one host under two names, GPUs that are gone, and fabric addresses that lead nowhere. */
export function hostBlockers(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  return [
    ...unreached(nodes, facts),
    ...unread(nodes, facts),
    ...sameHost(nodes, facts),
    ...goneGpus(nodes, facts),
    ...fabricBlockers(nodes, facts),
  ];
}

function unreached(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  return nodes.flatMap((node): readonly Blocker[] => {
    const seen = facts.find((one) => one.node === node.name);
    if (seen?.reached) return [];
    return [
      {
        cause: 'host-unreachable',
        node: node.name,
        title: seen === undefined ? `${node.name} was not looked at.` : seen.failure.sentence,
        advice: seen === undefined ? [] : [seen.failure.remedy],
        userError: seen?.failure.why.startsWith('host-key') === true,
      },
    ];
  });
}

/** Where our own records are not known, a rank may run already: another one beside it would take its memory. */
function unread(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  return nodes.flatMap(({ name }): readonly Blocker[] => {
    const ranks = reachedOf(facts, name)?.ranks;
    if (ranks === undefined || ranks.known) return [];
    return [
      {
        cause: 'unknown',
        node: name,
        title: `Which ranks of ours run on ${name} is not known: ${ranks.why}.`,
        advice: [
          `Try again when ${name} is less busy; what it does, on ${name}: uptime; df -h ~; ls ~/.firstlight`,
        ],
        userError: false,
      },
    ];
  });
}

/** Where the driver itself says so, work would fail there, often on the GPUs that are left as well. */
const GONE: readonly GpuTrouble['kind'][] = [
  'no-driver',
  'version-mismatch',
  'no-devices',
  'lost-gpu',
  'left-out',
];

/** What only nvidia-smi does not tell blocks nothing: then the launch itself tells. */
function goneGpus(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  return nodes.flatMap((node): readonly Blocker[] => {
    const trouble = reachedOf(facts, node.name)?.driver?.trouble;
    if (trouble === undefined || !GONE.includes(trouble.kind)) return [];
    const { why, remedy, seen } = trouble;
    const left = seen.length > 0 ? ' New work may fail on the others as well.' : '';
    return [
      {
        cause: 'gpu-not-visible-in-container',
        node: node.name,
        title: `The GPUs of ${node.name} cannot be used: ${why}.${left}`,
        advice: [`On ${node.name}: ${remedy}`],
        userError: false,
      },
    ];
  });
}

/** Two names for one host would start two ranks on one GPU. */
function sameHost(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly Blocker[] {
  const byId = new Map<string, string[]>();
  for (const node of nodes) {
    const id = valueIf(reachedOf(facts, node.name)?.host)?.machineId;
    if (id !== undefined && id !== '') byId.set(id, [...(byId.get(id) ?? []), node.name]);
  }
  return [...byId.values()]
    .filter((names) => names.length > 1)
    .map((names) => ({
      cause: 'duplicate-host-ip',
      node: names[1],
      title: `${list(names)} are one host: they have the same machine-id.`,
      advice: [
        'Correct ssh or port in the cluster file; hosts cloned from one image need a machine-id of their own: sudo rm /etc/machine-id && sudo systemd-machine-id-setup',
      ],
      userError: true,
    }));
}

/** Ports that this launch opens, and who is in the way of them. */
type PortsInTheWay = {
  readonly going: ReadonlyMap<string, readonly Going[]>;
  readonly blockers: readonly Blocker[];
};

/**
 * Listeners on the ports that the ranks open. A known holder of the API's port is proposed to be stopped, anybody else
 * blocks; the port of the rendezvous is nobody's wish and not worth anybody's work: whoever has it blocks, and a remedy
 * moves it.
 */
export function portsInTheWay(input: {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
  /** Nodes where ranks of ours run, or will be stopped: what listens there may be they. */
  readonly ours: ReadonlySet<string>;
}): PortsInTheWay {
  const { nodes, facts, recipe, engine } = input;
  const going = new Map<string, Going[]>();
  const blockers: Blocker[] = [];
  const fabrics = fabricOf(nodes, facts);
  nodes.forEach((node, rank) => {
    const there = reachedOf(facts, node.name);
    if (there === undefined || input.ours.has(node.name)) return;
    const fabric = fabrics[rank]?.address;
    const wanted = [
      ...(rank === 0 || engines[engine].workerHealth
        ? [{ port: recipe.serve.port, address: bindsTo(recipe, fabric), what: 'API' }]
        : []),
      ...(rank === 0 && nodes.length > 1
        ? [{ port: recipe.rendezvousPort, address: undefined, what: 'rendezvous' }]
        : []),
    ];
    for (const { port, address, what } of wanted) {
      const listener = (valueIf(there.ports) ?? []).find(
        (one) => one.port === port && collides(one.address, address),
      );
      if (listener === undefined) continue;
      const holder = holderOf(listener, there);
      if (holder !== undefined && rankNameOf(holder) !== undefined) continue;
      if (what === 'API' && holder !== undefined && isStoppable(holder, there)) {
        const why = `It listens on port ${port} of ${node.name}, which the ${what} of this launch needs.`;
        going.set(node.name, [...(going.get(node.name) ?? []), { holder, why }]);
      } else blockers.push(portBlocker(node.name, listener, what, holder));
    }
  });
  return { going, blockers };
}

function portBlocker(
  node: string,
  { port, process, address }: ListeningPort,
  what: string,
  holder: Holder | undefined,
): Blocker {
  const name = holder?.name ?? valueIf(process);
  const who = name ?? 'something that this user cannot see';
  const key = what === 'API' ? 'serve.port' : 'rendezvousPort';
  return {
    cause: 'port-already-in-use',
    node,
    title: `Port ${port} of ${node}, for the ${what}, is in use by ${who} (${address}).`,
    advice: [
      `Choose another ${key} in the recipe, or stop it: sudo ss -ltnp 'sport = :${port}'`,
      ...(holder?.protectedWhy === undefined
        ? []
        : [`${holder.name} is left alone here: ${holder.protectedWhy}.`]),
    ],
    values: {
      port: String(port),
      kind: what === 'API' ? 'api' : 'rendezvous',
      ...(name === undefined ? {} : { holder: name }),
    },
    userError: false,
  };
}

/** The address the API binds; undefined is every address. */
function bindsTo(recipe: Recipe, fabric: string | undefined): string | undefined {
  if (recipe.serve.listen === 'loopback') return '127.0.0.1';
  return recipe.serve.listen === 'fabric' ? fabric : undefined;
}

function collides(listens: string, wanted: string | undefined): boolean {
  const every = ['0.0.0.0', '::', '*', '[::]'].includes(listens);
  return every || wanted === undefined || listens === wanted;
}

function holderOf(listener: ListeningPort, facts: ReachedFacts): Holder | undefined {
  const pid = valueIf(listener.pid);
  const holders = valueIf(facts.holders) ?? [];
  return (
    (pid === undefined ? undefined : holders.find((holder) => holder.pid === pid)) ??
    holders.find((holder) => holder.listens.includes(listener.port))
  );
}
