import { nodesOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const file = pattern(
  ['nccl.conf', 'NCCL_CONF_FILE', 'NCCL_TOPO_FILE', 'NCCL_TUNER_CONFIG', 'NCCL_GRAPH_FILE', 'XML'],
  /(?<path>\/\S{0,300}nccl\S{0,300}\.conf)\b|NCCL_CONF_FILE(?: set by environment to |=)(?<path2>\S{1,300})|(?:NCCL_TOPO_FILE|NCCL_GRAPH_FILE|NCCL_TUNER_CONFIG\w{0,80}) set by environment to (?<path3>\S{1,300})|(?:Could not|Unable to|Failed to) (?:open|find|load|parse) XML (?:topology )?file (?<path4>\S{1,300})/,
);
const baked = pattern(
  ['ENV NCCL_', 'baked into the image', 'set in the image', 'from the image'],
  /^ENV (?<name>NCCL_\w{1,80})|(?<name2>NCCL_\w{1,80}).{0,400}(?:baked into|set in|comes? from|from) the image/,
);
const plugin = pattern(
  ['NET/Plugin', 'NET/OFI', 'NET/FasTrak', 'NET/IBext', 'NET/gIB', 'NCCL_NET_PLUGIN', 'TUNER/Plugin'],
  /NET\/(?<kind>OFI|FasTrak|GPUDirectTCPX|gIB)\b.{0,400}(?:failed|error|no (?:eligible|provider|device)|not found|unable|WARN)|NCCL WARN NET\/(?<kind2>OFI|FasTrak|GPUDirectTCPX|gIB)|(?:NET|TUNER)\/Plugin: (?:Failed|failed) to (?:find|load|init)\w{0,80} (?:symbol )?(?<symbol>nccl\w{1,80})/,
);
const applied = pattern(
  'set by environment to',
  /(?<name>NCCL_(?:IB_HCA|SOCKET_IFNAME|IB_GID_INDEX|IB_DISABLE|NET|NET_PLUGIN|P2P_DISABLE|SHM_DISABLE|CROSS_NIC|PROTO|ALGO)) set by environment to (?<value>\S{1,300}?)\.?$/,
);
const failing = pattern(
  [
    'NCCL error',
    'ncclInvalidUsage',
    'ncclSystemError',
    'ncclInternalError',
    'no socket interface found',
    'No device found',
    'unhandled system error',
  ],
  /NCCL error|nccl(?:InvalidUsage|SystemError|InternalError)|no socket interface found|NET\/IB ?: No device found|unhandled system error/,
);

/** A configuration of NCCL's that came with the image, for another machine, decides instead of what was set. */
export const ncclConfig: Signature = {
  name: 'nccl-config',
  causes: ['stale-nccl-config-in-image'],
  seenOn: 'NCCL 2.20 to 2.30 in images of clouds and vendors, 2024 to 2026',
  source: 'NCCL misc/param.cc (/etc/nccl.conf, ~/.nccl.conf), graph/xml.cc, plugin/net.cc; aws-ofi-nccl',
  looks: [
    'NCCL INFO NCCL_TOPO_FILE set by environment to /etc/nccl/topo-a100.xml',
    'cat /etc/nccl.conf: NCCL_IB_HCA=mlx5_0',
  ],
  patterns: [file, baked, plugin, applied, failing],
  match(view) {
    if (view.serves) return undefined;
    const told = view.find(file)[0] ?? view.find(baked)[0];
    // A traceback shows the line that raises it, too.
    const trouble = view.find(failing).find(({ message }) => !/^\s*raise /.test(message));
    const foreign = view.find(plugin)[0];
    const other = otherThanGiven(view);
    const first = told ?? other?.found ?? foreign;
    if (first === undefined) return undefined;
    if (told === undefined && other === undefined && trouble === undefined) return undefined;
    const named = told !== undefined && /\.conf\b|XML|ENV |image/.test(told.message);
    return match(
      view,
      first,
      [first, ...(trouble === undefined ? [] : [trouble])],
      other,
      named || other !== undefined ? 0.82 : 0.65,
    );
  },
};

/** NCCL uses another value than the rank was given. */
function otherThanGiven(
  view: View,
): { readonly found: Found; readonly name: string; readonly given: string } | undefined {
  for (const found of view.find(applied)) {
    const { name = '', value = '' } = found.groups;
    const service = view.evidence.services.find((one) => one.node === found.node)?.env[name];
    const launched = view.evidence.launched?.find((one) => one.node === found.node)?.env?.[name];
    const given = service ?? launched;
    if (given !== undefined && given !== value) return { found, name, given };
  }
  return undefined;
}

function match(
  view: View,
  first: Found,
  shown: readonly Found[],
  other: { readonly name: string; readonly given: string } | undefined,
  confidence: number,
): Match {
  const { path, path2, path3, path4 } = first.groups;
  const where = path ?? path2 ?? path3 ?? path4;
  const all = nodesOf(view.evidence);
  return {
    cause: 'stale-nccl-config-in-image',
    node: all.length > 1 ? undefined : first.node,
    ...(all.length > 1 ? { atFault: 'both' } : {}),
    shown,
    title: `NCCL on ${first.node} follows ${where ?? 'a setting that came with the image'} instead of what was set`,
    why:
      other === undefined
        ? 'Images bring such files for the machines that they were made on; devices and interfaces are named otherwise here.'
        : `The rank was given ${other.name}=${other.given}, and NCCL uses another value.`,
    advice: [
      'Set NCCL_CONF_FILE: /dev/null in env of the recipe, and take NCCL_TOPO_FILE and NCCL_NET_PLUGIN out of the image (NCCL_NET_PLUGIN: none).',
      `In the container on ${first.node}: cat /etc/nccl.conf ~/.nccl.conf; env | grep NCCL`,
    ],
    values: where === undefined ? {} : { path: where },
    confidence,
    specificity: confidence > 0.7 ? 3 : 2,
  };
}
