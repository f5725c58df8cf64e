import { type Fact, type HostFacts, known } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, headAndRest, linesOf, printable, wholeNumber } from './output.ts';

/** Who and what the host is. dgx-release holds the serial number: only named keys are read. */
export const hostProbe: Probe = {
  name: 'host',
  quick: true,
  timeoutSeconds: 12,
  script: String.raw`
one() { read -r v <"$1" && printf '%s %s\n' "$2" "$v"; }
printf 'hostname %s\n' "$(hostname 2>/dev/null || uname -n)"
set -f
set -- $(uname -rm)
set +f
printf 'kernel %s\narch %s\n' "$1" "${'$'}{2-}"
printf 'user %s\n' "$(id -un 2>/dev/null)"
printf 'uid %s\n' "${'$'}{FL_UID:-$(id -u)}"
case $HOME in
  *[![:print:]]*) printf 'home %s\n' "$(printf %s "$HOME" | tr '\000-\037' ' ')" ;;
  *) printf 'home %s\n' "$HOME" ;;
esac
{ one "$R/etc/machine-id" machine; one "$R/proc/sys/kernel/random/boot_id" boot; } 2>/dev/null
sed -n 's/^PRETTY_NAME=/os /p; s/^DGX_SWBUILD_VERSION=/dgx /p; s/^DGX_OTA_VERSION=/dgx /p' "$R/etc/os-release" "$R/etc/dgx-release" 2>/dev/null
page=$(getconf PAGESIZE 2>/dev/null) || page=
[ -n "$page" ] || page=$(awk '/^KernelPageSize/ {print $2 * 1024; exit}' "$R/proc/self/smaps" 2>/dev/null)
printf 'page %s\n' "$page"
# The last word counts; drop-ins come after the file itself, and the administrator's after the vendor's.
kill=
for f in "$R/usr/lib/systemd/logind.conf" "$R/etc/systemd/logind.conf" "$R/usr/lib/systemd/logind.conf.d"/*.conf "$R/run/systemd/logind.conf.d"/*.conf "$R/etc/systemd/logind.conf.d"/*.conf; do
  [ -r "$f" ] || continue
  while read -r line || [ -n "$line" ]; do case $line in KillUserProcesses=*) kill=${'$'}{line#*=} ;; esac; done <"$f"
done
[ -z "$kill" ] || printf 'logout %s\n' "$kill"
`,
};

/** "key value" per line → HostFacts less the own addresses; the last `dgx` line is the release that runs. */
export function parseHost(
  output: ProbeOutput | undefined,
  ownAddresses: Fact<readonly string[]>,
): Fact<HostFacts> {
  const values = new Map((output ? linesOf(output.stdout) : []).map(headAndRest));
  const value = (key: string) => printable(values.get(key) ?? '').replace(/^"(.*)"$/, '$1');
  const uid = wholeNumber(value('uid'));
  if (value('hostname') === '' || value('arch') === '' || uid === undefined) {
    return gaveNothing(output, 'the host');
  }
  const dgx = value('dgx');
  return known({
    hostname: value('hostname'),
    machineId: value('machine'),
    bootId: value('boot'),
    os: [value('os') || 'Linux', ...(dgx === '' ? [] : [`DGX OS ${dgx}`])].join(', '),
    kernel: value('kernel'),
    arch: value('arch'),
    user: value('user') || String(uid),
    uid,
    home: value('home'),
    ownAddresses,
    pageBytes: wholeNumber(value('page')) ?? 4096,
    // root is spared by default (logind.conf(5), KillExcludeUsers=).
    ...(/^(yes|true|on|1)$/i.test(value('logout')) && uid !== 0 ? { killsAtLogout: true as const } : {}),
  });
}
