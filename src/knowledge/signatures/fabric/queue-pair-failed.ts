import { list } from '../../../domain/units.ts';
import { nodesOf, peerOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import {
  cageOf,
  devicesIn,
  gidsFit,
  hcaOf,
  IB_GID_INDEX,
  IB_HCA,
  IB_USING,
  queuePairIn,
} from './rdma-setup.ts';

const failed = pattern(
  'ibv_modify_qp failed',
  /ibv_modify_qp failed with (?:error )?(?:(?<number>\d{1,20}) )?(?<reason>[A-Z][A-Za-z ]{0,200}?)(?: errno (?<errno>\d{1,20}))?(?:,|\.|$)/,
);
const channel = pattern(
  'via NET/IB/',
  /: (?<from>\d{1,20})\[[\da-f]{1,200}\] -> (?<to>\d{1,20})\[[\da-f]{1,200}\] \[(?<way>send|receive)\] via NET\/IB\/(?<nic>\d{1,20})/,
);
const ranks = pattern(' nranks ', /\brank \d{1,20} nranks (?<count>\d{1,20})/);
const crossNic = pattern('NCCL_CROSS_NIC', /NCCL_CROSS_NIC(?:=| set by environment to )(?<value>\d)/);

/** A row of show_gids: device, port, index, GID, IPv4 address, version. */
const gidRow = pattern(
  ['v2', 'RoCE v2'],
  /^\s{0,60}(?<device>(?:roce|mlx5_|bnxt)\w{0,80})\s{1,60}\d{1,20}\s{1,60}(?<index>\d{1,20})\s{1,60}[0-9a-f:]{10,}\s{1,60}(?:(?<address>\d{1,20}\.\d{1,20}\.\d{1,20}\.\d{1,20})\s{1,60})?v2\b|(?<device2>(?:roce|mlx5_)\w{1,80}).{0,400}\bGID(?: index)?\s{0,60}[:=]?\s{0,60}(?<index2>\d{1,20}).{0,400}RoCE ?v2/,
);

/** A queue pair between two RDMA ports could not be brought up: the two GIDs tell why. */
export const queuePairFailed: Signature = {
  name: 'queue-pair-failed',
  causes: ['wrong-rdma-device-list', 'wrong-gid-index', 'rdma-cabling-topology'],
  seenOn: 'NCCL 2.5 to 2.30, 2020 to 2026',
  source: 'NCCL misc/ibvwrap.cc; NVIDIA/nccl#426, #2013, NVIDIA/nccl-tests#185; eugr/spark-vllm-docker#252',
  looks: [
    'NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.1.0.1, remote GID ::ffff:10.2.0.2',
  ],
  patterns: [failed, channel, ranks, crossNic, gidRow, IB_USING, IB_HCA, IB_GID_INDEX],
  match(view) {
    const all = view.find(failed);
    const first = all[0];
    const table = offTable(view);
    if (first === undefined) return table;
    const pair = queuePairIn(first.message);
    const fit = gidsFit(pair);
    const shown = [first, ...all.filter((found) => found.node !== first.node).slice(0, 2)];
    const reason = (first.groups['reason'] ?? '').toLowerCase();
    const values = {
      ...(pair.device === undefined ? {} : { device: pair.device }),
      ...(pair.index === undefined ? {} : { index: pair.index }),
    };
    if (table !== undefined) return { ...table, shown: [first, ...table.shown] };
    if (fit === 'other-network') {
      return crossesRails(view) || severalLegs(view)
        ? topology(view, first, shown, values)
        : devices(view, first, shown, values, 0.85);
    }
    const gid = /invalid argument|no data|no such device|no such file/.test(reason);
    const indexes = new Set(
      view.find(IB_GID_INDEX).map((found) => found.groups['index'] ?? found.groups['given']),
    );
    if (fit === 'other-kind' || gid || indexes.size > 1)
      return gidIndex(view, first, shown, values, fit === 'other-kind' ? 0.9 : 0.7);
    if (severalLegs(view)) return topology(view, first, shown, values);
    const cages = new Set([...(hcaOf(view, first.node) ?? '').matchAll(/f(\d)\b/g)].map(([, cage]) => cage));
    return fit === 'same-network' && cages.size < 2
      ? gidIndex(view, first, shown, values, 0.5)
      : devices(view, first, shown, values, 0.6);
  },
};

/** The index that NCCL was given is not where a device of the node has its RoCE v2 address. */
function offTable(view: View): Match | undefined {
  const rows = view.find(gidRow);
  for (const node of nodesOf(view.evidence)) {
    const own = rows.filter((found) => found.node === node);
    const given =
      view.find(IB_GID_INDEX).findLast((found) => found.node === node) ??
      (own.length > 0 ? view.find(IB_GID_INDEX)[0] : undefined);
    const index = given?.groups['index'] ?? given?.groups['given'];
    if (given === undefined || index === undefined || view.serves) continue;
    const byDevice = new Map<string, Found[]>();
    for (const row of own) {
      const device = row.groups['device'] ?? row.groups['device2'] ?? '';
      if (row.groups['device'] !== undefined && row.groups['address'] === undefined) continue;
      byDevice.set(device, [...(byDevice.get(device) ?? []), row]);
    }
    const off = [...byDevice].find(([, list]) =>
      list.every((row) => (row.groups['index'] ?? row.groups['index2']) !== index),
    );
    if (off === undefined) continue;
    const [device, list] = off;
    const right = list.map((row) => row.groups['index'] ?? row.groups['index2']).join(' or ');
    return {
      cause: 'wrong-gid-index',
      node,
      shown: [given, ...list.slice(0, 2)],
      title: `On ${node} the RoCE v2 address of ${device} is at index ${right}, and NCCL was told ${index}`,
      why: 'One index counts for all devices of a rank, and the tables differ between devices, nodes and boots.',
      advice: [
        'Leave NCCL_IB_GID_INDEX unset, so that NCCL chooses on each node and device.',
        `On ${node}: show_gids shows where the address is after each boot.`,
      ],
      values: { device, index },
      confidence: 0.88,
      specificity: 3,
    };
  }
  return undefined;
}

/** A ring that leaves by one NIC and comes in by another; or the user let it. */
function crossesRails(view: View): boolean {
  const seen = view.find(channel);
  const crossed = seen.some((sent) =>
    seen.some(
      (got) =>
        sent.groups['way'] === 'send' &&
        got.groups['way'] === 'receive' &&
        sent.groups['from'] === got.groups['from'] &&
        sent.groups['to'] === got.groups['to'] &&
        sent.groups['nic'] !== got.groups['nic'],
    ),
  );
  return crossed || view.find(crossNic).some((found) => found.groups['value'] !== '0');
}

/** Three and more nodes with cables from each to each, as on Sparks without a switch. */
function severalLegs(view: View): boolean {
  const counts = view.find(ranks).map((found) => Number(found.groups['count']));
  return nodesOf(view.evidence).length > 2 || counts.some((count) => count > 2 && count < 8);
}

function topology(view: View, first: Found, shown: readonly Found[], values: Match['values']): Match {
  const { local, remote } = queuePairIn(first.message);
  const ring = severalLegs(view) && !crossesRails(view);
  return {
    cause: 'rdma-cabling-topology',
    node: undefined,
    atFault: 'network',
    shown,
    title: `NCCL paired two RDMA ports that no cable or rail joins${first.node === '' ? '' : `, seen on ${first.node}`}`,
    why: `The queue pair goes from ${plain(local)} to ${plain(remote)}, which lie on two networks. NCCL pairs devices by their place in the list, and the cabling does not follow that order.`,
    advice: ring
      ? [
          'Cable every leg from port 0 of one node to port 1 of the next, then set NCCL_IB_SUBNET_AWARE_ROUTING: "1" in env of the recipe (NCCL 2.28 or later).',
          'On each node: rdma link; ip -br addr. firstlight plan shows over which interface each node reaches the others.',
        ]
      : [
          'Set NCCL_CROSS_NIC: "0" in env of the recipe, so that a ring stays on one rail.',
          'firstlight up shows "Connected all rings" in the logs of all ranks when it worked.',
        ],
    values: { ...values, remedy: ring ? 'subnet-aware' : 'cross-nic' },
    confidence: 0.85,
    specificity: 3,
    alternatives: [{ cause: 'wrong-rdma-device-list', confidence: 0.3 }],
  };
}

function devices(
  view: View,
  first: Found,
  shown: readonly Found[],
  values: Match['values'],
  confidence: number,
): Match {
  const used = view.find(IB_USING).find((found) => found.node === first.node);
  const names = used === undefined ? [] : devicesIn(used);
  const cages = new Set(names.map(cageOf));
  const { local, remote } = queuePairIn(first.message);
  return {
    cause: 'wrong-rdma-device-list',
    node: undefined,
    atFault: 'both',
    shown: used === undefined ? shown : [...shown, used],
    title: `NCCL on ${first.node} tries an RDMA port that does not lead to ${peerOf(view.evidence, first.node) ?? 'the other node'}`,
    why: `It wanted to reach ${plain(remote)} from ${plain(local)}${names.length > 1 && cages.size > 1 ? `: the list holds ${list(names)}, and not all of these ports are wired to the peer` : ''}.`,
    advice: [
      'Name in NCCL_IB_HCA only the devices of the port that carries the cable, on each node its own; network: auto in the recipe does that.',
      'On each node: rdma link; cat /sys/class/infiniband/*/ports/1/state',
    ],
    ...(values === undefined ? {} : { values }),
    confidence,
    specificity: 3,
    alternatives: [{ cause: 'rdma-cabling-topology', confidence: 0.3 }],
  };
}

function gidIndex(
  view: View,
  first: Found,
  shown: readonly Found[],
  values: Match['values'],
  confidence: number,
): Match {
  const { local, remote, index } = queuePairIn(first.message);
  const reporters = new Set(shown.map((found) => found.node));
  const one = reporters.size === 1 && nodesOf(view.evidence).length > 1;
  return {
    cause: 'wrong-gid-index',
    node: one ? first.node : undefined,
    ...(one ? {} : { atFault: 'both' }),
    shown: [...shown, ...view.find(IB_GID_INDEX).slice(0, 2)],
    title: `The GID ${index === undefined ? 'that NCCL took' : `at index ${index}`} on ${first.node} is not the one of its RoCE v2 address`,
    why:
      local === undefined
        ? 'The queue pair was refused, as it is where the GID is empty or of another RoCE version.'
        : `It went from ${plain(local)} to ${plain(remote)}, which do not fit together.`,
    advice: [
      'Leave NCCL_IB_GID_INDEX unset, so that NCCL chooses on each node; the numbers differ between nodes, devices and boots.',
      `On ${first.node}: show_gids, or grep . /sys/class/infiniband/*/ports/1/gid_attrs/types/* 2>/dev/null`,
    ],
    ...(values === undefined ? {} : { values }),
    confidence,
    specificity: confidence > 0.6 ? 3 : 2,
    alternatives: [{ cause: 'wrong-rdma-device-list', confidence: 0.3 }],
  };
}

function plain(gid: string | undefined): string {
  return gid?.replace(/^::ffff:(?=\d+\.)/i, '') ?? 'an unknown address';
}
