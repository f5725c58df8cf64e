import type { Cluster, Node } from '../domain/cluster.ts';
import { type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Plan } from '../domain/plan.ts';
import type { Recipe } from '../domain/recipe.ts';
import type { CheckItem } from '../domain/report.ts';
import { gib, list } from '../domain/units.ts';
import { stoppableHolders } from './allocate.ts';
import { activeRdma, fabricOf } from './fabric.ts';
import { hostBlockers } from './host-blockers.ts';
import { memoryTroubles, RESERVE_BYTES } from './memory-items.ts';
import { isUnified } from './need.ts';
import { clockIsOff, ownNameOnLoopback, swapUsedUp } from './warnings.ts';

type CheckInput = {
  readonly cluster: Cluster;
  /** The nodes looked at, by rank where there is a recipe; the whole cluster when left out. */
  readonly nodes?: readonly Node[] | undefined;
  readonly recipe?: Recipe | undefined;
  /** What `up` would do with that recipe, where all nodes were reached. */
  readonly plan?: Plan | undefined;
  readonly facts: readonly NodeFacts[];
};

/** A verdict with its remedy for everything that was looked at; what blocks comes first. */
export function check(input: CheckInput): readonly CheckItem[] {
  const nodes = input.nodes ?? input.cluster.nodes;
  const items = [
    ...(input.plan === undefined ? hostItems(nodes, input.facts) : planItems(input.plan)),
    ...input.facts.flatMap((facts) => (facts.reached ? nodeItems(facts, nodes, input) : [])),
  ];
  const order = ['blocks', 'warning', 'unknown', 'fine'] as const;
  return order.flatMap((level) => unique(items.filter((item) => item.level === level)));
}

function hostItems(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly CheckItem[] {
  return hostBlockers(nodes, facts).map(({ cause, node, title, advice }) => ({
    level: 'blocks',
    topic: topicOf(cause),
    node: node ?? '',
    title,
    remedy: advice[0],
  }));
}

function planItems(plan: Plan): readonly CheckItem[] {
  const blocks = plan.blockers.map(
    ({ cause, node, title, advice }): CheckItem => ({
      level: 'blocks',
      topic: topicOf(cause),
      node: node ?? '',
      title,
      remedy: advice[0],
    }),
  );
  const inTheWay = plan.phases
    .flatMap((phase) => phase.steps)
    .flatMap(({ target, node, why, undo, title }): readonly CheckItem[] => {
      if (target === undefined) return [];
      const back = undo.kind === 'irreversible' ? ' It cannot be brought back.' : '';
      return [
        {
          level: 'blocks',
          topic: /port \d/.test(why) ? 'ports' : 'holders',
          node,
          title: `${target.name} (${target.what}) is in the way: ${gib(target.bytes)}.`,
          remedy: `firstlight up asks whether to ${title.charAt(0).toLowerCase()}${title.slice(1)}.${back}`,
        },
      ];
    });
  const warnings = plan.warnings.map(
    ({ node, title, advice }): CheckItem => ({
      level: 'warning',
      topic: 'plan',
      node: node ?? '',
      title,
      remedy: advice,
    }),
  );
  const fits = plan.memory
    .filter((memory) => memory.verdict === 'fits' && plan.state !== 'empty')
    .map(
      (memory): CheckItem => ({
        level: 'fine',
        topic: 'memory',
        node: memory.node,
        title: `The plan needs ${gib(memory.sumBytes)}, give or take ${gib(memory.errorBytes)}, and ${gib(memory.canGetAfterClearingBytes)} can be had.`,
        remedy: undefined,
      }),
    );
  return [...blocks, ...inTheWay, ...warnings, ...fits];
}

function topicOf(cause: string): string {
  if (cause === 'host-unreachable') return 'ssh';
  if (cause.startsWith('insufficient')) return 'memory';
  if (cause.startsWith('gpu')) return 'gpus';
  if (cause.startsWith('image') || cause.startsWith('docker') || cause === 'engine-missing') return 'image';
  if (cause.startsWith('model') || cause.startsWith('weights')) return 'model';
  if (cause.startsWith('port')) return 'ports';
  if (cause.startsWith('tp-') || cause.startsWith('more-ranks')) return 'layout';
  if (cause.startsWith('wrong-network') || cause === 'fabric-link-down') return 'fabric';
  return cause === 'duplicate-host-ip' ? 'ssh' : cause === 'needs-replace' ? 'ranks' : 'plan';
}

function nodeItems(facts: ReachedFacts, nodes: readonly Node[], input: CheckInput): readonly CheckItem[] {
  const item = (level: CheckItem['level'], topic: string, title: string, remedy?: string): CheckItem => ({
    level,
    topic,
    node: facts.node,
    title,
    remedy,
  });
  return [
    item('fine', 'ssh', `It answered in ${facts.milliseconds} ms.`),
    ...unknownItems(facts, item),
    ...memoryItems(facts, input, item),
    ...gpuItems(facts, item),
    ...nameItems(facts, input, item),
    ...networkItems(facts, nodes, input, item),
    ...(input.plan === undefined ? clockItems(facts, item) : []),
    ...sudoItems(facts, item),
    ...diskItems(facts, item),
    ...lockItems(facts, item),
  ];
}

type Item = (level: CheckItem['level'], topic: string, title: string, remedy?: string) => CheckItem;

/** Unknown is not zero, and not fine: each is said with its reason. */
function unknownItems(facts: ReachedFacts, item: Item): readonly CheckItem[] {
  const parts = {
    host: facts.host,
    memory: facts.memory,
    gpus: facts.gpus,
    holders: facts.holders,
    containers: facts.containers,
    ports: facts.ports,
    fabric: facts.interfaces,
    rdma: facts.rdma,
    disk: facts.disks,
    image: facts.engines,
    clock: facts.clockOffsetSeconds,
    sudo: facts.sudo,
    ranks: facts.ranks,
    ...(facts.model === undefined ? {} : { model: facts.model }),
  };
  return Object.entries(parts).flatMap(([topic, fact]) =>
    fact.known
      ? []
      : [
          item(
            'unknown',
            topic,
            `Not known: ${fact.why}.`,
            topic === 'gpus' ? facts.driver?.trouble?.remedy : undefined,
          ),
        ],
  );
}

function memoryItems(facts: ReachedFacts, input: CheckInput, item: Item): readonly CheckItem[] {
  const memory = valueIf(facts.memory);
  if (memory === undefined) return [];
  const said = `${gib(memory.availableBytes)} of ${gib(memory.totalBytes)} available, ${gib(memory.freeBytes)} free${memory.cachedBytes === undefined ? '' : `, ${gib(memory.cachedBytes)} in files`}`;
  const holders = stoppableHolders(facts);
  const troubles = memoryTroubles(facts, input.recipe?.memory.reserve ?? RESERVE_BYTES).filter(
    // A plan tells of swap and cache itself, and of the GPUs what is not known stands above.
    ({ about }) => about !== 'gpus' && (input.plan === undefined || (about !== 'cache' && about !== 'swap')),
  );
  return [
    item('fine', 'memory', `${said}.`),
    ...troubles.map(({ level, title, remedy }) => item(level, 'memory', title, remedy)),
    ...(input.plan === undefined && holders.length > 0
      ? [
          item(
            'warning',
            'holders',
            `${list(holders.map((holder) => `${holder.name} (${gib(holder.bytes)})`))} hold memory here.`,
            'firstlight plan RECIPE says whether they are in the way.',
          ),
        ]
      : []),
    ...(input.plan === undefined && swapUsedUp(memory)
      ? [
          item(
            'warning',
            'memory',
            'Swap is used up, so it ran out of memory before.',
            'See what was pushed out before a launch; a reboot empties it.',
          ),
        ]
      : []),
  ];
}

function gpuItems(facts: ReachedFacts, item: Item): readonly CheckItem[] {
  const gpus = valueIf(facts.gpus);
  if (gpus === undefined) return [];
  if (gpus.length === 0)
    return [item('warning', 'gpus', 'No GPU was seen.', `On ${facts.node}: nvidia-smi -L`)];
  const names = list([...new Set(gpus.map((gpu) => gpu.name))]);
  const kind = isUnified(facts) ? ', sharing memory with the host' : '';
  return [item('fine', 'gpus', `${gpus.length} x ${names}${kind}, driver ${gpus[0]?.driver ?? 'unknown'}.`)];
}

function nameItems(facts: ReachedFacts, { recipe, plan }: CheckInput, item: Item): readonly CheckItem[] {
  if (!ownNameOnLoopback(facts)) return [];
  const host = valueIf(facts.host);
  const title = `${host?.hostname ?? facts.node} is ${valueIf(host?.ownAddresses)?.join(', ')} in its own /etc/hosts`;
  if (recipe?.network === 'auto' || recipe?.layout.nodes === 1)
    return [item('fine', 'names', `${title}; the recipe gives each rank its own address.`)];
  // The plan has said it as a warning of its own.
  if (plan !== undefined) return [];
  return [
    item(
      'warning',
      'names',
      `${title}; an engine left to itself advertises that address.`,
      'Leave network: auto in recipes, or give the name its fabric address in /etc/hosts.',
    ),
  ];
}

function networkItems(
  facts: ReachedFacts,
  nodes: readonly Node[],
  input: CheckInput,
  item: Item,
): readonly CheckItem[] {
  const rank = nodes.findIndex((node) => node.name === facts.node);
  const fabric = nodes.length < 2 ? undefined : fabricOf(nodes, input.facts)[rank];
  const rdma = activeRdma(facts);
  const all = valueIf(facts.rdma);
  return [
    ...(fabric?.interfaceName === undefined
      ? []
      : [
          item(
            'fine',
            'fabric',
            `${fabric.address} on ${fabric.interfaceName}${fabric.given ? '' : ', found by looking'}.`,
          ),
        ]),
    ...(rdma.length > 0
      ? [item('fine', 'rdma', `${rdma.length} of ${all?.length} RDMA devices active: ${list(rdma)}.`)]
      : []),
    ...(all !== undefined && all.length > 0 && rdma.length === 0 && input.plan === undefined
      ? [
          item(
            'warning',
            'rdma',
            'No RDMA device is active with an address, so ranks would use sockets.',
            `On ${facts.node}: rdma link; ip -br addr`,
          ),
        ]
      : []),
  ];
}

function clockItems(facts: ReachedFacts, item: Item): readonly CheckItem[] {
  const offset = valueIf(facts.clockOffsetSeconds);
  if (offset === undefined) return [];
  return clockIsOff(offset)
    ? [
        item(
          'warning',
          'clock',
          `Its clock is ${Math.abs(offset).toFixed(0)} s ${offset > 0 ? 'ahead' : 'behind'}.`,
          `On ${facts.node}: timedatectl set-ntp true`,
        ),
      ]
    : [item('fine', 'clock', `Its clock is ${Math.abs(offset).toFixed(1)} s off.`)];
}

function sudoItems(facts: ReachedFacts, item: Item): readonly CheckItem[] {
  const sudo = valueIf(facts.sudo);
  if (sudo === undefined) return [];
  if (sudo === 'free') return [item('fine', 'sudo', 'Root can be had without a password.')];
  if (sudo === 'password')
    return [item('fine', 'sudo', 'Root can be had with a password, which is asked when a step needs it.')];
  return [
    item(
      'warning',
      'sudo',
      'Root cannot be had: services, other users’ processes and the page cache stay as they are.',
      'Ask its owner for sudo, or stop those by hand.',
    ),
  ];
}

/** Less than that holds neither a rank's command nor its log. */
const LEAST_HOME_BYTES = 2 ** 20;

/** A home without room is where each rank's command and log would lie, and so no rank starts there. */
function diskItems(facts: ReachedFacts, item: Item): readonly CheckItem[] {
  const home = valueIf(facts.host)?.home;
  return (valueIf(facts.disks) ?? [])
    .filter((disk) => disk.freeBytes < 2 ** 30 || disk.freeBytes < disk.totalBytes / 100)
    .map((disk) =>
      item(
        disk.path === home && disk.freeBytes < LEAST_HOME_BYTES ? 'blocks' : 'warning',
        'disk',
        `${disk.path} has ${gib(disk.freeBytes)} of ${gib(disk.totalBytes)} left.`,
        `On ${facts.node}: du -xh --max-depth=1 ${disk.path}`,
      ),
    );
}

/** Without a lock `up` does nothing; where our records are not known, that is said of the ranks. */
function lockItems(facts: ReachedFacts, item: Item): readonly CheckItem[] {
  if (facts.lock.known || !facts.ranks.known) return [];
  return [item('blocks', 'lock', `No lock: ${facts.lock.why}.`, `On ${facts.node}: df -h /tmp; ls -ld /tmp`)];
}

/** One thing is said once, although both the plan and the facts know it. */
function unique(items: readonly CheckItem[]): readonly CheckItem[] {
  const seen = new Set<string>();
  return items.filter((item) => {
    const key = `${item.node} ${item.topic} ${item.title}`;
    return seen.has(key) ? false : seen.add(key) !== undefined;
  });
}
