import type { Found, Match, View } from '../signature.ts';
import {
  DRIVER,
  DRIVER_CHANGE,
  JUST_STOPPED,
  NO_PROCESS,
  PROFILING,
  raisedReserve,
  readingsOf,
} from './memory-readings.ts';

/** What is known where memory is short before any weight is read and nobody is named. */
export type Short = {
  readonly node: string;
  readonly first: Found;
  readonly shown: readonly Found[];
  /** One sentence: what was wanted and seen. */
  readonly missed: string;
  /** GiB; infinite where nothing was asked for by number. */
  readonly lack: number;
  readonly unified: boolean;
};

/** The driver line for GB10 is 580; later branches cost some 4 GiB at the start (MiaAI GLM-5.3-Flash-EXL3 #114). */
const KNOWN_GOOD_BRANCH = 580;
const DRIVER_COST_GIB = 8;
/** What is used by nobody, with little in the page cache, is memory on its way back. */
const UNOWNED_GIB = 16;

/** A reserve, a driver, or memory that is on its way back: what the log itself gives as the reason, or undefined. */
export function shortage(view: View, short: Short): Match | undefined {
  return reserved(view, short) ?? comingBack(view, short) ?? newDriver(view, short);
}

function reserved(view: View, { node, shown, missed, lack }: Short): Match | undefined {
  const reserve = raisedReserve(view, node);
  if (reserve === undefined || (Number.isFinite(lack) && lack > reserve.gib + 2)) return undefined;
  const size = `${reserve.gib.toFixed(1)} GiB`;
  return {
    cause: 'vm-watermark-reserve-too-high',
    node,
    shown: [...shown, reserve.found],
    title: `The kernel of ${node} keeps ${size} in reserve, and the engine misses them`,
    why: `${missed} vm.min_free_kbytes was raised: what lies under that mark counts as neither free nor available.`,
    advice: [
      `On ${node}: sudo sysctl vm.min_free_kbytes=67584, and take the setting out of /etc/sysctl.d (grep -r min_free_kbytes /etc/sysctl*)`,
      'Raise it again, if at all, once the engine serves; "available" of free -g grows by that much at once.',
    ],
    values: { reserve: reserve.gib.toFixed(1) },
    confidence: 0.93,
    specificity: 3,
  };
}

function comingBack(view: View, { node, first, shown, missed }: Short): Match | undefined {
  const on = (found: Found) => found.node === node;
  const rose =
    first.groups['now'] !== undefined && Number(first.groups['now']) > Number(first.groups['before']);
  const profiled = view.find(PROFILING).find(on);
  const before = view
    .find(JUST_STOPPED)
    .filter(on)
    .findLast((found) => found.rank !== first.rank || found.line.line < first.line.line);
  const nobody = view.find(NO_PROCESS).find(on);
  const readings = readingsOf(view, node);
  const unowned = readings.find(
    ({ used = 0, cache = Number.POSITIVE_INFINITY }) => used > UNOWNED_GIB && cache < UNOWNED_GIB,
  );
  const available = readings.flatMap((one) => (one.available === undefined ? [] : [one]));
  const grows =
    available.length > 1 && (available.at(-1)?.available ?? 0) > (available[0]?.available ?? 0) + UNOWNED_GIB;
  const proof =
    before ??
    (grows ? available.at(-1)?.found : nobody !== undefined && unowned !== undefined ? nobody : undefined);
  if (proof === undefined && !rose && profiled === undefined) return undefined;
  return {
    cause: 'gpu-memory-still-being-reclaimed',
    node,
    shown: [
      ...shown,
      ...(proof === undefined ? [] : [proof]),
      ...(unowned === undefined || proof === unowned.found ? [] : [unowned.found]),
    ].slice(0, 5),
    title: `The memory of what ended on ${node} was still on its way back`,
    why: `${missed} Its holder is gone; on unified memory the driver takes one to three minutes to give all of it back.`,
    advice: [
      `On ${node}: watch -n 5 free -g, and start again once "available" no longer grows; firstlight up waits for that.`,
    ],
    confidence: proof !== undefined ? 0.85 : 0.65,
    specificity: proof !== undefined ? 3 : 2,
    alternatives: [{ cause: 'leftover-process-holds-gpu-memory', confidence: 0.15 }],
  };
}

function newDriver(view: View, { node, shown, missed, lack, unified }: Short): Match | undefined {
  const on = (found: Found) => found.node === node;
  const change = view
    .find(DRIVER_CHANGE)
    .filter(on)
    .find((found) => Number(found.groups['branch']) > KNOWN_GOOD_BRANCH);
  const line = view
    .find(DRIVER)
    .filter(on)
    .find((found) => Number.parseInt(found.groups['driver'] ?? '', 10) > KNOWN_GOOD_BRANCH);
  const told = line ?? change;
  const version = line?.groups['driver'] ?? change?.groups['branch'] ?? view.version(node, 'driver') ?? '';
  const newer = told !== undefined || Number.parseInt(version, 10) > KNOWN_GOOD_BRANCH;
  if (!unified || !newer || lack > DRIVER_COST_GIB) return undefined;
  return {
    cause: 'driver-version-regression',
    node,
    shown: told === undefined ? shown : [...shown, told],
    title: `Driver ${version} leaves the engine on ${node} less memory than the 580 line did`,
    why: `${missed} That little is what the newer branches take of unified memory at the start, and it varies from boot to boot.`,
    advice: [
      `On ${node}: go back to the signed 580 packages of the distribution and hold them: sudo apt install nvidia-driver-580-open; sudo apt-mark hold nvidia-driver-580-open`,
      'Or ask for less: lower memory.fraction by 0.05. firstlight plan shows the driver and the memory of each node.',
    ],
    values: { driver: version },
    confidence: 0.85,
    specificity: 3,
  };
}
