import { type Fact, known, type MemoryFacts, type MemoryLines, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing } from './output.ts';
import { parsePressure } from './pressure.ts';

/** /proc/meminfo: the only honest source on a host whose GPU shares its memory; and how long work waited for memory. */
export const meminfoProbe: Probe = {
  name: 'meminfo',
  quick: true,
  timeoutSeconds: 12,
  script: String.raw`cat "$R/proc/meminfo" "$R/proc/pressure/memory"`,
};

/**
 * "MemTotal:  127535084 kB" per line → bytes; total, free and available must be there. What a kernel does not
 * list is undefined; `lines` says why.
 */
export function parseMeminfo(output: ProbeOutput | undefined): Fact<MemoryFacts> {
  const text = output?.stdout ?? '';
  const values = new Map<string, number>();
  for (const [, key, kib] of text.matchAll(/^(\w+):\s+(\d{1,12}) kB\r?$/gm)) {
    if (key !== undefined && kib !== undefined) values.set(key, Number(kib) * 1024);
  }
  const [total, free, available] = ['MemTotal', 'MemFree', 'MemAvailable'].map((key) => values.get(key));
  if (total === undefined) return gaveNothing(output, 'memory');
  if (free === undefined || available === undefined) {
    return unknown('meminfo names no MemFree or no MemAvailable');
  }
  return known({
    totalBytes: total,
    freeBytes: free,
    availableBytes: available,
    cachedBytes: values.get('Cached'),
    dirtyBytes: values.get('Dirty'),
    sharedBytes: values.get('Shmem'),
    slabBytes: values.get('Slab'),
    swapTotalBytes: values.get('SwapTotal'),
    swapFreeBytes: values.get('SwapFree'),
    lines: linesFrom(values, text),
  });
}

function linesFrom(values: ReadonlyMap<string, number>, text: string): MemoryLines {
  const line = (key: string): Fact<number> => {
    const bytes = values.get(key);
    return bytes === undefined ? unknown(`meminfo lists no ${key}`) : known(bytes);
  };
  /** The sum of all, where each is listed; those of `more` count where they are. */
  const sum = (keys: readonly string[], more: readonly string[] = []): Fact<number> => {
    const missing = keys.find((key) => !values.has(key));
    if (missing !== undefined) return unknown(`meminfo lists no ${missing}`);
    return known([...keys, ...more].reduce((bytes, key) => bytes + (values.get(key) ?? 0), 0));
  };
  const files = sum(['Cached', 'Buffers']);
  const kept = sum(['Shmem', 'Dirty', 'Writeback']);
  return {
    cachedBytes: line('Cached'),
    buffersBytes: line('Buffers'),
    cleanBytes: !files.known ? files : !kept.known ? kept : known(Math.max(0, files.value - kept.value)),
    dirtyBytes: sum(['Dirty', 'Writeback']),
    sharedBytes: line('Shmem'),
    slabBytes: line('Slab'),
    slabReclaimableBytes: line('SReclaimable'),
    anonymousBytes: line('AnonPages'),
    // Percpu came with Linux 4.20, SecPageTables with 6.1.
    kernelBytes: sum(['KernelStack', 'PageTables'], ['SecPageTables', 'Percpu', 'VmallocUsed']),
    hugeBytes: line('Hugetlb'),
    lockedBytes: line('Mlocked'),
    swapTotalBytes: line('SwapTotal'),
    swapFreeBytes: line('SwapFree'),
    swapCachedBytes: line('SwapCached'),
    cmaTotalBytes: line('CmaTotal'),
    cmaFreeBytes: line('CmaFree'),
    pressure: parsePressure(text),
  };
}
