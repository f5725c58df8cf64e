import { inOrder, whoSaid } from '../line-signature.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const said = pattern(
  ['emperature', 'hermal', 'THERMTRIP', 'verheat'],
  /critical temperature (?:reached|exceeded)|[Cc]ritical temperature.{0,600}shutting down|THERMTRIP|[Tt]hermal (?:shutdown|trip|emergency)|(?:shut(?:ting)? down|power(?:ed|ing)? off).{0,60}(?:over-?temperature|overheat|thermal|critical temp)|(?:over-?temperature|[Oo]verheat\w{0,80}).{0,60}(?:shut|power)|thermal_zone\d+: critical/i,
);
const slowed = pattern(
  ['Thermal Slowdown', 'hermal_slowdown', 'Package temperature above threshold', 'thermal throttl'],
  /(?:HW|SW) Thermal Slowdown\s*:\s*Active|thermal_slowdown\S{0,300}\s*[:,]\s*Active|Package temperature above threshold|thermal throttl/i,
);
const booted = pattern(
  [
    '-- Boot ',
    '-- Reboot --',
    'uncleanly shut down',
    'system boot',
    ' crash',
    'Booting Linux on physical CPU',
  ],
  /^-- Boot [0-9a-f]{12,32} --|^-- Reboot --|corrupted or uncleanly shut down|reboot\s+system boot|\s- crash\b|Booting Linux on physical CPU/,
);
/** Other reasons for a sudden boot; where one is said it is that. */
const otherwise = pattern(
  [
    'NV_ERR_NO_MEMORY',
    'Out of memory: Killed',
    'Kernel panic',
    'soft lockup',
    'hung_task',
    'systemd-shutdown',
    'Reached target',
    'The system will reboot now',
    'Rebooting.',
    'systemd-logind',
  ],
  /NV_ERR_NO_MEMORY|Out of memory: Killed|Kernel panic|soft lockup|blocked for more than \d+ seconds|systemd-shutdown\[|Reached target .{0,600}(?:Reboot|Power-Off|Shutdown)|The system will (?:reboot|power off) now|System is (?:rebooting|powering down)/,
);
const busy = pattern(
  [
    'Watchdog caught collective operation timeout',
    'throughput',
    'Decode batch',
    'No route to host',
    'Connection closed by peer',
    'ncclRemoteError',
    'Host is down',
  ],
  /Watchdog caught collective|throughput|Decode batch|No route to host|Connection closed by peer|ncclRemoteError|Host is down/,
);

/** A node switched itself off from heat: its kernel says so, or it began anew under load and nothing else explains it. */
export const heat: Signature = {
  name: 'heat',
  causes: ['thermal-shutdown'],
  seenOn: 'two Sparks, August 2026; Linux 6',
  source:
    'Linux drivers/thermal/thermal_core.c; systemd-journald; NVIDIA/open-gpu-kernel-modules#1358; spark.md 1',
  whileServing: true,
  patterns: [said, slowed, booted, otherwise, busy],
  looks: [
    '-- Boot 3f1c2d4e5a6b --',
    'thermal thermal_zone0: critical temperature reached(105 C), shutting down',
  ],
  match(view) {
    const plain = inOrder([said], view)[0];
    if (plain !== undefined) return found(view, [plain, ...view.find(booted).slice(0, 1)], 0.95, true);
    const anew = inOrder([booted], view);
    const hot = view.find(slowed);
    if (anew.length === 0 || view.find(otherwise).length > 0) return undefined;
    const loaded = view.find(busy).length > 0;
    if (!loaded && hot.length === 0) return undefined;
    return found(view, [...anew.slice(0, 2), ...hot.slice(0, 1)], hot.length > 0 ? 0.85 : 0.68, false);
  },
};

function found(
  view: View,
  shown: readonly Found[],
  confidence: number,
  sure: boolean,
): ReturnType<Signature['match']> {
  const first = shown[0];
  if (first === undefined) return undefined;
  const place = whoSaid(first, [first], view);
  const where = place.node ?? first.node;
  return {
    cause: 'thermal-shutdown',
    ...place,
    shown,
    title: sure
      ? `${where} switched itself off because of heat`
      : `${where} began anew under load, most likely from heat`,
    why: sure
      ? 'Its kernel says so.'
      : 'Its journal stops in the middle and a new boot follows, with no word of the kernel: that is how these machines end from heat or want of power.',
    advice: [
      `Cap the clock, on ${where}: sudo nvidia-smi -lgc 0,2100, which costs little; and give it air on all sides.`,
      `What stood there last, on ${where}: journalctl -b -1 -e; last -x reboot shutdown | head`,
      'It has helped when the temperature stays under 85 under load: nvidia-smi --query-gpu=temperature.gpu,clocks.sm,power.draw --format=csv -l 5. If it goes off cool, the adapter or the board is at fault.',
    ],
    confidence,
    specificity: 3,
    ...(sure ? {} : { alternatives: [{ cause: 'unified-memory-exhausted-host-freeze', confidence: 0.2 }] }),
  };
}
