import { sameLog, whoSaid } from '../line-signature.ts';
import { type Found, pattern, type Signature } from '../signature.ts';

/** Under load a GB10 runs at about 2400 MHz and over 60 W; stuck it runs under 1000 MHz at 15 to 30 W. */
const LOW_MHZ = 1400;
const LOW_WATTS = 45;
const BUSY_PERCENT = 80;

const sample = pattern(['MHz'], /(?<mhz>\d{3,4})(?:\.\d+)? ?MHz/);
const table = pattern(['W / '], /\bP\d\s+(?<watts>\d+)W \/ +\S{1,300} .{0,600}?\|\s+(?<busy>\d+)%/);
const load = pattern(
  ['Gpu  ', 'GPU  ', 'gpu_util', 'GPU-Util', 'Utilization'],
  /^\s*(?:Gpu|GPU Utilization|gpu_util)\s*[:=]\s*(?<busy>\d+) ?%/,
);
const told = pattern(
  [
    'stuck',
    'capped',
    'clamped',
    'pinned',
    'low-power',
    'low power',
    'power brake',
    'Power Brake',
    'Power Cap',
    'throttled to',
  ],
  /(?:stuck|capped|clamped|pinned|throttled|locked)\b.{0,30}?(?:\d{3,4} ?MHz|\b\d{1,2} ?W\b)|low[- ]power (?:state|mode)|HW Power Brake Slowdown\s*:\s*Active|SW Power Cap\s*:\s*Active/,
);

/** The GPU is busy and its clock stays low, whatever is asked of it. */
export const lowPower: Signature = {
  name: 'low-power',
  causes: ['gpu-stuck-in-low-power-state'],
  seenOn: 'GB10 with driver 580, July and August 2026',
  source: 'spark.md 1; eugr/spark-vllm-docker#334; minefield trap 124; nvidia-smi --query-gpu and -q',
  whileServing: true,
  patterns: [sample, table, load, told],
  looks: ['P0, 702 MHz, 19.10 W, 96 %, 45'],
  match(view) {
    const low = view.find(sample).filter((found) => isLow(found, view.find(load)));
    const cold = view
      .find(table)
      .filter(({ groups }) => Number(groups['watts']) <= 35 && Number(groups['busy']) >= 90);
    const words = view.find(told);
    const first =
      low[0] ?? cold[0] ?? (words.length > 0 && low.length + cold.length > 0 ? words[0] : undefined);
    if (first === undefined) return undefined;
    const place = whoSaid(first, [first], view);
    const where = place.node ?? first.node;
    const mhz = first.groups['mhz'];
    const watts = wattsIn(first.message) ?? Number(first.groups['watts'] ?? Number.NaN);
    return {
      cause: 'gpu-stuck-in-low-power-state',
      ...place,
      shown: [...[...low, ...cold].slice(0, 3), ...words.slice(0, 1)],
      title: `The GPU of ${where} is stuck in a low-power state${mhz === undefined ? '' : `: ${mhz} MHz under load`}`,
      why: `It is busy and yet takes ${Number.isNaN(watts) ? 'little power' : `${watts} W`}; kernels may even crash in that state. A reboot does not end it.`,
      advice: [
        `Shut ${where} down, pull the plug (and the USB-C cable) for some minutes, and boot again, before any software is changed.`,
        `It has helped when, under load, on ${where}: nvidia-smi --query-gpu=pstate,clocks.sm,power.draw,utilization.gpu --format=csv shows about 2400 MHz and over 60 W. If it stays at 30 W, use the adapter that came with it; then it is a case for the maker.`,
      ],
      values: {
        ...(mhz === undefined ? {} : { mhz }),
        ...(Number.isNaN(watts) ? {} : { watts: String(watts) }),
      },
      confidence: low.length > 0 ? 0.9 : 0.72,
      specificity: 3,
    };
  },
};

function isLow(found: Found, loads: readonly Found[]): boolean {
  const mhz = Number(found.groups['mhz']);
  const busy = percentIn(found.message) ?? nearLoad(found, loads);
  const watts = wattsIn(found.message);
  if (!(mhz >= 100 && mhz < LOW_MHZ) || busy === undefined || busy < BUSY_PERCENT) return false;
  if (/\b(?:mem|Memory|Video|Max|max)\b/.test(found.message)) return false;
  return watts === undefined || watts < LOW_WATTS;
}

/** nvidia-smi -q prints clock and load as lines of their own. */
function nearLoad(found: Found, loads: readonly Found[]): number | undefined {
  if (!/^\s*(?:SM|Graphics)\s*:/.test(found.message)) return undefined;
  const load = loads.find((one) => sameLog(one, found));
  return load === undefined ? undefined : Number(load.groups['busy']);
}

function percentIn(text: string): number | undefined {
  const all = [...text.matchAll(/(\d{1,3}) ?%/g)].map((match) => Number(match[1]));
  return all.length === 0 ? undefined : Math.max(...all);
}

function wattsIn(text: string): number | undefined {
  const match = /(\d+(?:\.\d+)?) ?W\b/.exec(text);
  return match === null ? undefined : Number(match[1]);
}
