import { always, inOrder, lineSignature, whoSaid } from '../line-signature.ts';
import { headOf } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const forwarding = pattern(
  [
    'administratively prohibited',
    'open failed: unknown channel type',
    'forwarding is disabled',
    'port forwarding disabled',
    'AllowTcpForwarding',
  ],
  /(?:channel \d+: )?open failed: administratively prohibited|forwarding (?:is |has been )?(?:disabled|not permitted|refused)|AllowTcpForwarding no/,
);
const stdio = pattern('stdio forwarding failed', /stdio forwarding failed/);
const beyondJump = pattern(
  'open failed: connect failed',
  /channel \d+: open failed: connect failed: (?<reason>.+)/,
);
const unknownPort = pattern('UNKNOWN port 65535', /Connection closed by UNKNOWN port 65535/);

/** The jump host refuses to open the second hop. */
export const jumpForwarding: Signature = {
  name: 'jump-forwarding',
  causes: ['ssh-jump-forwarding-disabled'],
  seenOn: 'OpenSSH 7 to 10',
  source: 'OpenSSH clientloop.c and channels.c; sshd_config(5)',
  patterns: [forwarding, stdio, unknownPort, beyondJump],
  looks: ['channel 0: open failed: administratively prohibited: open failed'],
  match(view) {
    if (view.find(beyondJump).length > 0) return undefined;
    const all = inOrder([forwarding, stdio, unknownPort], view);
    const first = all[0];
    if (first === undefined) return undefined;
    const said = view.find(forwarding).length > 0;
    if (!said && view.find(stdio).length === 0) return undefined;
    const place = whoSaid(first, all, view);
    return {
      cause: 'ssh-jump-forwarding-disabled',
      // Where the launcher's log says it, the jump host is the head: workers lie behind it.
      ...(place.node === undefined
        ? {
            node: headOf(view.evidence),
            ...(headOf(view.evidence) === undefined ? { atFault: 'launcher' as const } : {}),
          }
        : place),
      shown: all.slice(0, 4),
      title: 'The jump host does not forward connections',
      why: 'ssh asked it to open the second hop (ProxyJump), and its server is set to refuse that.',
      advice: [
        'On the jump host: sudo sshd -T | grep -i allowtcpforwarding; with "no", add to /etc/ssh/sshd_config: Match User YOU, AllowTcpForwarding yes, and sudo systemctl reload ssh',
        'Or reach the node by an address of its own, without jump: in the cluster file. firstlight check then gets through.',
      ],
      confidence: said ? 0.95 : 0.7,
      specificity: 3,
    };
  },
};

/** The address does not lead to the host, or nobody answers there. */
export const sshAddress = lineSignature({
  name: 'ssh-address',
  cause: 'ssh-wrong-address',
  seenOn: 'OpenSSH 7 to 10, paramiko 3',
  source: 'OpenSSH sshconnect.c and misc.c; getaddrinfo(3); paramiko client.py',
  forms: [
    pattern(
      ['ssh: connect to host ', 'scp: Connection', 'sftp: '],
      /ssh: connect to host (?<address>\S{1,300}) port (?<port>\d+): (?<reason>Connection timed out|Operation timed out|No route to host|Connection refused|Network is unreachable|Host is down|Invalid argument|Address family not supported.{0,600})/,
    ),
    pattern(
      ['Could not resolve hostname', 'Name or service not known', 'name resolution'],
      /Could not resolve hostname (?<address>[^:]{1,400}): (?<reason>.+)/,
    ),
    pattern(
      ['Unable to connect to port', 'NoValidConnectionsError'],
      /Unable to connect to port (?<port>\d+) on (?<address>\S{1,300})|NoValidConnectionsError/,
    ),
    beyondJump,
  ],
  counts: ({ message }) => !/\\r|huggingface/.test(message),
  at: always('launcher'),
  title: ({ groups }) =>
    groups['address'] === undefined
      ? 'A host does not answer at the address it was given'
      : `No host answers at ${groups['address'].trim()}${groups['port'] ? ` port ${groups['port']}` : ''}`,
  why: ({ groups }) =>
    /resolve|not known|resolution/.test(groups['reason'] ?? '') || groups['port'] === undefined
      ? 'The name leads nowhere from the machine that dials.'
      : groups['reason'] === 'Connection refused'
        ? 'There is a host, and no ssh server on that port: the address belongs to another, or the port is wrong.'
        : 'The address is no longer that of the node (a new lease, a link-local address), or cannot be reached from the machine that dials.',
  advice: ({ groups }) => [
    `Correct the address in the cluster file; try it: ssh -v ${groups['address']?.trim() ?? 'HOST'} true`,
    'On the node itself, what it is called now: hostname -I; ip -br addr. firstlight check then gets through.',
  ],
  confidence: ({ groups }) => (groups['reason'] === 'Connection refused' ? 0.68 : 0.8),
  specificity: 2,
  looks: ['ssh: connect to host 192.168.100.9 port 22: Connection timed out'],
});

const kexClosed = pattern(
  ['kex_exchange_identification', 'ssh_exchange_identification'],
  /(?:kex|ssh)_exchange_identification: (?:read: )?Connection (?:closed|reset)/,
);

/** sshd drops logins that come too many at once, or a connection holds too many sessions. */
export const sshLimits = lineSignature({
  name: 'ssh-limits',
  cause: 'ssh-server-limits-connections',
  seenOn: 'OpenSSH 7 to 10',
  source: 'sshd_config(5): MaxStartups, MaxSessions, PerSourcePenalties; OpenSSH sshd.c, kex.c and mux.c',
  forms: [
    pattern(
      [
        'MaxStartups',
        'Session open refused by peer',
        'Too many open sessions',
        'no more sessions',
        'srclimit_penalise',
        'Not allowed at this time',
        'MaxSessions',
      ],
      /MaxStartups|Session open refused by peer|[Tt]oo many open sessions|no more sessions|srclimit|Not allowed at this time|MaxSessions/,
    ),
    kexClosed,
    pattern(
      ['Connection reset by', 'Connection closed by'],
      /^Connection (?:reset|closed) by (?<address>[\d.a-fA-F:]{1,400}) port (?<port>\d+)$/,
    ),
  ],
  unless: [forwarding, stdio, unknownPort, beyondJump],
  at: serverWho,
  title: (_found, where) => `The ssh server of ${where} drops logins because too many come at once`,
  why: 'sshd lets about ten connections log in at a time (MaxStartups 10:30:100) and closes others before they say a word.',
  advice: (_found, where) => [
    'Open one connection and share it (ControlMaster auto, ControlPersist), as firstlight does, or start fewer at once.',
    `On ${where}: sudo sshd -T | grep -i -e maxstartups -e maxsessions -e persource; journalctl -u ssh | grep -i -e throttling -e penalt`,
  ],
  confidence: ({ message }) => (/exchange_identification|^Connection/.test(message) ? 0.74 : 0.93),
  specificity: 2,
  looks: ['kex_exchange_identification: read: Connection reset by peer'],
});

/** The server that drops: in its own log itself; in another's the node that was dialled, the other one of a pair. */
function serverWho(first: Found, all: readonly Found[], view: View): ReturnType<typeof whoSaid> {
  const own = all.find(({ message }) => /drop connection|throttling|srclimit/.test(message));
  if (own !== undefined) return whoSaid(own, [own], view);
  const workers = view.evidence.ranks.filter(({ role }) => role === 'worker');
  return { node: workers[0]?.node ?? (first.role === 'head' ? 'worker' : first.node) };
}
