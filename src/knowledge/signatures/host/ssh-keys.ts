import { always, inOrder, lineSignature, whoSaid } from '../line-signature.ts';
import { pattern, type Signature } from '../signature.ts';

/** No key that the host accepts could be used. */
export const sshKey = lineSignature({
  name: 'ssh-key',
  cause: 'ssh-key-not-available',
  seenOn: 'OpenSSH 7 to 10, paramiko 3',
  source: 'OpenSSH sshconnect2.c, sshkey.c and authfile.c; paramiko ssh_exception.py',
  forms: [
    pattern(
      [
        'Permission denied (',
        'Permission denied, please try again',
        'Too many authentication failures',
        'No supported authentication methods',
        'no mutual signature',
      ],
      /(?:(?<user>[\w.-]{1,400})@(?<host>[\w.:-]{1,400}): )?Permission denied \((?<methods>(?:publickey|password|gssapi|keyboard|hostbased)[^)]{0,400})\)|Too many authentication failures|No supported authentication methods available|no mutual signature algorithm/,
    ),
    pattern(
      [
        'Load key "',
        'UNPROTECTED PRIVATE KEY',
        'are too open',
        'agent refused operation',
        'no such identity: ',
        'Enter passphrase for key',
        'incorrect passphrase',
        'read_passphrase',
        'ssh_askpass',
      ],
      /Load key "(?<key>[^"]{1,400})": (?<why>.+)|UNPROTECTED PRIVATE KEY FILE|Permissions (?<mode>\d+) for '(?<path>[^']{1,400})' are too open|agent refused operation|no such identity: (?<missing>[^:]{1,400})|Enter passphrase for key '?(?<locked>[^':]{1,400})|incorrect passphrase|read_passphrase: can't open|ssh_askpass: exec/,
    ),
    pattern(
      [
        'Could not open a connection to your authentication agent',
        'PasswordRequiredException',
        'AuthenticationException',
        'private key file is encrypted',
      ],
      /Could not open a connection to your authentication agent|PasswordRequiredException|[Pp]rivate key file is encrypted|(?:paramiko\.\S{0,300})?AuthenticationException/,
    ),
  ],
  at: always('launcher'),
  title: ({ groups }) =>
    groups['host'] === undefined
      ? 'No key could be used that the host accepts'
      : `${groups['host']} accepts no key of ${groups['user']}`,
  why: ({ message, groups }) =>
    groups['locked'] !== undefined || /passphrase|encrypted|askpass/.test(message)
      ? 'The key has a passphrase, and nobody was there to type it: no agent holds it, and batch mode asks nothing.'
      : /too open|UNPROTECTED/.test(message)
        ? 'ssh ignores a private key that others can read.'
        : 'The key is missing where ssh was started, or its public half is not in authorized_keys of that user.',
  advice: ({ groups }) => [
    'Load the key into an agent before: eval "$(ssh-agent)"; ssh-add ~/.ssh/id_ed25519; under sudo or cron there is none.',
    `Give the host the public half: ssh-copy-id ${groups['user'] && groups['host'] ? `${groups['user']}@${groups['host']}` : 'USER@HOST'}; then firstlight check gets in. What was tried: ssh -v HOST true`,
    ...(groups['path'] === undefined ? [] : [`chmod 600 ${groups['path']}`]),
  ],
  confidence: 0.92,
  specificity: 2,
  looks: ['user@192.168.100.2: Permission denied (publickey,password).'],
});

const changed = pattern(
  [
    'REMOTE HOST IDENTIFICATION HAS CHANGED',
    'has changed and you have requested strict checking',
    'DNS SPOOFING DETECTED',
    'BadHostKeyException',
    'HOST IDENTIFICATION',
  ],
  /REMOTE HOST IDENTIFICATION HAS CHANGED|(?<type>\w{1,80}) host key for \[?(?<host>[^\]\s]{1,400})\]?\S{0,300} has changed and you have requested strict checking|DNS SPOOFING DETECTED|BadHostKeyException|Host key for server '?(?<server>[^']{1,400}?)'? does not match/,
);
const offending = pattern(
  'ffending ',
  /Offending (?:(?<type>\w{1,80}) )?key in (?<file>[^:]{1,400}):(?<line>\d+)/,
);
const fingerprint = pattern(
  ['SHA256:', 'MD5:'],
  /^(?:(?<type>\w{1,80}) key fingerprint is )?(?<fingerprint>SHA256:[A-Za-z0-9+/=]{1,400}|MD5:[0-9a-f:]{1,400})\.?$/,
);
const unknownKey = pattern(
  [
    "can't be established",
    'host key is known for',
    'Host key verification failed',
    'not found in known_hosts',
    'Are you sure you want to continue connecting',
  ],
  /authenticity of host '(?<host>[^' (]{1,400})[^']{0,400}' can't be established|No (?<type>\w{1,80}) host key is known for \[?(?<name>[^\]\s]{1,400})|Host key verification failed|Server '?(?<server>\S{1,300}?)'? not found in known_hosts|Are you sure you want to continue connecting/,
);

/** The host's key is unknown, or another one than before. */
export const hostKey: Signature = {
  name: 'host-key',
  causes: ['ssh-host-key-changed', 'ssh-host-key-unknown'],
  seenOn: 'OpenSSH 7 to 10, paramiko 3',
  source: 'OpenSSH sshconnect.c; paramiko client.py',
  patterns: [changed, offending, fingerprint, unknownKey],
  looks: ['Host key verification failed.', '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @'],
  match(view) {
    const told = inOrder([changed], view);
    const strange = inOrder([unknownKey], view);
    const first = told[0] ?? strange[0];
    if (first === undefined) return undefined;
    const offence = view.find(offending)[0];
    const print = view.find(fingerprint)[0]?.groups['fingerprint'];
    const named = [...told, ...strange].flatMap(
      ({ groups }) => groups['host'] ?? groups['name'] ?? groups['server'] ?? [],
    )[0];
    const host = named ?? 'the host';
    const isChanged = told.length > 0;
    const all = isChanged ? told : strange;
    const values = {
      host,
      ...(print === undefined ? {} : { fingerprint: print }),
      ...(offence?.groups['file'] === undefined
        ? {}
        : { file: `${offence.groups['file']}:${offence.groups['line']}` }),
    };
    return {
      cause: isChanged ? 'ssh-host-key-changed' : 'ssh-host-key-unknown',
      ...whoSaid(first, all, view),
      shown: [
        ...all.slice(0, 2),
        ...(offence === undefined ? [] : [offence]),
        ...(isChanged ? strange.slice(0, 1) : []),
      ],
      title: isChanged
        ? `The key of ${host} is another one than before`
        : `The key of ${host} is not known here`,
      why: isChanged
        ? 'It was installed anew, another host has its address, or somebody stands in between: ssh cannot tell which.'
        : 'Nobody has compared its fingerprint yet, and strict checking lets no unknown host in.',
      advice: isChanged
        ? [
            `Compare first, on ${host} itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub${print === undefined ? '' : `; it must say ${print}`}`,
            `Then take the old one out: ssh-keygen -R ${host}; firstlight check shows the new fingerprint and takes it with --accept-host-key`,
          ]
        : [
            `Compare first, on ${host} itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub${print === undefined ? '' : `; it must say ${print}`}`,
            `firstlight check shows the fingerprint and takes it with --accept-host-key NODE=${print ?? 'SHA256:…'}`,
          ],
      values,
      confidence: isChanged ? 0.96 : 0.9,
      specificity: 3,
    };
  },
};

/** sudo asks for a password that nobody could type. */
export const sudoPassword = lineSignature({
  name: 'sudo-password',
  cause: 'sudo-needs-password',
  seenOn: 'sudo 1.8 to 1.9, sudo-rs 0.2, polkit',
  source: 'sudo plugins/sudoers and src/tgetpass.c; sudo-rs; systemd',
  forms: [
    pattern(
      [
        'sudo: a password is required',
        'a terminal is required to read the password',
        'no askpass program',
        'must have a tty to run sudo',
        'incorrect password attempt',
        'sudo: no password was provided',
        'sudo: timed out reading password',
      ],
      /sudo: a password is required|a terminal is required to read the password|no tty present and no askpass program|must have a tty to run sudo|incorrect password attempt|no password was provided|timed out reading password/,
    ),
    pattern(
      [
        'is not in the sudoers file',
        'is not allowed to execute',
        'interactive authentication is required',
        'Interactive authentication required',
        'sudo-rs',
      ],
      /(?<user>\S{1,300}) is not in the sudoers file|user (?<other>\S{1,300}) is not allowed to execute|[Ii]nteractive authentication (?:is )?required|sudo-rs: .{0,600}(?:[Aa]uthentication|password)/,
    ),
  ],
  title: (_found, where) => `sudo on ${where} wants a password`,
  why: ({ message }) =>
    /sudoers file|not allowed/.test(message)
      ? 'The user may not use sudo there for this command.'
      : 'The command came over a session without a terminal, so nobody could be asked.',
  advice: (_found, where) => [
    `On ${where}, allow exactly the commands that are needed: sudo visudo -f /etc/sudoers.d/firstlight, a line such as USER ALL=(root) NOPASSWD: /usr/bin/tee /proc/sys/vm/drop_caches`,
    'Or give firstlight the password: on a terminal, or with --sudo-password-file; firstlight check then says that root is to be had.',
  ],
  confidence: 0.94,
  specificity: 2,
  looks: [
    'sudo: a terminal is required to read the password; either use the -S option to read from standard input',
  ],
});
