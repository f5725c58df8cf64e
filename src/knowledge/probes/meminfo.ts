import { type Fact, known, type MemoryFacts, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing } from './output.ts';

/** /proc/meminfo: the only honest source on a host whose GPU shares its memory. */
export const meminfoProbe: Probe = {
  name: 'meminfo',
  timeoutSeconds: 3,
  script: String.raw`cat "$R/proc/meminfo"`,
};

/** "MemTotal:  127535084 kB" per line → bytes. What a kernel does not list is 0, but total, free and available must be there. */
export function parseMeminfo(output: ProbeOutput | undefined): Fact<MemoryFacts> {
  const values = new Map<string, number>();
  for (const [, key, kib] of (output?.stdout ?? '').matchAll(/^(\w+):\s+(\d{1,15}) kB\r?$/gm)) {
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
    cachedBytes: values.get('Cached') ?? 0,
    dirtyBytes: values.get('Dirty') ?? 0,
    sharedBytes: values.get('Shmem') ?? 0,
    slabBytes: values.get('Slab') ?? 0,
    swapTotalBytes: values.get('SwapTotal') ?? 0,
    swapFreeBytes: values.get('SwapFree') ?? 0,
  });
}
