import { describe, expect, it } from 'vitest';
import { classify, failureOf, type Place } from '../../src/remote/classify.ts';

const place: Place = {
  node: 'spark-b',
  address: '192.168.200.13 port 22',
  via: 'spark-a',
  sshArgs: '-J user@head user@192.168.200.13',
  copyIdArgs: '-o ProxyJump=user@head user@192.168.200.13',
  port: 22,
  host: '192.168.200.13',
};
/** Noise that real launchers had around the lines that matter. */
const noise =
  'Pseudo-terminal will not be allocated because stdin is not a terminal.\n** WARNING: connection is not using a post-quantum key exchange algorithm.\nbash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)\n';

describe('what ssh says', () => {
  it.each([
    ['timeout-connect', 'ssh: connect to host 192.168.100.9 port 22: Connection timed out'],
    ['no-route', 'ssh: connect to host 10.0.0.9 port 22: No route to host'],
    ['no-route', 'ssh: connect to host 10.0.0.9 port 22: Network is unreachable'],
    ['refused', 'ssh: connect to host 10.0.0.9 port 22: Connection refused'],
    [
      'timeout-banner',
      'Connection timed out during banner exchange\nConnection to 10.0.0.9 port 22 timed out',
    ],
    ['key-refused', 'user@spark-b: Permission denied (publickey).'],
    ['key-refused', 'Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures'],
    [
      'host-key-changed',
      '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nOffending key in /home/user/.ssh/known_hosts:27\nRSA host key for spark-b has changed and you have requested strict checking.\nHost key verification failed.',
    ],
    ['host-key-unknown', 'Host key verification failed.'],
    [
      'too-many-connections',
      'kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.0.0.2 port 22',
    ],
    [
      'jump-may-not-forward',
      'channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed\nkex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535',
    ],
    ['name-unknown', 'ssh: Could not resolve hostname spark-b: Name or service not known'],
    ['closed', 'mux_client_request_session: read from master failed: Broken pipe'],
    ['closed', 'Timeout, server 10.0.0.2 not responding.'],
    ['unknown', 'something new'],
  ])('is %s', (why, text) => {
    expect(classify(noise + text, '').why).toBe(why);
    const failure = failureOf(classify(noise + text, ''), place, noise + text);
    expect(failure.sentence).toContain('spark-b');
    expect(failure.remedy).not.toBe('');
    expect(failure.text).not.toContain('Pseudo-terminal');
  });

  it('names a host that nobody knows, with all places in which it was looked for', () => {
    const unknown = { why: 'name-unknown', atJump: false } as const;
    const { via: _, ...direct } = place;
    const lookedIn = [
      { file: '/c/my_ssh_config', hosts: ['spark-one', 'spark-two'] },
      { file: '~/.ssh/config', hosts: undefined },
      { file: '/etc/ssh/ssh_config', hosts: [] },
    ];
    const told = failureOf(
      unknown,
      { ...direct, via: undefined, host: 'sparkone', written: 'sparkone', lookedIn },
      '',
    );
    expect(told.sentence).toBe(
      'The name of spark-b (sparkone) leads to no address: no ssh_config has such a Host, and neither DNS nor /etc/hosts here knows it.',
    );
    expect(told.remedy).toBe(
      'Mend ssh: of spark-b in the cluster file, or write Host sparkone with its HostName into an ssh_config; looked in /c/my_ssh_config (which has spark-one and spark-two), ~/.ssh/config (not there) and /etc/ssh/ssh_config',
    );
    const behind = failureOf(unknown, { ...place, host: 'gone.example', written: 'spark-two', lookedIn }, '');
    expect(behind.sentence).toBe(
      'The name of spark-b (spark-two) is a Host of ssh_config, and its HostName gone.example leads to no address on spark-a.',
    );
    expect(behind.remedy).toBe('Mend HostName of Host spark-two in /c/my_ssh_config');
  });

  it('is not mixed up with what the jump host says of others at the same time', () => {
    const others = 'channel 3: open failed: connect failed: Connection refused\n';
    expect(classify('user@spark-b: Permission denied (publickey).', others).why).toBe('key-refused');
    const closed =
      'kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535';
    expect(classify(closed, others)).toMatchObject({ why: 'refused', atJump: true, unclear: false });
    expect(classify(closed, others + others)).toMatchObject({ unclear: true });
    expect(classify(closed, '').why).toBe('too-many-connections');
  });
});
