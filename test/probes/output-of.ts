import type { ProbeOutput } from '../../src/domain/probe.ts';

/** What a probe would bring back that printed this. */
export function outputOf(stdout: string, more: Partial<ProbeOutput> = {}): ProbeOutput {
  return { code: 0, stdout, stderr: '', timedOut: false, ...more };
}
