import { spawnSync } from 'node:child_process';
import type { LookRequest, ProbeOutput } from '../../src/domain/probe.ts';
import { probeHeader, probesFor } from '../../src/knowledge/probes/index.ts';

export type Shell = readonly [program: string, ...args: string[]];

/** Runs the real scripts on this machine, each in a subshell as a look does, and collects what they print. */
export function runProbesHere(
  shell: Shell,
  request: LookRequest,
  env: Readonly<Record<string, string | undefined>>,
): Map<string, ProbeOutput> {
  const [program, ...args] = shell;
  return new Map(
    probesFor(request).map(({ name, script, timeoutSeconds }) => {
      const input = `R="$FIRSTLIGHT_ROOT"\nLC_ALL=C\nexport LC_ALL\n${probeHeader(request)}(\n${script}\n) </dev/null\n`;
      const ran = spawnSync(program, [...args, '-s'], {
        input,
        encoding: 'utf8',
        env,
        timeout: timeoutSeconds * 1000,
        maxBuffer: 64 * 2 ** 20,
      });
      const output: ProbeOutput = {
        code: ran.status ?? 124,
        stdout: ran.stdout,
        stderr: ran.stderr,
        timedOut: ran.signal !== null,
      };
      return [name, output] as const;
    }),
  );
}
