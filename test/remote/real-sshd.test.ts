import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { script } from '../../src/domain/command.ts';
import type { Host } from '../../src/remote/host.ts';
import { masterAlive } from '../../src/remote/master-alive.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import { runProbes } from '../../src/remote/run-probes.ts';
import { endMasters, type FarSide, farSide, never, secretsOf } from '../pretend/far-side.ts';

const SSHD = '/usr/sbin/sshd';

describe.skipIf(!existsSync(SSHD))('with OpenSSH’s own server', () => {
  let far: FarSide;
  let sshd: ChildProcess;
  let host: Host;

  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    const hostKey = far.key('host-key');
    const authorized = join(far.folder, 'authorized');
    writeFileSync(authorized, `${far.publicKey(key)}\n`);
    chmodSync(far.folder, 0o755);
    // sshd run by root wants its folder for privilege separation.
    if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
    const port = await freePort();
    const config = join(far.folder, 'sshd_config');
    writeFileSync(
      config,
      `Port ${port}\nListenAddress 127.0.0.1\nHostKey ${hostKey}\nAuthorizedKeysFile ${authorized}\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n`,
    );
    sshd = spawn(SSHD, ['-D', '-e', '-f', config], { stdio: 'ignore' });
    await listening(port);
    const known = join(far.folder, 'known');
    writeFileSync(
      known,
      `[127.0.0.1]:${port} ${readFileSync(`${hostKey}.pub`, 'utf8').split(' ').slice(0, 2).join(' ')}\n`,
    );
    const sshConfig = join(far.folder, 'ssh_config');
    writeFileSync(sshConfig, `UserKnownHostsFile ${known}\n`);
    const [first] = openHosts(
      {
        name: 'real',
        file: join(far.folder, 'cluster.yaml'),
        sshConfig,
        nodes: [{ name: 'real', ssh: '127.0.0.1', port, user: userInfo().username, key }],
      },
      { secrets: secretsOf(), socketFolder: join(far.folder, 's') },
    ).all;
    if (first === undefined) throw new Error('no host');
    host = first;
  });
  afterAll(async () => {
    await endMasters(join(far.folder, 's'));
    sshd.kill();
    await far.close();
  });

  it('runs twenty commands at once over one connection', async () => {
    expect(await host.connect({ signal: never })).toBeUndefined();
    const words = ["it's", 'a\nb', '$HOME', '-n', ''];
    const ran = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        host.run(script('printf "%s|" "$@"; exit 3', [...words, String(index)]), { signal: never }),
      ),
    );
    expect(ran).toEqual(
      ran.map((_, index) =>
        expect.objectContaining({
          kind: 'ran',
          code: 3,
          stdout: `${[...words, String(index)].join('|')}|`,
          stderr: '',
        }),
      ),
    );
  });

  it('tells by its socket that its master lives', async () => {
    const sockets = readdirSync(join(far.folder, 's')).filter((name) => /^[0-9a-f]{16}$/.test(name));
    expect(sockets).toHaveLength(1);
    expect(await masterAlive(join(far.folder, 's', sockets[0] ?? ''))).toBe('alive');
  });

  it('runs probes, and dials', async () => {
    const probes = [{ name: 'uid', script: 'id -u', timeoutSeconds: 3 }];
    const ran = await runProbes(host, probes, '', { signal: never });
    expect(ran.kind === 'ran' && ran.outputs.get('uid')?.stdout).toBe(`${process.getuid?.()}\n`);
    const echo = createServer((socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    const address = echo.address();
    const stream = host.dial('127.0.0.1', typeof address === 'object' && address !== null ? address.port : 0);
    stream.end('round');
    let text = '';
    for await (const chunk of stream) text += String(chunk);
    expect(text).toBe('round');
    await new Promise((resolve) => echo.close(resolve));
  });

  it('ends what runs when its channel closes and it writes on', async () => {
    const controller = new AbortController();
    const marker = join(far.folder, 'ticks');
    const pending = host.run(script(`echo $$ >${marker}; while echo tick; do sleep 0.05; done`), {
      signal: controller.signal,
    });
    while (!existsSync(marker) || readFileSync(marker, 'utf8') === '')
      await new Promise((go) => setTimeout(go, 20));
    controller.abort(new Error('left'));
    await expect(pending).rejects.toThrow('left');
    const pid = readFileSync(marker, 'utf8').trim();
    while (existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')) {
      await new Promise((go) => setTimeout(go, 20));
    }
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const up = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (up) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
