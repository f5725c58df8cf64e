import { type Found, type Pattern, pattern, type View } from '../signature.ts';

const GIB = 2 ** 30;

/** "Mem:  121Gi  14Gi  3.2Gi  90Mi  104Gi  106Gi", a row of `free` in whatever unit. */
const freeRow = pattern(
  'Mem:',
  /^\s{0,60}(?:\S{1,300} )?Mem:\s{1,60}(?<total>[\d.]{1,200})(?<t>[KMGT]?i?B?)\s{1,60}(?<used>[\d.]{1,200})(?<u>[KMGT]?i?B?)\s{1,60}(?<free>[\d.]{1,200})(?<f>[KMGT]?i?B?)\s{1,60}[\d.]{1,200}[KMGT]?i?B?\s{1,60}(?<cache>[\d.]{1,200})(?<c>[KMGT]?i?B?)\s{1,60}(?<available>[\d.]{1,200})(?<a>[KMGT]?i?B?)/,
);
/** A line of /proc/meminfo, or a watcher's word in the same names. */
const meminfo = pattern(
  ['MemTotal', 'MemFree', 'MemAvailable', 'Cached', 'CmaFree', 'SwapFree'],
  /\b(?<key>MemTotal|MemFree|MemAvailable|Cached|SwapFree)\b['"]?\s{0,60}(?:[:=]|is|was|at)?\s{0,60}(?<size>[\d.]{1,200})\s{0,60}(?<unit>kB|KiB|MB|MiB|GB|GiB|Gi|G)\b/,
);
/** "page cache: 96.2 GiB", "buff/cache 104G" in prose. */
const cacheWord = pattern(
  ['age cache', 'pagecache', 'buff/cache', 'buffers/cache', 'file cache'],
  /(?:\b[Pp]age ?cache|buff(?:er)?s?\/cache|\bfile cache)\b[^\d\n]{0,24}(?<size>\d[\d.]{0,200})\s{0,60}(?<unit>GiB|GB|Gi|G|MiB|MB)\b|(?<size2>\d[\d.]{0,200})\s{0,60}(?<unit2>GiB|GB|Gi|G)\b (?:of |in |is |are )?(?:clean )?(?:page ?cache|buff\/cache|file cache)/,
);
/** "61.2 GiB available", "available memory: 61 GiB". */
const availableWord = pattern(
  ['vailable memory', 'iB available', 'GB available', 'emory available'],
  /\b(?<size>\d[\d.]{0,200}) ?(?<unit>GiB|GB|MiB) (?:of memory )?(?:is |are )?available\b|(?:[Aa]vailable memory|[Mm]emory available)(?: is| now)?[:= ]{1,200}(?<size2>\d[\d.]{0,200}) ?(?<unit2>GiB|GB|Gi|G|MiB)\b/,
);
/** A row of nvidia-smi's process table. */
const row = pattern(
  'MiB |',
  /^\|\s{1,60}\d{1,20}\s{1,60}\S{1,300}\s{1,60}\S{1,300}\s{1,60}(?<pid>\d{1,20})\s{1,60}[CG+]{1,200}\s{1,60}(?<name>\S.{0,400}?)\s{1,60}(?<mib>\d{1,20})MiB \|\s{0,60}$/,
);
/** A row of nvidia-smi --query-compute-apps: "7741, VLLM::EngineCore, 104277 MiB", or with the size in the middle. */
const csvRow = pattern(
  ' MiB',
  /^(?:GPU-[\w-]{1,200}, ?)?(?<pid>\d{1,20}), ?(?:(?<name>[^,]{1,200}), ?(?<mib>\d{1,20}) MiB|(?<mib2>\d{1,20}) MiB, ?(?<name2>\S.{0,400}))$/,
);
const noProcess = pattern('No running processes found', /No running processes found/);
const namedPid = pattern(
  ' memory in use',
  /Process (?<pid>\d{1,20}) has (?<gib>[\d.]{1,200}) GiB memory in use/,
);
const reserve = pattern(
  ['min_free_kbytes', 'watermark_scale_factor'],
  /min_free_kbytes['"]?\s{0,60}[=:]?\s{0,60}(?:is |set to |raised to )?(?<kib>\d{1,20})|watermark_scale_factor['"]?\s{0,60}[=:]?\s{0,60}(?<scale>\d{1,20})/,
);
const zone = pattern(' min:', /\bfree:\d{1,20}kB .{0,400}\bmin:(?<kib>\d{1,20})kB\b/);
const driver = pattern(
  [
    'Driver Version',
    'river version',
    'driver_version',
    'driver 5',
    'driver 6',
    'driver-',
    'NVRM version',
    'KMD Version',
    'Kernel Module',
  ],
  /(?:Driver Version ?:|KMD Version ?:|NVRM version:.{0,400}?Kernel Module|Kernel Module for \w{1,80}|\bdriver(?:[ _-]version)?['"]?\s{0,60}[:=]?)\s{0,60}['"]?(?<driver>\d{3}\.\d{2,3}(?:\.\d{1,20})?)/i,
);
const driverChange = pattern(
  ['nvidia-driver-', 'nvidia-dkms', 'nvidia-kernel', 'linux-modules-nvidia'],
  /(?:Upgrade|Unpacking|Setting up|Install|upgraded?|Replaced).{0,400}nvidia-(?:driver|dkms|kernel)\S{0,300}-(?<branch>\d{3})/,
);
const stopped = pattern(
  [
    'Exited (',
    'docker stop',
    'podman stop',
    'docker rm',
    'reclaim',
    'given back',
    'to be released',
    'to be freed',
    'released',
    'defunct',
    'just stopped',
    'just ended',
  ],
  /Exited \(\d{1,20}\) (?:(?:About|Less than) )?(?<ago>\d{1,20}|an?) (?:second|minute)s? ago|\b(?:docker|podman) (?:stop|rm|kill) |(?:still|not yet|being) (?:being )?(?:reclaimed|released|given back)|reclaiming memory|[Ww]ait(?:ing|ed)? .{0,400}memory to (?:be (?:released|freed|reclaimed)|come back)|<defunct>|(?:container|server|engine|process|run)\b.{0,400} (?:was )?(?:just )?(?:stopped|ended|exited|removed) \d{1,20} ?s(?:econds)? ago/,
);
const profiling = pattern(
  'Error in memory profiling',
  /Error in memory profiling\. Initial free memory (?<before>[\d.]{1,200}) ?(?:GiB)?.{0,400}?current free memory (?<now>[\d.]{1,200})/,
);
const gb10 = pattern(
  ['GB10', 'GB200', 'Jetson', 'Thor', 'DGX Spark'],
  /\bGB10\b|DGX Spark|\bThor\b|\bJetson\b/,
);
/** The driver's own word that it got no memory. */
const nvrm = pattern(
  ['NV_ERR_NO_MEMORY', 'NVRM: '],
  /NV_ERR_NO_MEMORY|NVRM: .{0,400}(?:[Oo]ut of memory|failed to allocate|cannot allocate)/,
);

/** What people and watchers print of a node's memory. A signature that asks for readings lists these. */
export const READING_FORMS: readonly Pattern[] = [
  freeRow,
  meminfo,
  cacheWord,
  availableWord,
  row,
  csvRow,
  noProcess,
  namedPid,
  gb10,
];
/** What tells why memory is short although nobody holds it. */
export const SHORTAGE_FORMS: readonly Pattern[] = [reserve, zone, driver, driverChange, stopped, profiling];
export {
  driver as DRIVER,
  driverChange as DRIVER_CHANGE,
  noProcess as NO_PROCESS,
  nvrm as NVRM_NO_MEMORY,
  profiling as PROFILING,
  stopped as JUST_STOPPED,
};

/** Memory of a node as its log has it, GiB; undefined is not told. */
export type Reading = {
  readonly total?: number | undefined;
  readonly used?: number | undefined;
  readonly free?: number | undefined;
  readonly cache?: number | undefined;
  readonly available?: number | undefined;
  readonly found: Found;
};

/** The readings of a node in its log, in their order. */
export function readingsOf(view: View, node: string): readonly Reading[] {
  const on = (found: Found) => found.node === node;
  const rows = view.find(freeRow).filter(on).map(fromRow);
  const lines = view.find(meminfo).filter(on).flatMap(fromLine);
  const words = view.find(cacheWord).filter(on).flatMap(fromWord);
  const available = view.find(availableWord).filter(on).map(fromAvailable);
  return [...rows, ...lines, ...words, ...available].toSorted(
    (a, b) => a.found.line.at - b.found.line.at || a.found.line.line - b.found.line.line,
  );
}

/** The largest page cache that a node's log tells, with the line. */
export function cacheIn(readings: readonly Reading[]): Reading | undefined {
  return readings
    .filter((one) => one.cache !== undefined)
    .toSorted((a, b) => (b.cache ?? 0) - (a.cache ?? 0))[0];
}

/** The least that was available by a node's log, with the line. */
export function leastAvailable(readings: readonly Reading[]): Reading | undefined {
  return readings
    .filter((one) => one.available !== undefined)
    .toSorted((a, b) => (a.available ?? 0) - (b.available ?? 0))[0];
}

function fromRow(found: Found): Reading {
  const { groups } = found;
  const whole = Number(groups['total']);
  const bare = whole < 4096 ? GIB : whole < 4_194_304 ? 2 ** 20 : whole < 2 ** 32 ? 1024 : 1;
  const size = (value: string, unit: string) => toGib(Number(groups[value]), groups[unit] ?? '', bare);
  return {
    total: size('total', 't'),
    used: size('used', 'u'),
    free: size('free', 'f'),
    cache: size('cache', 'c'),
    available: size('available', 'a'),
    found,
  };
}

function fromLine(found: Found): readonly Reading[] {
  const { key = '', size = '', unit = '' } = found.groups;
  const value = toGib(Number(size), unit, 1);
  if (key === 'MemTotal') return [{ total: value, found }];
  if (key === 'MemFree') return [{ free: value, found }];
  if (key === 'MemAvailable') return [{ available: value, found }];
  return key === 'Cached' ? [{ cache: value, found }] : [];
}

function fromWord(found: Found): readonly Reading[] {
  const { size, unit, size2, unit2 } = found.groups;
  return [{ cache: toGib(Number(size ?? size2), unit ?? unit2 ?? '', 1), found }];
}

function fromAvailable(found: Found): Reading {
  const { size, unit, size2, unit2 } = found.groups;
  return { available: toGib(Number(size ?? size2), unit ?? unit2 ?? '', 1), found };
}

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^k/i, 1024],
  [/^M/, 2 ** 20],
  [/^G/, GIB],
  [/^T/, 2 ** 40],
];

function toGib(value: number, unit: string, bare: number): number {
  const factor = UNITS.find(([form]) => form.test(unit))?.[1] ?? (unit === 'B' ? 1 : bare);
  return (value * factor) / GIB;
}

/** Somebody who holds GPU memory by a pasted table or by CUDA's own word. */
export type NamedHolder = {
  readonly pid: string;
  readonly name: string | undefined;
  readonly gib: number;
  readonly found: Found;
};

/** Holders in a node's log, largest first. Rows of nvidia-smi and "Process N has X GiB memory in use". */
export function holdersIn(view: View, node: string): readonly NamedHolder[] {
  const on = (found: Found) => found.node === node;
  const rows = [...view.find(row), ...view.find(csvRow)].filter(on).map((found) => ({
    pid: found.groups['pid'] ?? '',
    name: found.groups['name'] ?? found.groups['name2'],
    gib: Number(found.groups['mib'] ?? found.groups['mib2']) / 1024,
    found,
  }));
  const named = view
    .find(namedPid)
    .filter(on)
    .map((found) => ({
      pid: found.groups['pid'] ?? '',
      name: undefined,
      gib: Number(found.groups['gib']),
      found,
    }));
  return [...rows, ...named].filter(({ gib }) => gib > 0).toSorted((a, b) => b.gib - a.gib);
}

/** The reserve that the kernel keeps by a node's log, GiB, where it was raised beyond what distributions set. */
export function raisedReserve(
  view: View,
  node: string,
): { readonly gib: number; readonly found: Found } | undefined {
  const on = (found: Found) => found.node === node;
  for (const found of [...view.find(reserve), ...view.find(zone)].filter(on)) {
    const gib = (Number(found.groups['kib'] ?? 0) * 1024) / GIB;
    if (gib >= 1) return { gib, found };
    if (Number(found.groups['scale'] ?? 0) >= 100)
      return { gib: Number(found.groups['scale']) * 0.012, found };
  }
  return undefined;
}

/** Whether anything in the node's log says that its GPU shares the host's memory. */
export function saysUnified(view: View, node: string): boolean {
  return view.find(gb10).some((found) => found.node === node);
}

/** GB10 shows 119.7 to 121.7 GiB; no discrete GPU of today has that size. */
export function isGb10Size(totalGib: string | number | undefined): boolean {
  const total = Number(totalGib);
  return total > 117 && total < 124;
}

/**
 * What a message of torch leaves unexplained, GiB: the card's capacity less what is free, what this process has and
 * what it names of others. Undefined where it does not say all of it.
 */
export function unexplained(message: string): { readonly gib: number; readonly total: number } | undefined {
  const total = /total capacity of ([\d.]+) GiB/.exec(message)?.[1];
  const free = /of which ([\d.]+) (GiB|MiB) is free/.exec(message);
  const own = /this process has ([\d.]+) (GiB|MiB) memory in use/.exec(message);
  if (total === undefined || free === null || own === null) return undefined;
  const size = (match: RegExpExecArray) => Number(match[1]) / (match[2] === 'MiB' ? 1024 : 1);
  const others = [...message.matchAll(/Process \d+ has ([\d.]+) (GiB|MiB) memory in use/g)].reduce(
    (sum, [, gib, unit]) => sum + Number(gib) / (unit === 'MiB' ? 1024 : 1),
    0,
  );
  return { gib: Number(total) - size(free) - size(own) - others, total: Number(total) };
}
