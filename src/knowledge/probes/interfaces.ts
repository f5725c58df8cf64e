import { subnetOf } from '../../domain/address.ts';
import { type Fact, known, type NetworkInterface, unknown } from '../../domain/facts.ts';
import { isObject, numberAt, parseArray, textAt } from '../../domain/json.ts';
import type { LookRequest, Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, headAndRest, linesOf, printable, wholeNumber } from './output.ts';

/** Interfaces with addresses, and over which of them each peer is routed. busybox' ip has no `-j`. */
export const interfacesProbe: Probe = {
  name: 'interfaces',
  quick: true,
  timeoutSeconds: 12,
  script: String.raw`
for d in "$R/sys/class/net"/*; do
  n=${'$'}{d##*/}
  case $n in veth*) continue ;; esac
  m=; s=; o=
  { read -r m <"$d/mtu"; read -r s <"$d/speed"; read -r o <"$d/operstate"; } 2>/dev/null
  [ -n "$m$o" ] && printf 'sys %s %s %s %s\n' "$n" "${'$'}{m:--}" "${'$'}{s:--}" "${'$'}{o:--}"
done
if command -v ip >/dev/null 2>&1; then
  if a=$(ip -j addr 2>/dev/null) && [ -n "$a" ]; then printf 'json %s\n' "$(printf %s "$a" | tr '\n' ' ')"
  else ip addr 2>/dev/null | sed 's/^/text /'; fi
  printf '%s\n' "$FL_PEERS" | while read -r p; do
    [ -n "$p" ] || continue
    r=$(ip -j route get "$p" 2>/dev/null) && [ -n "$r" ] || r=$(ip route get "$p" 2>/dev/null)
    printf 'route %s %s\n' "$p" "$(printf %s "$r" | tr '\n' ' ')"
  done
else
  echo 'missing ip'
fi
`,
};

type Addressed = {
  readonly name: string;
  readonly up: boolean;
  readonly setDown?: true;
  readonly mtu: number;
  readonly addresses: NetworkInterface['addresses'];
};

/** Lines of the interfaces probe → interfaces; `veth` ends of containers are left out. */
export function parseInterfaces(
  output: ProbeOutput | undefined,
  peers: LookRequest['peers'],
): Fact<readonly NetworkInterface[]> {
  const lines = output ? linesOf(output.stdout) : [];
  const of = (tag: string) =>
    lines.filter((line) => line.startsWith(`${tag} `)).map((line) => line.slice(tag.length + 1));
  if (lines.includes('missing ip'))
    return unknown('the program `ip` is not installed: addresses cannot be read');
  const addressed = of('json').length > 0 ? fromJson(of('json').join('')) : fromText(of('text'));
  if (addressed.length === 0) return gaveNothing(output, 'interfaces');
  const speeds = new Map(
    of('sys').map((line) => {
      const [name = '', , speed = '', state = ''] = line.split(' ');
      return [name, { speed: wholeNumber(speed), state }] as const;
    }),
  );
  const routes = of('route').map(headAndRest);
  return known(
    addressed
      .filter((each) => !each.name.startsWith('veth'))
      .map((each) => {
        const sys = speeds.get(each.name);
        return {
          ...each,
          up: each.up || sys?.state === 'up',
          speedMbps: speedOf(sys?.speed, each.up),
          reaches: peers
            .filter(({ address }) => {
              const route = routes.find(([to]) => to === address);
              // A busy host may run out of time before it is asked; what lies in the same subnet needs no route.
              return route === undefined ? isNear(each, address) : deviceOf(route[1]) === each.name;
            })
            .map((peer) => peer.node),
        };
      }),
  );
}

function isNear({ addresses }: Addressed, peer: string): boolean {
  return addresses.some(({ address, prefix }) => {
    const subnet = subnetOf(address, prefix);
    return address !== peer && subnet !== undefined && subnet === subnetOf(peer, prefix);
  });
}

function speedOf(speed: number | undefined, up: boolean): Fact<number> {
  if (speed !== undefined && speed > 0) return known(speed);
  return unknown(up ? 'the driver tells no speed' : 'the link is down');
}

/** `[{"dst":…,"dev":"enp1s0f0np0",…}]` or "192.168.200.13 dev enp1s0f0np0 src …" → the device; the host itself is no peer. */
function deviceOf(route: string): string | undefined {
  const first = parseArray(route.trim())?.[0];
  const device = isObject(first) ? textAt(first, 'dev') : / dev (\S+)/.exec(` ${route}`)?.[1];
  return device === 'lo' ? undefined : device;
}

function fromJson(json: string): readonly Addressed[] {
  return (parseArray(json) ?? []).flatMap((each) => {
    if (!isObject(each) || textAt(each, 'ifname') === '') return [];
    const flags = Array.isArray(each['flags']) ? each['flags'] : [];
    const info: readonly unknown[] = Array.isArray(each['addr_info']) ? each['addr_info'] : [];
    return [
      {
        name: printable(textAt(each, 'ifname')),
        up: (flags.includes('UP') && flags.includes('LOWER_UP')) || textAt(each, 'operstate') === 'UP',
        ...setDown(flags),
        mtu: numberAt(each, 'mtu') ?? 0,
        addresses: info.flatMap((entry) =>
          isObject(entry) && textAt(entry, 'local') !== ''
            ? [{ address: textAt(entry, 'local'), prefix: numberAt(entry, 'prefixlen') ?? 0 }]
            : [],
        ),
      },
    ];
  });
}

/** Whoever sets a link down takes its flag UP away; a link that only lacks its carrier keeps it. */
function setDown(flags: readonly unknown[]): { readonly setDown?: true } {
  return flags.length > 0 && !flags.includes('UP') ? { setDown: true } : {};
}

/** "2: eth0@if3: <BROADCAST,UP,LOWER_UP> mtu 1500 …", then "    inet 10.0.0.2/24 …" → the same. */
function fromText(lines: readonly string[]): readonly Addressed[] {
  const found: {
    name: string;
    up: boolean;
    setDown?: true;
    mtu: number;
    addresses: { address: string; prefix: number }[];
  }[] = [];
  for (const line of lines) {
    const head = /^\d+: ([^:@\s]+)(?:@\S+)?: <([^>]*)>.*?\bmtu (\d+)/.exec(line);
    if (head) {
      const flags = (head[2] ?? '').split(',');
      const up = flags.includes('UP') && flags.includes('LOWER_UP');
      found.push({ name: head[1] ?? '', up, ...setDown(flags), mtu: Number(head[3]), addresses: [] });
      continue;
    }
    const inet = /^\s+inet6? ([0-9a-fA-F.:]+)(?: peer \S+?)?(?:\/(\d+))?\s/.exec(`${line} `);
    if (inet) {
      const whole = (inet[1] ?? '').includes(':') ? 128 : 32;
      found.at(-1)?.addresses.push({ address: inet[1] ?? '', prefix: Number(inet[2] ?? whole) });
    }
  }
  return found;
}

/** What a person does about a link without a carrier. */
export function linkAdvice(node: string, name: string): string {
  return `See to its cable and to the switch port; on ${node}: ip link show ${name}; sudo ip link set ${name} up`;
}
