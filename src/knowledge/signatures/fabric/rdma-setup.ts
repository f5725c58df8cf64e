import { plainAddress } from '../../../domain/address.ts';
import { v4 } from '../network/addresses.ts';
import { type Found, pattern, type View } from '../signature.ts';

const using = pattern(
  ['NET/IB : Using', 'NET/IB: Using'],
  /NET\/IB ?: Using (?<devices>\[\d{1,20}\][^;]{0,1000}?)(?:\s{0,60}\[(?:RO|RRO)\])?\s{0,60};? ?(?:OOB|$)/,
);
const none = pattern(['NET/IB : No device', 'NET/IB: No device'], /NET\/IB ?: No device found/);
const hca = pattern(
  'NCCL_IB_HCA',
  /NCCL_IB_HCA (?:is )?set (?:by environment )?to (?<list>\S{1,300})|NCCL_IB_HCA=(?<given>[^\s'"]{1,200})/,
);
const gidIndex = pattern(
  'NCCL_IB_GID_INDEX',
  /NCCL_IB_GID_INDEX (?:is )?set by environment to (?<index>\d{1,20})|NCCL_IB_GID_INDEX=(?<given>\d{1,20})/,
);
const network = pattern(
  ['Using network ', 'Initialized NET plugin', 'Assigned NET plugin'],
  /Using network (?<name>\w{1,80})|(?:Initialized|Assigned) NET plugin (?<plugin>\w{1,80})/,
);

/** "NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB …" */
export const IB_USING = using;
/** "NET/IB : No device found." */
export const IB_NONE = none;
/** The list of devices that NCCL was given. */
export const IB_HCA = hca;
/** The GID index that NCCL was given. */
export const IB_GID_INDEX = gidIndex;
/** "Using network Socket", "Using network IB" */
export const NCCL_NETWORK = network;

/** Device names of a line of `IB_USING`, in its order. */
export function devicesIn(found: Found): readonly string[] {
  return [...(found.groups['devices'] ?? '').matchAll(/\[\d+\]\{?([\w.-]+)/g)].map(([, name = '']) => name);
}

/** What NCCL_IB_HCA was on a node, by NCCL's own word, the log's, or the command's. */
export function hcaOf(view: View, node: string): string | undefined {
  const said = view.find(hca).findLast((found) => found.node === node);
  return said?.groups['list'] ?? said?.groups['given'] ?? view.env(node, 'NCCL_IB_HCA');
}

/** Whether NCCL on the node says that it goes over sockets. */
export function usesSockets(view: View, node: string): Found | undefined {
  return view.find(network).find((found) => found.node === node && found.groups['name'] === 'Socket');
}

/** What is printed with a failed queue pair: its device, GID index and both GIDs. */
export type QueuePair = {
  readonly device: string | undefined;
  readonly index: string | undefined;
  readonly local: string | undefined;
  readonly remote: string | undefined;
};

/** The GIDs and the device of an NCCL warning, in the forms of NCCL 2.20 to 2.30. */
export function queuePairIn(message: string): QueuePair {
  const one = (form: RegExp) => form.exec(message)?.[1];
  return {
    device: one(/(?:on dev|hca|device) ([\w.-]+)/),
    index: one(/local GID index (\d+)/),
    local: one(/local ?gids? ?((?:::|[0-9a-f])[0-9a-f:.]*)/i),
    remote: one(/remote ?gids? ?((?:::|[0-9a-f])[0-9a-f:.]*)/i),
  };
}

/** How the two GIDs of a queue pair stand to each other. */
export function gidsFit({
  local,
  remote,
}: QueuePair): 'same-network' | 'other-network' | 'other-kind' | 'unknown' {
  if (local === undefined) return 'unknown';
  if (/^::$|^(?:0{1,4}:)+0{0,4}$/.test(local)) return 'other-kind';
  if (remote === undefined) return 'unknown';
  const [a, b] = [v4(plainAddress(local)), v4(plainAddress(remote))];
  if ((a === undefined) !== (b === undefined)) return 'other-kind';
  // Both link-local: the entries at the beginning of the table, not those of the addresses that the nodes were given.
  if (a === undefined) return /^fe80:/i.test(local) || /^fe80:/i.test(remote) ? 'other-kind' : 'unknown';
  return a === b ? 'same-network' : 'other-network';
}

/** "rocep1s0f0" and "roceP2p1s0f0" are one cage: what stands behind the last f tells which. */
export function cageOf(device: string): string {
  return /f(\d+)$/.exec(device)?.[1] ?? device;
}
