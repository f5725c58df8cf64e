import { type Fact, type Holder, known, type ReachedFacts, unknown, valueIf } from '../domain/facts.ts';

/**
 * Bytes that the GPU driver holds and that no process accounts for. On unified memory: what the kernel has given away
 * and counts nowhere, less what nvidia-smi puts down to processes. On cards of their own: used less that. Never
 * negative; unknown where a part of the sum is.
 */
export function driverHeldBytes(facts: ReachedFacts): Fact<number> {
  const gpus = facts.gpus;
  if (!gpus.known) return gpus;
  if (gpus.value.length === 0) return unknown('no GPU was seen');
  if (!facts.holders.known) return facts.holders;
  const held = byProcesses(facts.holders.value);
  if (!held.known) return held;
  const gone = gpus.value.some((gpu) => gpu.unified) ? uncounted(facts) : usedOnCards(facts);
  return gone.known ? known(Math.max(0, gone.value - held.value)) : gone;
}

/** What all processes hold on GPUs, as nvidia-smi says it. */
function byProcesses(holders: readonly Holder[]): Fact<number> {
  let sum = 0;
  for (const { gpuBytes } of holders) {
    if (!gpuBytes.known) return gpuBytes;
    sum += gpuBytes.value;
  }
  return known(sum);
}

/** Pages that are neither free nor in any line of meminfo: the driver takes them from the kernel without a name. */
function uncounted(facts: ReachedFacts): Fact<number> {
  if (!facts.memory.known) return facts.memory;
  const { totalBytes, freeBytes, lines } = facts.memory.value;
  if (lines === undefined) return unknown('the kernel’s account was not read line by line');
  const parts = [
    lines.cachedBytes,
    lines.buffersBytes,
    lines.anonymousBytes,
    lines.slabBytes,
    lines.kernelBytes,
  ];
  let left = totalBytes - freeBytes;
  for (const part of parts) {
    if (!part.known) return part;
    left -= part.value;
  }
  // Huge pages and swap's copies are listed by most kernels; where they are not, they are none.
  left -= (valueIf(lines.hugeBytes) ?? 0) + (valueIf(lines.swapCachedBytes) ?? 0);
  return known(Math.max(0, left));
}

function usedOnCards(facts: ReachedFacts): Fact<number> {
  let sum = 0;
  for (const { totalBytes, freeBytes } of valueIf(facts.gpus) ?? []) {
    if (!totalBytes.known) return totalBytes;
    if (!freeBytes.known) return freeBytes;
    sum += totalBytes.value - freeBytes.value;
  }
  return known(sum);
}
