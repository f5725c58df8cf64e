import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { done, type FarHost, type FarSide, farSide, USER, until } from '../pretend/far-side.ts';

describe('the SSH server of the lab, as OpenSSH clients see it', () => {
  let far: FarSide;
  let host: FarHost;
  let base: readonly string[];
  const ssh = (...args: string[]) => done(['ssh', ...base, ...args]);

  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    host = await far.host('a', { keys: [far.publicKey(key)], env: { SHOWN: 'yes' } });
    const config = join(far.folder, 'config');
    writeFileSync(
      config,
      `Host a\nHostName 127.0.0.1\nPort ${host.ssh.port}\nUser ${USER}\nIdentityFile ${key}\nIdentitiesOnly yes\n` +
        `BatchMode yes\nStrictHostKeyChecking no\nUserKnownHostsFile ${far.folder}/known\nLogLevel ERROR\n` +
        `KexAlgorithms curve25519-sha256\nControlPath ${far.folder}/s\n`,
    );
    base = ['-F', config];
  });
  afterAll(() => far.close());

  it('runs commands through the login shell with only its own environment', async () => {
    const ran = await ssh('a', 'env | sort; echo err >&2; exit 7');
    expect(ran.code).toBe(7);
    expect(ran.stderr).toBe('err\n');
    const names = ran.stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    expect(names.filter((name) => name !== '_' && name !== 'PWD')).toEqual([
      'FIRSTLIGHT_ROOT',
      'HOME',
      'LOGNAME',
      'PATH',
      'SHOWN',
      'USER',
    ]);
  });

  it('hands on stdin whole and ends it', async () => {
    const text = 'x'.repeat(3_000_000);
    const ran = await done(['ssh', ...base, 'a', 'cat'], text);
    expect(ran.stdout).toBe(text);
  });

  it('tells of a signal', async () => {
    const ran = await ssh('a', 'kill -TERM $$');
    expect(ran.code).toBe(255);
  });

  it('refuses other keys and users', async () => {
    const other = far.key('other');
    const ran = await ssh('-o', `IdentityFile=${other}`, '-i', other, '-o', 'User=nobody', 'a', 'true');
    expect(ran.code).toBe(255);
    expect(ran.stderr).toContain('Permission denied (publickey)');
  });

  it('serves ten sessions on one multiplexed connection, and refuses the eleventh', async () => {
    expect((await ssh('-MNf', '-E', join(far.folder, 'master.log'), 'a')).code).toBe(0);
    expect((await ssh('-O', 'check', 'a')).code).toBe(0);
    const wait = 'echo >> begun; while ! [ -e go ]; do sleep 0.05; done';
    const eleven = Array.from({ length: 11 }, () => ssh('a', wait));
    const begun = join(host.home, 'begun');
    await until(() => existsSync(begun) && readFileSync(begun).length === 11);
    writeFileSync(join(host.home, 'go'), '');
    const ran = await Promise.all(eleven);
    // The refused client opens a connection of its own without a word but this.
    expect(ran.map(({ code }) => code)).toEqual(Array(11).fill(0));
    expect(ran.filter(({ stderr }) => stderr.includes('Session open refused by peer'))).toHaveLength(1);
    const after = await ssh('a', 'echo again');
    expect(after.stdout).toBe('again\n');
    await ssh('-O', 'exit', 'a');
  });

  it('opens connections for -W, and says refused as sshd says it', async () => {
    const echo = createServer((socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    const address = echo.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const ran = await done(['ssh', ...base, '-W', `127.0.0.1:${port}`, 'a'], 'round');
    expect(ran.stdout).toBe('round');
    await new Promise((resolve) => echo.close(resolve));
    const refused = await ssh('-S', 'none', '-v', '-W', `127.0.0.1:${port}`, 'a');
    expect(refused.stderr).toContain('open failed: connect failed: Connection refused');
    host.ssh.fail('forbids-forwarding');
    const forbidden = await ssh('-S', 'none', '-v', '-W', `127.0.0.1:${port}`, 'a');
    host.ssh.fail('none');
    expect(forbidden.stderr).toContain('administratively prohibited: open failed');
  });

  it('closes the pipes of a command whose client went away', async () => {
    const pending = ssh(
      'a',
      'trap "" PIPE; echo > dropped; while echo tick; do sleep 0.05; done; echo gone > left',
    );
    await until(() => existsSync(join(host.home, 'dropped')));
    host.ssh.dropConnections();
    expect((await pending).code).toBe(255);
    const seen = await ssh(
      'a',
      'i=0; while ! [ -s left ] && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.1; done; cat left',
    );
    expect(seen.stdout).toBe('gone\n');
  });
});
