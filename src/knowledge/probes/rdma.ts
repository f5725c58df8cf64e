import { type Fact, known, type RdmaDevice, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { linesOf, printable } from './output.ts';

/** RDMA devices by sysfs alone: ibstat and its kin are optional packages. Reading a port that is down may fail. */
export const rdmaProbe: Probe = {
  name: 'rdma',
  quick: true,
  timeoutSeconds: 12,
  script: String.raw`
echo read
for d in "$R/sys/class/infiniband"/*; do
  [ -d "$d/ports" ] || continue
  for p in "$d"/ports/*; do
    st=; ra=; ll=; nd=
    { read -r st <"$p/state"; read -r ra <"$p/rate"; read -r ll <"$p/link_layer"; } 2>/dev/null
    for f in "$p"/gid_attrs/ndevs/0 "$p"/gid_attrs/ndevs/*; do
      [ -r "$f" ] || continue
      { read -r nd <"$f"; } 2>/dev/null
      [ -n "$nd" ] && break
      case $f in */[4-9]* | */??*) break ;; esac
    done
    if [ -z "$nd" ]; then for f in "$d"/device/net/*; do [ -e "$f" ] && nd=${'$'}{f##*/} && break; done; fi
    printf 'port %s|%s|%s|%s|%s\n' "${'$'}{d##*/}" "$st" "$ra" "$ll" "$nd"
  done
done
`,
};

/** "port rocep1s0f0|4: ACTIVE|200 Gb/sec (4X HDR)|Ethernet|enp1s0f0np0" per line → one device each, active if any port is. */
export function parseRdma(output: ProbeOutput | undefined): Fact<readonly RdmaDevice[]> {
  const lines = output ? linesOf(output.stdout) : [];
  if (!lines.includes('read') || output?.timedOut) return unknown('the RDMA devices could not be read');
  const devices = new Map<string, RdmaDevice>();
  for (const line of lines) {
    if (!line.startsWith('port ')) continue;
    const [device = '', state = '', rate = '', , interfaceName = ''] = line.slice(5).split('|');
    const active = /^4\b/.test(state);
    if (devices.get(device)?.active) continue;
    const gbps = /^(\d+(?:\.\d+)?) Gb\/sec/.exec(rate)?.[1];
    devices.set(device, {
      device: printable(device),
      interfaceName:
        interfaceName === '' ? unknown('the device names no interface') : known(printable(interfaceName)),
      active,
      // A port that is down shows a rate which it has not got.
      rateGbps: active && gbps !== undefined ? known(Number(gbps)) : unknown('the port is down'),
    });
  }
  return known([...devices.values()]);
}
