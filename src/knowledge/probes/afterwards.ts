import { type Afterwards, type Fact, known, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, linesOf, printable, wholeLines } from './output.ts';

const MOST_LINES = 200;

/**
 * What the kernel said since the launch: `$FL_SINCE_SECONDS` back by its own stamps, which count from the boot. Older
 * lines are about something else. Read without asking for a password; where only root may, that is told.
 */
export const kernelLogProbe: Probe = {
  name: 'kernel-log',
  timeoutSeconds: 12,
  script: String.raw`up=$(cut -d. -f1 "$R/proc/uptime") || exit 4
from=$((up - FL_SINCE_SECONDS))
for try in "dmesg" "sudo -n dmesg" "journalctl -k -b -n 3000 --no-pager -o short-monotonic"; do
  out=$($try 2>/dev/null) || continue
  printf '%s\n' "$out" | awk -v from="$from" '
    /^\[ *[0-9]+\.[0-9]+\]/ { stamp = $0; sub(/^\[ */, "", stamp); on = (stamp + 0 >= from) }
    on { print }' | tail -n 200
  exit 0
done
echo 'the kernel log is for root alone' >&2
exit 3`,
};

/** How containers of ours ended: name, exit code, whether the kernel's memory killer ended it, what docker says. */
export const endedContainersProbe: Probe = {
  name: 'ended-containers',
  timeoutSeconds: 12,
  script: String.raw`ids=$("$FL_RUNTIME" ps -aq --filter name=firstlight- 2>/dev/null) || exit 3
[ -n "$ids" ] || exit 0
"$FL_RUNTIME" inspect --format '{{.Name}} {{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.State.Error}}' $ids`,
};

/** Both as facts; undefined where they were not asked for. */
export function parseAfterwards(
  outputs: ReadonlyMap<string, ProbeOutput>,
  asked: boolean,
): Afterwards | undefined {
  if (!asked) return undefined;
  return {
    kernelLog: parseKernelLog(outputs.get(kernelLogProbe.name)),
    containers: parseEnded(outputs.get(endedContainersProbe.name)),
  };
}

function parseKernelLog(output: ProbeOutput | undefined): Fact<readonly string[]> {
  if (output === undefined || output.code !== 0) return gaveNothing(output, 'the kernel log');
  return known(linesOf(output.stdout).slice(-MOST_LINES).map(printable));
}

function parseEnded(output: ProbeOutput | undefined): Afterwards['containers'] {
  if (output === undefined || output.code !== 0) return gaveNothing(output, 'ended containers');
  const rows = linesOf(wholeLines(output)).map((line) =>
    /^\/?(\S+) (\S+) (-?\d+) (true|false) ?(.*)$/.exec(line.trim()),
  );
  if (rows.includes(null)) return unknown('ended containers: told in a form that is not known');
  return known(
    rows.map((row) => ({
      name: row?.[1] ?? '',
      state: row?.[2] ?? '',
      exitCode: Number(row?.[3]),
      oomKilled: row?.[4] === 'true',
      error: printable(row?.[5] ?? ''),
    })),
  );
}
