import { isLoopback, type LabInterface } from '../network-table.ts';
import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

/** `ip [-j] addr|link|route …` over the lab's network table. */
export function ip(call: ToolCall): ToolAnswer {
  const flags = call.argv.filter((word) => word.startsWith('-'));
  const words = call.argv.filter((word) => !word.startsWith('-'));
  if (flags.some((flag) => flag === '-V' || flag === '-Version')) {
    return out('ip utility, iproute2-6.1.0, firstlight lab stand-in\n');
  }
  const json = flags.some((flag) => flag === '-j' || flag === '-json' || flag === '--json');
  const brief = flags.some((flag) => flag === '-br' || flag === '-brief');
  const oneline = flags.some((flag) => flag === '-o' || flag === '-oneline');
  const [object = '', ...rest] = words;
  const interfaces = call.host.interfaces;
  if ('address'.startsWith(object) || 'link'.startsWith(object)) {
    const name = rest.filter((word) => !['show', 'dev', 'list', 'up'].includes(word)).at(-1);
    const shown = name === undefined ? interfaces : interfaces.filter((item) => item.name === name);
    if (name !== undefined && shown.length === 0) return bad(`Device "${name}" does not exist.`);
    const withAddresses = 'address'.startsWith(object);
    if (json) return out(`${JSON.stringify(shown.map((item) => asJson(call, item, withAddresses)))}\n`);
    if (brief) return out(shown.map((item) => briefLine(item, withAddresses)).join(''));
    if (oneline)
      return out(
        shown
          .filter((item) => item.address !== undefined)
          .map((i) => onelineOf(call, i))
          .join(''),
      );
    return out(shown.map((item) => plain(call, item, withAddresses)).join(''));
  }
  if ('route'.startsWith(object)) return route(call, rest, json);
  return bad(`Object "${object}" is unknown, try "ip help".`);
}

function route(call: ToolCall, words: readonly string[], json: boolean): ToolAnswer {
  if (words[0] !== 'get') {
    const routes = call.host.interfaces
      .filter((item) => item.up && item.address !== undefined && item.name !== 'lo')
      .map((item) => ({
        dst: subnet(item),
        dev: item.name,
        protocol: 'kernel',
        scope: 'link',
        prefsrc: item.address,
        flags: [],
      }));
    const management = call.host.interfaces.find((item) => item.name === 'enP7s7');
    const first = {
      dst: 'default',
      gateway: management?.address?.replace(/\d+$/, '1'),
      dev: 'enP7s7',
      protocol: 'dhcp',
      flags: [],
    };
    if (json) return out(`${JSON.stringify([first, ...routes])}\n`);
    const lines = routes.map((r) => `${r.dst} dev ${r.dev} proto kernel scope link src ${r.prefsrc} \n`);
    return out(`default via ${first.gateway} dev enP7s7 proto dhcp \n${lines.join('')}`);
  }
  const target = words.find((word, at) => at > 0 && /^[\d.:a-f]+$/.test(word)) ?? '';
  const own = isLoopback(target) || call.host.interfaces.some((item) => item.address === target);
  const item = own
    ? call.host.interfaces.find(({ name }) => name === 'lo')
    : (call.host.routeTo(target) ?? call.host.defaultInterface);
  if (item === undefined) return bad('RTNETLINK answers: Network is unreachable', 2);
  const direct = own || call.host.routeTo(target) !== undefined;
  const source = own ? target : (item.address ?? '');
  const gateway = item.address?.replace(/\d+$/, '1');
  if (json) {
    return out(
      `${JSON.stringify([
        {
          ...(own ? { type: 'local' } : {}),
          dst: target,
          ...(direct ? {} : { gateway }),
          dev: item.name,
          prefsrc: source,
          flags: [],
          uid: call.uid,
          cache: own ? ['local'] : [],
        },
      ])}\n`,
    );
  }
  return out(
    `${own ? 'local ' : ''}${target} ${direct ? '' : `via ${gateway} `}dev ${item.name} src ${source} uid ${call.uid} \n    cache \n`,
  );
}

function subnet(item: LabInterface): string {
  return `${item.address?.replace(/\d+$/, '0') ?? ''}/${item.prefix}`;
}

function flagsOf(item: LabInterface): readonly string[] {
  if (item.name === 'lo') return ['LOOPBACK', 'UP', 'LOWER_UP'];
  return item.up
    ? ['BROADCAST', 'MULTICAST', 'UP', 'LOWER_UP']
    : ['NO-CARRIER', 'BROADCAST', 'MULTICAST', 'UP'];
}

function stateOf(item: LabInterface): string {
  return item.name === 'lo' ? 'UNKNOWN' : item.up ? 'UP' : 'DOWN';
}

function indexOf(call: ToolCall, item: LabInterface): number {
  return call.host.interfaces.findIndex(({ name }) => name === item.name) + 1;
}

function asJson(call: ToolCall, item: LabInterface, withAddresses: boolean): Record<string, unknown> {
  const loop = item.name === 'lo';
  return {
    ifindex: indexOf(call, item),
    ifname: item.name,
    flags: flagsOf(item),
    mtu: item.mtu,
    qdisc: loop ? 'noqueue' : 'mq',
    operstate: stateOf(item),
    group: 'default',
    txqlen: 1000,
    link_type: loop ? 'loopback' : 'ether',
    address: item.mac,
    broadcast: loop ? '00:00:00:00:00:00' : 'ff:ff:ff:ff:ff:ff',
    ...(withAddresses
      ? {
          addr_info:
            item.address === undefined
              ? []
              : [
                  {
                    family: 'inet',
                    local: item.address,
                    prefixlen: item.prefix,
                    scope: loop ? 'host' : 'global',
                    label: item.name,
                    valid_life_time: 4294967295,
                    preferred_life_time: 4294967295,
                  },
                ],
        }
      : {}),
  };
}

function briefLine(item: LabInterface, withAddresses: boolean): string {
  const tail = withAddresses
    ? item.address === undefined
      ? ''
      : `${item.address}/${item.prefix} `
    : `${item.mac} <${flagsOf(item).join(',')}> `;
  return `${item.name.padEnd(16)} ${stateOf(item).padEnd(14)} ${tail}\n`;
}

function onelineOf(call: ToolCall, item: LabInterface): string {
  return `${indexOf(call, item)}: ${item.name}    inet ${item.address ?? ''}/${item.prefix} scope ${item.name === 'lo' ? 'host' : 'global'} ${item.name}\\       valid_lft forever preferred_lft forever\n`;
}

function plain(call: ToolCall, item: LabInterface, withAddresses: boolean): string {
  const loop = item.name === 'lo';
  const address =
    withAddresses && item.address !== undefined
      ? `    inet ${item.address}/${item.prefix} scope ${loop ? 'host' : 'global'} ${item.name}\n       valid_lft forever preferred_lft forever\n`
      : '';
  return `${indexOf(call, item)}: ${item.name}: <${flagsOf(item).join(',')}> mtu ${item.mtu} qdisc ${loop ? 'noqueue' : 'mq'} state ${stateOf(item)} group default qlen 1000\n    link/${loop ? 'loopback' : 'ether'} ${item.mac} brd ${loop ? '00:00:00:00:00:00' : 'ff:ff:ff:ff:ff:ff'}\n${address}`;
}

/** `ss -ltnp…`: listening sockets; who listens is shown to root, and to the process's own user. */
export function ss(call: ToolCall): ToolAnswer {
  const short = call.argv.filter((word) => /^-[a-zA-Z0-9]+$/.test(word)).join('');
  if (short.includes('V')) return out('ss utility, iproute2-6.1.0, firstlight lab stand-in\n');
  const long = (name: string): boolean => call.argv.includes(name);
  const header = !(short.includes('H') || long('--no-header'));
  const who = short.includes('p') || long('--processes');
  const extended = short.includes('e') || long('--extended');
  const listening = short.includes('l') || long('--listening') || short.includes('a');
  const lines = listening
    ? call.host.listeners.map((listener) => {
        const seen = who && listener.pid > 0 && (call.uid === 0 || call.uid === listener.uid);
        const users = seen ? `users:(("${listener.program}",pid=${listener.pid},fd=7))` : '';
        const any = listener.address === '0.0.0.0';
        const cgroup = call.host.processes.find(listener.pid)?.cgroup ?? '/system.slice/ssh.service';
        const more = extended
          ? `uid:${listener.uid} ino:${40000 + listener.port} sk:${listener.port} cgroup:${cgroup} <->`
          : '';
        return `LISTEN 0      4096   ${`${any ? '0.0.0.0' : listener.address}:${listener.port}`.padStart(24)}      0.0.0.0:*    ${users} ${more}`;
      })
    : [];
  const title =
    'State  Recv-Q Send-Q       Local Address:Port  Peer Address:PortProcess                               ';
  return out([...(header ? [title] : []), ...lines].map((line) => `${line.trimEnd()}\n`).join(''));
}
