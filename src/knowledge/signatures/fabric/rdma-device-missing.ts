import { STAGES } from '../../../domain/finding.ts';
import { list } from '../../../domain/units.ts';
import { nodesOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { devicesIn, hcaOf, IB_HCA, IB_NONE, IB_USING, NCCL_NETWORK, usesSockets } from './rdma-setup.ts';

const noVerbs = pattern(
  ['libibverbs', 'librdmacm', 'libmlx5'],
  /Failed to open libibverbs\.so|libibverbs: Warning: (?:no userspace device-specific driver found|couldn't load driver)|libibverbs\.so\S{0,300}: cannot open shared object/,
);
const noDevice = pattern(
  ['/dev/infiniband', 'Unable to open device', 'ibv_open_device', 'IB devices', 'No IB device', 'uverbs'],
  /(?:cannot access|No such file or directory).{0,400}\/dev\/infiniband|\/dev\/infiniband\S{0,300}: No such file|NET\/IB ?: Unable to open device (?<device>[\w.-]{1,200})|ibv_open_device failed|[Ff]ailed to get IB devices? list|No IB devices? (?:found|detected)|uverbs\d{1,20}.{0,400}(?:No such file|Operation not permitted)/,
);
const notFound = pattern(
  [
    'network IB not found',
    'IB device ',
    'Infiniband/RoCE device',
    'is not available, please use one or more of',
  ],
  /[Nn]etwork IB not found|IB device ["']?(?<device>\w[\w.-]{0,200})["']? not found|Unable to find the Infiniband\/RoCE device|network device '(?<ucx>(?:mlx5_|roce)[\w:.-]{1,200})' is not available/,
);
const invalidUsage = pattern(
  ['invalid usage', 'ncclInvalidUsage'],
  /NCCL error.{0,400}\binvalid usage\b|ncclInvalidUsage|NCCL failure.{0,400}invalid usage/,
);
const overwritten = pattern(
  'Overwriting environment variable NCCL_IB_HCA',
  /Overwriting environment variable NCCL_IB_HCA from '(?<own>[^']{0,200})' to '(?<given>[^']{0,200})'/,
);
const versions = pattern('Mismatched NCCL version', /Mismatched NCCL version/);
const slow = pattern(
  'Avg generation throughput',
  /Avg generation throughput: (?<rate>[\d.]{1,200}) tokens\/s, Running: [1-9]/,
);

/** A list of RDMA devices that fits another node: NCCL finds none of them here. */
export const rdmaDeviceList: Signature = {
  name: 'rdma-device-list',
  causes: ['wrong-rdma-device-list'],
  seenOn: 'NCCL 2.28 and 2.30, vLLM 0.26 on Sparks, 2026',
  source: 'NCCL transport/net_ib.cc; UCX uct; perftest; spark-arena/sparkrun#135',
  looks: [
    "Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f1' to 'rocep1s0f0'",
    'NCCL WARN Error: network IB not found.',
  ],
  patterns: [overwritten, notFound, invalidUsage, versions, noVerbs, IB_NONE, IB_USING, IB_HCA],
  match(view) {
    const replaced = view.find(overwritten).find((found) => found.groups['own'] !== found.groups['given']);
    const trouble = [...view.find(notFound), ...view.find(invalidUsage), ...view.find(IB_NONE)];
    if (replaced !== undefined) {
      const after = trouble.filter((found) => found.node === replaced.node);
      return told(view, replaced.node, [replaced, ...after.slice(0, 2)], replaced.groups['given'], 0.92);
    }
    if (view.find(versions).length > 0) return undefined;
    for (const node of nodesOf(view.evidence)) {
      const on = (found: Found) => found.node === node;
      const named = view
        .find(notFound)
        .find((found) => on(found) && /IB device|RoCE device|network device/.test(found.message));
      if (named !== undefined)
        return told(view, node, [named], named.groups['device'] ?? named.groups['ucx'], 0.85);
      const wanted = hcaOf(view, node);
      if (wanted === undefined || view.find(noVerbs).some(on) || view.find(IB_USING).some(on)) continue;
      const none = view.find(IB_NONE).find(on) ?? view.find(notFound).find(on);
      const invalid = view.find(invalidUsage).find(on);
      const said = view.find(IB_HCA).filter(on).slice(-1);
      // A usage that is refused before NCCL comes to the list is about something else.
      if (none === undefined && (invalid === undefined || said.length === 0)) continue;
      const others = view.find(IB_USING).some((found) => !on(found));
      const shown = [...said, none, invalid].filter((found) => found !== undefined);
      return told(view, node, shown, wanted, others || invalid !== undefined ? 0.88 : 0.65);
    }
    return undefined;
  },
};

function told(
  view: View,
  node: string,
  shown: readonly Found[],
  devices: string | undefined,
  confidence: number,
): Match {
  const other = view.find(IB_USING).find((found) => found.node !== node);
  return {
    cause: 'wrong-rdma-device-list',
    node,
    shown: other === undefined ? shown : [...shown, other],
    title: `${node} has no usable RDMA device ${devices === undefined ? 'of the list that NCCL was given' : `by the name ${devices}`}`,
    why: `The name of a device depends on the port that the cable is in${other === undefined ? '' : `; ${other.node} uses ${list(devicesIn(other))}`}. One list for all nodes is right only by chance.`,
    advice: [
      'Take NCCL_IB_HCA (and NCCL_IB_GID_INDEX) out of env of the recipe and set network: auto: each rank then gets the devices of its own node.',
      `On ${node}: rdma link; "NET/IB : Using" in the log of every rank shows that it worked.`,
    ],
    values: devices === undefined ? {} : { devices },
    confidence,
    specificity: 3,
  };
}

/** What an engine says as it gives up for an error of its own. */
const gaveUp = pattern(
  ['Scheduler hit an exception', 'WorkerProc failed to start', 'EngineCore failed to start'],
  /Scheduler hit an exception|WorkerProc failed to start|EngineCore failed to start/,
);

/** NCCL finds no verbs or no device and goes over sockets, or ends because it may not. */
export const rdmaMissing: Signature = {
  name: 'rdma-missing',
  causes: ['rdma-not-available-in-container'],
  seenOn: 'NCCL 2.20 to 2.30 in docker, 2024 to 2026',
  source:
    'NCCL transport/net_ib.cc, misc/ibvsymbols.cc; libibverbs init.c; vllm-project/vllm#42075, sgl-project/sglang#1427',
  looks: [
    'NCCL INFO NET/IB : No device found.',
    'NCCL INFO Failed to open libibverbs.so[.1]',
    'NCCL INFO Using network Socket',
  ],
  whileServing: true,
  patterns: [noVerbs, noDevice, notFound, gaveUp, IB_NONE, IB_USING, IB_HCA, NCCL_NETWORK, slow],
  match(view) {
    if (!severalNodes(view.evidence)) return undefined;
    const nodes = nodesOf(view.evidence);
    const shown: Found[] = [];
    const blind: string[] = [];
    let cannotGoOn = false;
    for (const node of nodes) {
      const on = (found: Found) => found.node === node;
      if (view.find(IB_USING).some(on)) continue;
      const why = view.find(noVerbs).find(on) ?? view.find(noDevice).find(on) ?? view.find(IB_NONE).find(on);
      const sockets = usesSockets(view, node) ?? view.find(notFound).find(on);
      const hard = view.find(noDevice).find(on);
      if (why === undefined || (sockets === undefined && hard === undefined)) continue;
      if (hard !== undefined) cannotGoOn = true;
      blind.push(node);
      shown.push(why, ...(sockets === undefined ? [] : [sockets]));
    }
    const first = shown[0];
    if (first === undefined) return undefined;
    const only = blind.length === 1 && blind[0] !== undefined ? blind[0] : undefined;
    const library = view.find(noVerbs).length > 0;
    const rate = view.find(slow).at(-1);
    // Over TCP it goes on: what ended a rank later, or what its engine gave up for, was something else.
    if (!cannotGoOn && (endedLater(view) || view.find(gaveUp).length > 0)) return undefined;
    const wired = view.find(NCCL_NETWORK).length > 0 && hasFabric(view, shown);
    return {
      cause: 'rdma-not-available-in-container',
      node: only,
      ...(only === undefined ? { atFault: 'both' } : {}),
      shown: [...shown.slice(0, 4), ...(rate === undefined ? [] : [rate])],
      title: `NCCL has no RDMA on ${only ?? list(blind)} and ${view.find(NCCL_NETWORK).length > 0 ? 'goes over TCP' : 'cannot go on'}`,
      why: library
        ? 'The libraries for it (libibverbs and its provider) are not in the image.'
        : 'The container was started without the devices in /dev/infiniband; the fast cable is then used as a plain network.',
      advice: library
        ? [
            'Use an image that has libibverbs1 and ibverbs-providers (rdma-core).',
            '"Using network IB" in the logs of all ranks shows that it worked.',
          ]
        : [
            'Start the container with --device /dev/infiniband, --cap-add IPC_LOCK and --ulimit memlock=-1; firstlight up does so where the host has RDMA devices.',
            `On ${only ?? 'each node'}: ls /dev/infiniband; "Using network IB" in the logs of all ranks shows that it worked.`,
          ],
      values: { missing: library ? 'libibverbs' : 'devices' },
      confidence: library || rate !== undefined || wired ? 0.85 : 0.6,
      specificity: 2,
    };
  },
};

/** Whether a rank ended by itself once the ranks had met. */
function endedLater({ evidence }: View): boolean {
  return evidence.ranks.some(
    ({ ended, stage }) => ended?.requested === false && STAGES.indexOf(stage) > STAGES.indexOf('rendezvous'),
  );
}

/** Names that udev gives to ports of a ConnectX, and what NCCL was told to use. */
function hasFabric(view: View, shown: readonly Found[]): boolean {
  return shown.some((found) => hcaOf(view, found.node) !== undefined) || view.find(IB_NONE).length > 1;
}
