import { type Fact, known, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { headAndRest, linesOf, printable } from './output.ts';

/**
 * What the host's own name resolves to on itself: gloo and torch bind to that. The hosts file goes first in the
 * output, since a resolver that waits for a dead server runs into the timeout.
 */
export const ownNameProbe: Probe = {
  name: 'own-name',
  timeoutSeconds: 3,
  script: String.raw`
name=$(hostname 2>/dev/null || uname -n)
awk -v name="$name" '{sub(/#.*/, ""); for (i = 2; i <= NF; i++) if ($i == name) print "file", $1}' "$R/etc/hosts" 2>/dev/null
a=$(getent ahosts "$name" 2>/dev/null) && [ -n "$a" ] || a=$(getent hosts "$name" 2>/dev/null)
printf '%s\n' "$a" | awk 'NF > 1 {print "name", $1}'
`,
};

/** "file ADDRESS" and "name ADDRESS" per line → addresses without repeats; the resolver's word counts first. */
export function parseOwnName(output: ProbeOutput | undefined): Fact<readonly string[]> {
  const pairs = (output ? linesOf(output.stdout) : []).map(headAndRest);
  const from = (source: string) => [
    ...new Set(pairs.filter(([key]) => key === source).map(([, address]) => printable(address))),
  ];
  const resolved = from('name');
  if (resolved.length > 0) return known(resolved);
  const inFile = from('file');
  if (inFile.length > 0) return known(inFile);
  return output?.timedOut
    ? unknown('the resolver gave no answer in time')
    : unknown('the host cannot resolve its own name');
}
