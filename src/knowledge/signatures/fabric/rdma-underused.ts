import { nodesOf } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';
import { cageOf, devicesIn, IB_HCA, IB_USING } from './rdma-setup.ts';

const bus = pattern(
  ['Avg bus bandwidth', 'busbw', 'BW average', 'Gb/sec', 'Gbits/sec', 'GB/s', 'Gb/s'],
  /Avg bus bandwidth\s{0,60}:\s{0,60}(?<busbw>[\d.]{1,200})|busbw[^\d]{1,12}(?<busbw2>[\d.]{1,200})|BW average[^\d]{0,14}(?<gbit>[\d.]{1,200})|\b(?<gbit2>[\d.]{1,200}) G(?:bits|b)\/s(?:ec)?\b|(?<gbyte>[\d.]{1,200}) GB\/s\b/,
);
const packet = pattern(
  ['active_mtu', 'Mtu ', 'mtu ', 'MTU'],
  /active_mtu:\s{0,60}(?<active>\d{1,20})|^\s{0,60}Mtu\s{0,60}:\s{0,60}(?<mtu>\d{1,20})\[B\]|\b(?:mtu|MTU)[ :=]{1,200}(?<link>\d{3,5})\b/,
);
const trouble = pattern(
  ['NCCL error', 'ncclSystemError', 'Watchdog caught', 'ibv_modify_qp failed', 'Got completion'],
  /NCCL error|ncclSystemError|Watchdog caught|ibv_modify_qp failed|Got completion/,
);

/** Twin interfaces of one cage: what a Spark needs both of. */
const TWIN = /^roce(?:P\d)?p1s0f\d|^rocep\d+s0f\d|^roceP\d+p\d+s0f\d/;
/** A cable between two Sparks carries about 24 GB/s over both halves, and 13 over one (spark.md 4). */
const WHOLE_BUS = 16;
const HALF_GBIT = 125;

/** RDMA works, over half of the link or in small packets: slower than it could be, and nothing fails. */
export const rdmaUnderused: Signature = {
  name: 'rdma-underused',
  causes: ['rdma-underused-one-half-or-small-mtu'],
  seenOn: 'NCCL 2.28 on pairs of DGX Spark, 2026',
  source: 'facts of DGX Spark: each cage has two PCIe paths of 110 Gb/s; perftest, ibv_devinfo, nccl-tests',
  looks: [
    'NET/IB : Using [0]rocep1s0f0:1/RoCE, without its twin roceP2p1s0f0',
    '# Avg bus bandwidth    : 11.6',
    'active_mtu: 1024 (3)',
  ],
  whileServing: true,
  patterns: [bus, packet, trouble, IB_USING, IB_HCA],
  match(view) {
    if (view.find(trouble).length > 0) return undefined;
    const half = nodesOf(view.evidence).flatMap((node) => halfUsed(view, node) ?? []);
    const small =
      view
        .find(packet)
        .find((found) => Number(found.groups['active'] ?? found.groups['mtu'] ?? 9000) <= 1024) ??
      smallLink(view);
    const measured = view.find(bus).findLast(slow);
    const first = half[0] ?? small;
    if (first === undefined || measured === undefined) return undefined;
    const nodes = new Set([...half, ...(small === undefined ? [] : [small])].map((found) => found.node));
    const node =
      nodes.size === 1 && nodesOf(view.evidence).length > 1 && half.length > 0 ? first.node : undefined;
    return {
      cause: 'rdma-underused-one-half-or-small-mtu',
      node: half.length === 1 ? node : undefined,
      ...(half.length === 1 && node !== undefined ? {} : { atFault: 'both' }),
      shown: [
        first,
        ...half.slice(1, 2),
        ...(small !== undefined && small !== first ? [small] : []),
        measured,
      ],
      title: `NCCL uses ${half.length > 0 ? 'one half of the link' : 'small packets'} on ${node ?? nodesOf(view.evidence).join(' and ')}`,
      why:
        half.length > 0
          ? 'The port of a Spark hangs on two PCIe paths, each with a device of its own and good for 110 Gb/s; only one is in use.'
          : 'The packets are a quarter of what RoCE allows: the interface has an MTU of 1500 or less.',
      advice: [
        half.length > 0
          ? 'Name both devices of the cage in NCCL_IB_HCA (rocep1s0f0,roceP2p1s0f0), or leave it to network: auto in the recipe.'
          : 'On each node: sudo ip link set dev INTERFACE mtu 9000, the same on both ends; ibv_devinfo then shows active_mtu 4096.',
        'The line "NET/IB : Using" lists both, and "Avg bus bandwidth" of nccl-tests passes 20 GB/s, when it worked.',
      ],
      confidence: 0.75,
      specificity: 2,
    };
  },
};

/** One device of a cage that has two, as the only one in use. */
function halfUsed(view: View, node: string): Found | undefined {
  const used = view.find(IB_USING).findLast((found) => found.node === node);
  if (used === undefined) return undefined;
  const names = devicesIn(used).filter((name) => TWIN.test(name));
  const cages = new Set(names.map(cageOf));
  return names.length > 0 && names.length === cages.size ? used : undefined;
}

function smallLink(view: View): Found | undefined {
  return view
    .find(packet)
    .find(
      (found) =>
        Number(found.groups['link'] ?? 9000) <= 1500 && /^(?:\d+: )?(?:enp|enP|roce)/.test(found.message),
    );
}

function slow(found: Found): boolean {
  const { busbw, busbw2, gbit, gbit2, gbyte } = found.groups;
  const bytes = Number(busbw ?? busbw2 ?? gbyte ?? Number.NaN);
  const bits = Number(gbit ?? gbit2 ?? Number.NaN);
  return (bytes > 0.2 && bytes < WHOLE_BUS) || (bits > 2 && bits < HALF_GBIT);
}
