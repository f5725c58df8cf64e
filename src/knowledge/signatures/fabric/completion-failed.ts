import { nodesOf, peerEndedBefore } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { IB_GID_INDEX, queuePairIn } from './rdma-setup.ts';

const completion = pattern(
  'Got completion',
  /Got completion (?:with error (?<old>\d{1,20})|from peer (?<peer>\S{1,300}?)(?:<\d{1,20}>)?,? with (?:error |status=(?:\w{1,80}\()?)(?<status>\d{1,20}))/,
);
const perftest = pattern(
  ['Completion with error', 'Failed status ', 'ransport retry count exceeded'],
  /Failed status (?<status>\d{1,20}): wr_id|Completion with error at (?:client|server)|[Tt]ransport retry count exceeded/,
);
const asynchronous = pattern(
  ['Got async', 'Link is Down', 'Link down', 'NO-CARRIER', 'link is not ready'],
  /Got async (?:error )?event ?: ?port error|(?:mlx5_core|enp|enP|roce)\S{0,300}.{0,400}Link (?:is )?[Dd]own|(?:enp|enP)\S{1,300}: .{0,400}NO-CARRIER/,
);
const counters = pattern(
  [
    'rx_discards_phy',
    'out_of_sequence',
    'packet_seq_err',
    'local_ack_timeout_err',
    'roce_adp_retrans',
    'rx_out_of_buffer',
    'PFC configuration',
    'PFC enabled',
    'pfc-enable',
    'Priority trust state',
    'prio3_pause',
    'prio3_discards',
    'np_cnp_sent',
    'rnr_nak_retry_err',
  ],
  /\b(?<counter>rx_discards_phy|out_of_sequence|packet_seq_err|local_ack_timeout_err|roce_adp_retrans(?:_to)?|rx_out_of_buffer|[rt]x_prio\d_(?:pause|discards)|np_cnp_sent|rnr_nak_retry_err)['"]?\s{0,60}[:=]?\s{1,60}(?<count>\d{1,20})|(?<pfc>PFC (?:configuration|enabled)|pfc-enable\w{0,80}|Priority trust state)/i,
);
const pfcOff = pattern(
  ['PFC', 'pfc', 'lossless', 'Lossless', 'trust state', 'ECN'],
  /(?:PFC|pfc)[\s\w-]{0,200}(?:not enabled|disabled|is off|none|lost)|enabled(?:\s{1,60}0){8}|trust state:? ?pcp|(?:not|no longer) lossless|lossless.{0,400}(?:lost|gone|missing|not configured|reset)|ECN.{0,400}(?:disabled|not enabled)/i,
);
const mtu = pattern(
  ['essage too long', 'Frag needed', 'mtu', 'MTU', 'Mtu'],
  /[Mm]essage too long,? ?mtu ?[=:]? ?(?<tooLong>\d{1,20})|Frag needed and DF set \(mtu = (?<frag>\d{1,20})\)|\b(?:mtu|MTU|Mtu)\b\s{0,60}[:=]?\s{0,60}(?<mtu>\d{3,5})\b|active_mtu:\s{0,60}(?<active>\d{1,20})/,
);

const bigPing = pattern(
  ['-M do', '-s 8972', '-s 8000'],
  /-M do.{0,400}-s ?(?<size>\d{4,5})|-s ?(?<size2>89\d\d).{0,400}-M do/,
);
const lost = pattern('packet loss', /\b100% packet loss/);

/** Status of a completion (rdma-core verbs.h, enum ibv_wc_status) that means something by itself. */
const LENGTH_ERRORS: ReadonlySet<string> = new Set(['1', '2', '9']);
const RETRIES = '12';

/** RDMA began and then packets are not answered, or not taken. Whose fault that is, the lines beside it tell. */
export const completionFailed: Signature = {
  name: 'completion-failed',
  causes: ['wrong-gid-index', 'mtu-mismatch', 'lossless-ethernet-config-lost', 'rdma-cabling-topology'],
  seenOn: 'NCCL 2.7 to 2.30, 2020 to 2026',
  source: 'NCCL transport/net_ib.cc; rdma-core verbs.h; NVIDIA/nccl#426, #1664, #1814',
  looks: ['NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129'],
  patterns: [completion, perftest, asynchronous, counters, pfcOff, mtu, bigPing, lost, IB_GID_INDEX],
  match(view) {
    const all = [...view.find(completion), ...view.find(perftest)].filter(
      (found) => status(found) !== '5' && !peerEndedBefore(view.evidence, found),
    );
    const sizes = differentMtus(view);
    const first = all[0];
    if (first === undefined) return sizes === undefined ? undefined : alone(view, sizes);
    if (sizes !== undefined) return mtuMismatch(view, [first, ...sizes], 0.9);
    if (LENGTH_ERRORS.has(status(first))) return mtuMismatch(view, [first], 0.65);
    const down = view.find(asynchronous)[0];
    if (down !== undefined) return linkDown(view, down, first);
    const lossy = [...view.find(pfcOff), ...view.find(counters).filter(grown)];
    if (lossy.length > 0) return lossless(first, lossy);
    if (status(first) !== RETRIES && status(first) !== '') return undefined;
    return retries(view, first);
  },
};

function status(found: Found): string {
  return found.groups['old'] ?? found.groups['status'] ?? '';
}

function grown(found: Found): boolean {
  return Number(found.groups['count'] ?? 0) > 0;
}

/** Sizes that lie apart: of interfaces of the same kind on two nodes, or a probe that says what it met. */
function differentMtus(view: View): readonly Found[] | undefined {
  const ping = view
    .find(bigPing)
    .find((found) => Number(found.groups['size'] ?? found.groups['size2']) > 1472);
  const gone =
    ping === undefined
      ? undefined
      : view.find(lost).find((found) => found.node === ping.node && found.line.line > ping.line.line);
  if (ping !== undefined && gone !== undefined) return [ping, gone];
  const all = view.find(mtu);
  const met = all.find(
    (found) => found.groups['tooLong'] !== undefined || found.groups['frag'] !== undefined,
  );
  if (met !== undefined) return [met];
  for (const key of ['mtu', 'active'] as const) {
    const said = all.filter(
      (found) =>
        Number(found.groups[key]) >= (key === 'mtu' ? 1280 : 256) &&
        !/\blo\b|docker|veth|br-/.test(found.message),
    );
    const nodes = nodesOf(view.evidence);
    const per = nodes.map((node) => said.filter((found) => found.node === node));
    const [a, b] = [per[0]?.at(-1), per.slice(1).flat().at(-1)];
    const one = (list: readonly Found[]) => new Set(list.map((found) => found.groups[key])).size === 1;
    if (a !== undefined && b !== undefined && one(per[0] ?? []) && a.groups[key] !== b.groups[key])
      return [a, b];
  }
  return undefined;
}

function mtuMismatch(view: View, shown: readonly Found[], confidence: number): Match {
  const sizes = [
    ...new Set(
      shown
        .map(
          (found) =>
            found.groups['mtu'] ?? found.groups['active'] ?? found.groups['tooLong'] ?? found.groups['frag'],
        )
        .filter((size) => size !== undefined),
    ),
  ];
  return {
    cause: 'mtu-mismatch',
    node: undefined,
    atFault: 'network',
    shown: shown.slice(0, 4),
    title: `The two ends of the link between ${nodesOf(view.evidence).join(' and ')} take packets of different sizes`,
    why: `Small messages pass and large ones do not${sizes.length > 0 ? `; MTU ${sizes.join(' and ')} was seen` : ''}.`,
    advice: [
      'On each node, for the interface of the fabric: ip -br link; sudo ip link set dev INTERFACE mtu 9000 (the same on both ends, and on a switch between them)',
      'From one node to the other: ping -M do -s 8972 -c 3 ADDRESS must be answered.',
    ],
    values: sizes[0] === undefined ? {} : { mtu: sizes.join(',') },
    confidence,
    specificity: confidence > 0.8 ? 3 : 2,
  };
}

const hang = /timed out|timeout|hang|stuck|Message too long/i;

/** Different sizes without a failed completion count only where somebody waits. */
function alone(view: View, sizes: readonly Found[]): Match | undefined {
  const met = sizes[0];
  if (met === undefined || (view.stalled === undefined && sizes.length < 2 && !hang.test(met.message)))
    return undefined;
  return view.serves ? undefined : mtuMismatch(view, sizes, sizes.length > 1 ? 0.7 : 0.8);
}

function linkDown(view: View, down: Found, first: Found): Match {
  return {
    cause: 'rdma-cabling-topology',
    node: undefined,
    atFault: 'network',
    shown: [down, first],
    title: `The link of ${down.node} went down while NCCL used it`,
    why: 'The RDMA port reports an error of its link, and then packets are no longer answered.',
    advice: [
      'See that the cable sits firmly at both ends, or use another one.',
      `On ${down.node}: rdma link; ip -s -br link; sudo dmesg -T | grep -i mlx5`,
    ],
    confidence: nodesOf(view.evidence).length > 1 ? 0.75 : 0.6,
    specificity: 3,
  };
}

function lossless(first: Found, lossy: readonly Found[]): Match {
  return {
    cause: 'lossless-ethernet-config-lost',
    node: undefined,
    atFault: 'network',
    shown: [...lossy.slice(0, 3), first],
    title: `Packets between the nodes get lost, and RoCE on ${first.node} gave up repeating them`,
    why: 'RoCE wants an Ethernet that does not drop: flow control by priority (PFC), trust in DSCP and ECN, the same on both NICs and the switch. Such settings go with a reboot when they are not made to stay.',
    advice: [
      'On each node: sudo mlnx_qos -i INTERFACE; ethtool -S INTERFACE | grep -e pause -e discard; rdma statistic show',
      'Set trust to DSCP and PFC for the priority of RoCE again, on the NICs and on the switch; the counters then stand still under load.',
    ],
    confidence: 0.8,
    specificity: 3,
  };
}

function retries(view: View, first: Found): Match | undefined {
  const early = ['start', 'rendezvous', 'weights'].includes(first.stage);
  const pair = queuePairIn(first.message);
  const given = view.find(IB_GID_INDEX).slice(0, 2);
  const index = given[0]?.groups['index'] ?? given[0]?.groups['given'];
  return {
    cause: 'wrong-gid-index',
    node: undefined,
    atFault: 'both',
    shown: [first, ...given],
    title: `RoCE packets of ${first.node} are not answered, as with a GID of another RoCE version`,
    why: `The completion has status 12: every repetition went unanswered. The connection itself is made over TCP, so it comes up all the same${pair.local === undefined ? '' : `; the GID was ${pair.local}`}.`,
    advice: [
      'On each node: show_gids; take the index of the entry with RoCE v2 and the fabric address, or leave NCCL_IB_GID_INDEX unset with NCCL 2.21 and later.',
      'If the GIDs are right: ib_write_bw between the nodes tells whether RoCE passes at all; then look at cable, MTU and switch.',
    ],
    values: index === undefined ? {} : { index },
    confidence: early ? 0.65 : 0.55,
    specificity: 2,
    alternatives: [
      { cause: 'lossless-ethernet-config-lost', confidence: early ? 0.1 : 0.25 },
      { cause: 'rdma-cabling-topology', confidence: 0.2 },
    ],
  };
}
