import { type DiskFacts, type Fact, known } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, linesOf, printable } from './output.ts';

/** Room on the root, the home and the model's folder; a folder that is not there yet counts by what would hold it. */
export const disksProbe: Probe = {
  name: 'disks',
  timeoutSeconds: 8,
  script: String.raw`
room() {
  p=$2
  while [ -n "$p" ] && [ ! -e "$p" ]; do case $p in */*) p=${'$'}{p%/*} ;; *) p= ;; esac; done
  line=$(df -Pk "${'$'}{p:-/}" 2>/dev/null)
  line=${'$'}{line##*
}
  case $line in *[![:print:]]*) line=$(printf %s "$line" | tr '\000-\037' ' ') ;; esac
  printf '%s %s\n' "$1" "$line"
}
room root "$R/"
case $HOME in
  *[![:print:]]*) printf 'path %s\n' "$(printf %s "$HOME" | tr '\000-\037' ' ')" ;;
  *) printf 'path %s\n' "$HOME" ;;
esac
room home "$HOME"
if [ -n "$FL_MODEL" ]; then
  if [ -e "$R$FL_MODEL" ] || [ ! -e "$FL_MODEL" ]; then room model "$R$FL_MODEL"; else room model "$FL_MODEL"; fi
fi
`,
};

/** "root /dev/nvme0n1p2 960302096 171264048 740182584 19% /" per line → total and what an ordinary user may still write. */
export function parseDisks(
  output: ProbeOutput | undefined,
  modelPath: string | undefined,
): Fact<readonly DiskFacts[]> {
  const lines = output ? linesOf(output.stdout) : [];
  const home = lines.find((line) => line.startsWith('path '))?.slice(5) ?? '';
  const paths: Readonly<Record<string, string | undefined>> = { root: '/', home, model: modelPath };
  const disks = lines.flatMap((line) => {
    const match = /^(root|home|model) .*?\s(\d+)\s+(\d+)\s+(-?\d+)\s+(?:\d+%|-)\s/.exec(line);
    const path = paths[match?.[1] ?? ''];
    if (match === null || path === undefined) return [];
    const free = Math.max(0, Number(match[4]));
    return [{ path: printable(path), totalBytes: Number(match[2]) * 1024, freeBytes: free * 1024 }];
  });
  return disks.length === 0 ? gaveNothing(output, 'disks') : known(disks);
}
