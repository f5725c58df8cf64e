import type { Unreachable, UnreachableWhy } from '../domain/command.ts';
import { list } from '../domain/units.ts';
import type { Looked } from './ssh-config.ts';

/** What ssh's words come to: why, and whether it was the jump host that met the trouble while it dialled on. */
export type Symptom = { readonly why: UnreachableWhy; readonly atJump: boolean };

type Rule = readonly [RegExp, UnreachableWhy];

/** What the host that forwards says of its own attempt (sshd and OpenSSH 9.2, `channel N: open failed: …`). */
const atJump: readonly Rule[] = [
  [/open failed: administratively prohibited/i, 'jump-may-not-forward'],
  [/open failed: connect failed: Connection refused/i, 'refused'],
  [/open failed: connect failed: (No route to host|Network is unreachable|Host is down)/i, 'no-route'],
  [/open failed: connect failed: (Connection|Operation) timed out/i, 'timeout-connect'],
  [
    /open failed: connect failed: .*(Name or service not known|not known|name resolution|No address)/i,
    'name-unknown',
  ],
  [/open failed: connect failed/i, 'refused'],
];

/** Order matters: what ssh says last is often only what follows from what it said before. */
const direct: readonly Rule[] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED|REVOKED HOST KEY|host key for .* has changed/i,
    'host-key-changed',
  ],
  [/Host key verification failed|No .* host key is known for/i, 'host-key-unknown'],
  [/Could not resolve hostname/i, 'name-unknown'],
  [/during banner exchange/i, 'timeout-banner'],
  [/(No route to host|Network is unreachable|Host is down|host is unreachable)/i, 'no-route'],
  [/connect to host .*: Connection refused/i, 'refused'],
  [/connect to host .*: (Connection|Operation) timed out/i, 'timeout-connect'],
  [
    /Permission denied \(|Too many authentication failures|no supported authentication methods/i,
    'key-refused',
  ],
];

/** These are said too where the jump host could not dial on. */
const vague: readonly Rule[] = [
  [
    /(kex|ssh)_exchange_identification: .*(reset|closed)|Exceeded MaxStartups|Not allowed at this time|Connection (closed|reset) by \S+ port (-1|65535)|connect to host .*: Connection reset/i,
    'too-many-connections',
  ],
  [
    /Connection (closed|reset) by|Broken pipe|client_loop|read from master failed|not responding|Connection to .* closed|Master (refused|closed)/i,
    'closed',
  ],
];

/**
 * ssh's stderr, and what the master of the jump host logged meanwhile, to a symptom. That log is shared by all
 * that goes through the jump host: it counts only where ssh says that forwarding failed, and `unclear` says that
 * it tells more than one story. Pure.
 */
export function classify(text: string, jumpLog: string): Symptom & { readonly unclear?: boolean } {
  for (const [pattern, why] of atJump) if (pattern.test(text)) return { why, atJump: true };
  for (const [pattern, why] of direct) if (pattern.test(text)) return { why, atJump: false };
  // With ControlPersist ssh hides what its ProxyCommand says: all that is left is a peer without a name.
  if (/stdio forwarding (request )?failed|UNKNOWN port (65535|-1)/i.test(text)) {
    const whys = jumpLog.split('\n').flatMap((line) => {
      const rule = atJump.find(([pattern]) => pattern.test(line));
      return rule === undefined ? [] : [rule[1]];
    });
    const [why] = whys;
    if (why !== undefined) return { why, atJump: true, unclear: whys.length > 1 };
  }
  for (const [pattern, why] of vague) if (pattern.test(text)) return { why, atJump: false };
  return { why: 'unknown', atJump: false };
}

/** How a person would reach the host, and what to call it. */
export type Place = {
  readonly node: string;
  /** "10.1.230.180 port 22", as far as it is known. */
  readonly address: string;
  /** Name of the node or host that it is reached through. */
  readonly via: string | undefined;
  /** "user@host" with `-J`, `-p` and `-i` where it needs them: what stands after `ssh`. */
  readonly sshArgs: string;
  /** The same for ssh-copy-id, which has no `-J`. */
  readonly copyIdArgs: string;
  readonly port: number;
  readonly host: string;
  /** The name as the cluster file has it: a Host of one of the ssh_config files, or a name in DNS. */
  readonly written?: string;
  readonly lookedIn?: readonly Looked[];
};

/** The failure as a person reads it: one sentence that names the node, and something to run or to look at. */
export function failureOf(symptom: Symptom, place: Place, text: string): Unreachable {
  const { node, address, via } = place;
  const from = via === undefined ? '' : ` from ${via}`;
  const say = (sentence: string, remedy: string): Unreachable => ({
    kind: 'unreachable',
    why: symptom.why,
    sentence,
    remedy,
    text: plainText(text),
  });
  switch (symptom.why) {
    case 'no-route':
      return say(
        `No network route leads to ${node} (${address})${from}.`,
        `Look whether ${node} is on and the address is still its own${via ? `: ssh ${via}, then ping ${place.host}` : `: ping ${place.host}`}`,
      );
    case 'refused':
      return say(
        `${node} (${address}) refuses the connection${from}: no SSH server listens there.`,
        `Mend the port in the cluster file, or on ${node}'s console: sudo systemctl start ssh`,
      );
    case 'timeout-connect':
      return say(
        `${node} (${address}) does not answer${from}: it is off, its address changed, or a firewall drops the packets.`,
        `Look whether ${node} is on, and which address it has: ip -4 addr, on its console`,
      );
    case 'timeout-banner':
      return say(
        `TCP answers on ${node} (${address}), but no SSH banner comes: its SSH server hangs, or the host may be out of memory or wedged.`,
        `Wait a minute and try again: ssh ${place.sshArgs}; if it stays so, ${node} needs a restart at its power button`,
      );
    case 'key-refused':
      return say(
        `${node} (${address}) accepts none of your keys.`,
        /bad permissions|UNPROTECTED/i.test(text)
          ? 'The key file may be read by others, so ssh passed it over: chmod 600 that file'
          : `ssh-copy-id ${place.copyIdArgs}`,
      );
    case 'passphrase-needed':
      return say(`The key for ${node} has a passphrase, and no agent holds it.`, 'ssh-add');
    case 'host-key-unknown':
      return say(
        `The host key of ${node} (${address}) is not known here.`,
        `Compare the fingerprint with ${node}'s own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then accept it: ssh ${place.sshArgs}`,
      );
    case 'host-key-changed':
      return say(
        `The host key of ${node} (${address}) is not the one that was known: it was installed anew, or something else answers there.`,
        `Ask who changed it; then ${removeLine(text, place)}`,
      );
    case 'jump-may-not-forward':
      return say(
        `${via ?? 'The jump host'} may not forward connections to ${node}: its SSH server forbids it.`,
        `On ${via ?? 'the jump host'}: set AllowTcpForwarding yes in /etc/ssh/sshd_config, then sudo systemctl reload ssh`,
      );
    case 'jump-unreachable':
      return say(
        `${node} is reached through ${via ?? 'a jump host'}, which is not reached itself.`,
        `Mend ${via ?? 'the jump host'} first`,
      );
    case 'too-many-connections':
      return say(
        `${via === undefined || !symptom.atJump ? node : via} (${address}) has too many logins at once and drops new ones (sshd's MaxStartups or MaxSessions).`,
        `Try again in a moment, or raise MaxStartups in /etc/ssh/sshd_config on ${node}`,
      );
    case 'name-unknown':
      return nameless(place, say);
    case 'closed':
      return say(
        `The connection to ${node} (${address}) was closed.`,
        `Look whether ${node} restarted: ssh ${place.sshArgs} uptime`,
      );
    case 'unknown':
      return say(`ssh did not reach ${node} (${address}).`, `See what it says: ssh -v ${place.sshArgs} true`);
    default:
      return symptom.why satisfies never;
  }
}

/** Neither an ssh_config nor DNS knows the name, or what an ssh_config makes of it: what was looked for, and where. */
function nameless(
  { node, host, via, written = host, lookedIn = [] }: Place,
  say: (sentence: string, remedy: string) => Unreachable,
): Unreachable {
  const where = via === undefined ? 'here' : `on ${via}`;
  if (written !== host)
    return say(
      `The name of ${node} (${written}) is a Host of ssh_config, and its HostName ${host} leads to no address ${where}.`,
      `Mend HostName of Host ${written} in ${list(lookedIn.filter(({ hosts }) => hosts?.includes(written)).map(({ file }) => file)) || 'ssh_config'}`,
    );
  const files = lookedIn.map(({ file, hosts }) => {
    if (hosts === undefined) return `${file} (not there)`;
    return hosts.length === 0 ? file : `${file} (which has ${someOf(hosts)})`;
  });
  return say(
    `The name of ${node} (${host}) leads to no address: no ssh_config has such a Host, and neither DNS nor /etc/hosts ${where} knows it.`,
    `Mend ssh: of ${node} in the cluster file, or write Host ${host} with its HostName into an ssh_config${files.length === 0 ? '' : `; looked in ${list(files)}`}`,
  );
}

const MOST_HOSTS = 8;

function someOf(hosts: readonly string[]): string {
  const more = hosts.length - MOST_HOSTS;
  return more <= 0 ? list(hosts) : `${hosts.slice(0, MOST_HOSTS).join(', ')} and ${more} more`;
}

/** ssh prints the line that removes the old key; without it we write it. */
function removeLine(text: string, place: Place): string {
  const printed = /ssh-keygen -f ['"]?([^'"\n]+)['"]? -R ['"]?([^'"\r\n]+)['"]?/.exec(text);
  if (printed?.[1] !== undefined && printed[2] !== undefined) {
    return `ssh-keygen -f '${printed[1]}' -R '${printed[2]}'`;
  }
  return `ssh-keygen -R '${place.port === 22 ? place.host : `[${place.host}]:${place.port}`}'`;
}

/** Lines of ssh that say nothing of the failure; key fingerprints and banners of servers go too. */
function plainText(text: string): string {
  return text
    .split(/\r?\n/)
    .filter(
      (line) => line.trim() !== '' && !/^(\*\* |@+|Pseudo-terminal|Warning: Permanently added)/.test(line),
    )
    .slice(-12)
    .join('\n');
}
