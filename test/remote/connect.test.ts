import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/domain/cluster.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import {
  clusterOf,
  done,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
  USER,
  until,
} from '../pretend/far-side.ts';

describe('a connection to a host', () => {
  let far: FarSide;
  let key: string;
  let head: FarHost;
  let worker: FarHost;
  /** How the head dials on: by name of the address, as its own network would. */
  const network = new Map<string, () => number | 'ECONNREFUSED' | 'EHOSTUNREACH' | 'ETIMEDOUT' | 'silence'>();
  const sockets = () => join(far.folder, 's');
  const open = (cluster: Cluster, connectTimeoutSeconds = 5) =>
    openHosts(cluster, { secrets: secretsOf(), socketFolder: sockets(), connectTimeoutSeconds });
  const connect = (cluster: Cluster, name: string, seconds = 5) =>
    open(cluster, seconds).of(name).connect({ signal: never });
  const pair = (more: { workerKey?: string; known?: readonly FarHost[]; tag: string }) =>
    clusterOf(
      far,
      key,
      [
        { name: 'head', host: head },
        {
          name: `worker-${more.tag}`,
          ssh: '192.168.200.13',
          jump: 'head',
          ...(more.workerKey === undefined ? {} : { key: more.workerKey }),
        },
      ],
      { known: more.known ?? [head], more: `Host 192.168.200.13\nHostKeyAlias lab-worker\n` },
    );

  beforeAll(async () => {
    far = farSide();
    key = far.key('client');
    head = await far.host('head', {
      keys: [far.publicKey(key)],
      dial: (address) => {
        const to = network.get(address)?.() ?? 'EHOSTUNREACH';
        if (to === 'silence') return new Promise(() => undefined);
        if (typeof to === 'string') return Promise.resolve({ error: to });
        return new Promise((resolve) => {
          const socket = dial(to, '127.0.0.1');
          socket.once('connect', () => resolve(socket));
        });
      },
    });
    worker = await far.host('worker', { keys: [far.publicKey(key)] });
    network.set('192.168.200.13', () => worker.ssh.port);
  });
  afterAll(async () => {
    await endMasters(sockets());
    await far.close();
  });
  const knowWorker = (cluster: Cluster) => {
    const text = `lab-worker ${far.publicKey(worker.hostKey).split(' ').slice(0, 2).join(' ')}\n`;
    writeFileSync(`${cluster.sshConfig}-known`, text, { flag: 'a' });
    return cluster;
  };

  it('goes through the open connection of a jump node, and is found by the next run', async () => {
    const cluster = knowWorker(pair({ tag: 'fine' }));
    const hosts = open(cluster);
    expect(await hosts.of('worker-fine').connect({ signal: never })).toBeUndefined();
    const ran = await hosts
      .of('worker-fine')
      .run({ argv: ['cat', `${worker.folder}/etc/machine-id`] }, { signal: never });
    expect(ran).toMatchObject({ kind: 'ran', stdout: 'machine-worker\n' });
    expect([head.ssh.connections, worker.ssh.connections]).toEqual([1, 1]);
    await Promise.all(open(cluster).all.map((host) => host.connect({ signal: never })));
    expect([head.ssh.connections, worker.ssh.connections]).toEqual([1, 1]);
  });

  it('shares one attempt among all who ask at once', async () => {
    const cluster = clusterOf(far, key, [{ name: 'shared', host: head }]);
    const [host] = open(cluster).all;
    const before = head.ssh.connections;
    expect(await Promise.all(Array.from({ length: 12 }, () => host?.connect({ signal: never })))).toEqual(
      Array(12).fill(undefined),
    );
    expect(head.ssh.connections).toBe(before + 1);
  });

  it('dials on from the host, and a refusal is the stream’s error', async () => {
    const [host] = open(clusterOf(far, key, [{ name: 'dials', host: worker }])).all;
    const echo = await listen((socket) => socket.pipe(socket));
    const stream = host?.dial('127.0.0.1', portOf(echo));
    if (stream === undefined) throw new Error('no stream');
    stream.end('there and back');
    let text = '';
    for await (const chunk of stream) text += String(chunk);
    expect(text).toBe('there and back');
    const port = portOf(echo);
    await close(echo);
    const refused = host?.dial('127.0.0.1', port);
    await expect(new Promise((_, reject) => refused?.on('error', reject).resume())).rejects.toThrow(
      /no connection/,
    );
  });

  it('hands on the answer of a server that was gone before all was written', async () => {
    const [host] = open(clusterOf(far, key, [{ name: 'hasty', host: worker }])).all;
    const hasty = await listen((socket) => socket.once('data', () => socket.end('answered')));
    const stream = host?.dial('127.0.0.1', portOf(hasty));
    if (stream === undefined) throw new Error('no stream');
    let trouble: unknown;
    stream.on('error', (error) => {
      trouble = error;
    });
    stream.write('ask');
    // Its answer is here, and ssh ends a moment later: whoever writes until then meets both.
    for (let more = 0; trouble === undefined && more < 60; more += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (stream.readableLength > 0) stream.write('more');
    }
    expect(trouble).toBeUndefined();
    let text = '';
    for await (const chunk of stream) text += String(chunk);
    expect(text).toBe('answered');
    await close(hasty);
  });

  it('says that the connection is refused', async () => {
    const listener = await listen(() => undefined);
    const port = portOf(listener);
    await close(listener);
    expect(await connect(clusterOf(far, key, [{ name: 'shut', port }]), 'shut')).toMatchObject({
      why: 'refused',
      sentence: `shut (127.0.0.1 port ${port}) refuses the connection: no SSH server listens there.`,
    });
  });

  it('says that a name leads nowhere', async () => {
    expect(
      await connect(clusterOf(far, key, [{ name: 'lost', ssh: 'no-such-host.invalid' }]), 'lost'),
    ).toMatchObject({
      why: 'name-unknown',
      sentence: expect.stringContaining(
        'The name of lost (no-such-host.invalid) leads to no address: no ssh_config',
      ),
      remedy: expect.stringMatching(
        /^Mend ssh: of lost .*looked in .*~\/\.ssh\/config.* and \/etc\/ssh\/ssh_config/,
      ),
    });
  });

  it('says that an alias is in no ssh_config, which names there are, and what an alias leads to', async () => {
    const sshConfig = join(far.folder, 'hosts_config');
    writeFileSync(
      sshConfig,
      'Host spark-one "spark two" *.cluster !x\n  HostName 10.9.8.7\n\nhost=spark-gone\n  HostName gone.invalid\nHost *\n',
    );
    const cluster = {
      ...clusterOf(far, key, [
        { name: 'a', ssh: 'sparkone.invalid' },
        { name: 'b', ssh: 'spark-gone' },
      ]),
      sshConfig,
    };
    const a = await connect(cluster, 'a');
    expect(a?.remedy).toContain(`looked in ${sshConfig} (which has spark-one, spark two and spark-gone), `);
    const b = await connect(cluster, 'b');
    expect(b?.sentence).toContain(
      '(spark-gone) is a Host of ssh_config, and its HostName gone.invalid leads',
    );
    expect(b?.remedy).toBe(`Mend HostName of Host spark-gone in ${sshConfig}`);
  });

  it('tells a host that answers TCP and shows no banner', async () => {
    worker.ssh.fail('wedged');
    const failure = await connect(clusterOf(far, key, [{ name: 'wedged', host: worker }]), 'wedged', 1);
    worker.ssh.fail('none');
    expect(failure).toMatchObject({ why: 'timeout-banner' });
    expect(failure?.sentence).toContain('may be out of memory or wedged');
  });

  it('tries again where logins are dropped, and says so in the end', async () => {
    worker.ssh.fail('resets-connections');
    const started = performance.now();
    const failure = await connect(clusterOf(far, key, [{ name: 'crowded', host: worker }]), 'crowded');
    expect(failure, failure?.text).toMatchObject({ why: 'too-many-connections' });
    expect(performance.now() - started).toBeGreaterThan(1200);
    const pending = connect(clusterOf(far, key, [{ name: 'crowded', host: worker }]), 'crowded');
    setTimeout(() => worker.ssh.fail('none'), 300);
    expect(await pending).toBeUndefined();
  });

  it('shows an unknown host key without logging in, and takes it when it is the one shown', async () => {
    const cluster = clusterOf(far, key, [{ name: 'new', host: worker }], { known: [] });
    const failure = await connect(cluster, 'new');
    const { stdout } = await done(['ssh-keygen', '-lf', `${worker.hostKey}.pub`]);
    const fingerprint = stdout.split(' ')[1] ?? '';
    expect(failure).toMatchObject({ why: 'host-key-unknown', hostKey: { type: 'ED25519', fingerprint } });
    await expect(
      open(cluster).acceptHostKey('new', 'SHA256:another', { signal: never }),
    ).rejects.toMatchObject({ code: 'host-key-changed' });
    await open(cluster).acceptHostKey('new', fingerprint, { signal: never });
    expect(readFileSync(`${cluster.sshConfig}-known`, 'utf8')).toContain(
      `[127.0.0.1]:${worker.ssh.port} ssh-ed25519`,
    );
    expect(await connect(cluster, 'new')).toBeUndefined();
  });

  it('fetches an unknown host key through a jump too', async () => {
    const failure = await connect(pair({ tag: 'unknown' }), 'worker-unknown');
    expect(failure).toMatchObject({ why: 'host-key-unknown', hostKey: { type: 'ED25519' } });
  });

  it('tells a host key that changed from one that is unknown', async () => {
    const cluster = clusterOf(far, key, [{ name: 'swapped', host: worker }], { known: [] });
    writeFileSync(
      `${cluster.sshConfig}-known`,
      `[127.0.0.1]:${worker.ssh.port} ${far.publicKey(head.hostKey).split(' ').slice(0, 2).join(' ')}\n`,
    );
    const failure = await connect(cluster, 'swapped');
    expect(failure).toMatchObject({ why: 'host-key-changed' });
    expect(failure?.remedy).toContain(
      `ssh-keygen -f '${cluster.sshConfig}-known' -R '[127.0.0.1]:${worker.ssh.port}'`,
    );
  });

  it('says which line puts a refused key right', async () => {
    const other = far.key('other');
    expect(
      await connect(clusterOf(far, other, [{ name: 'refusing', host: worker }]), 'refusing'),
    ).toMatchObject({
      why: 'key-refused',
      remedy: `ssh-copy-id -p ${worker.ssh.port} ${USER}@127.0.0.1`,
    });
  });

  it('asks the jump node whether its own key gets in where ours is refused', async () => {
    const other = far.key('third');
    const cluster = knowWorker(pair({ tag: 'third', workerKey: other }));
    writeFileSync(join(head.bin, 'ssh'), `#!/bin/sh\necho "$@" >"$HOME/asked"\nexit 0\n`, { mode: 0o755 });
    const failure = await connect(cluster, 'worker-third');
    expect(failure).toMatchObject({
      why: 'key-refused',
      remedy: `ssh-copy-id -o ProxyJump=${USER}@127.0.0.1:${head.ssh.port} ${USER}@192.168.200.13`,
    });
    expect(failure?.sentence).toContain("head's own key does get in there.");
    expect(readFileSync(join(head.home, 'asked'), 'utf8')).toContain(
      `-p 22 -l ${USER} -- 192.168.200.13 true`,
    );
  });

  it('says that a key has a passphrase', async () => {
    const locked = far.key('locked', 'secret phrase');
    expect(await connect(clusterOf(far, locked, [{ name: 'locked', host: worker }]), 'locked')).toMatchObject(
      {
        why: 'passphrase-needed',
        remedy: `ssh-add ${locked}`,
      },
    );
  });

  it('says what the jump node met when it dialled on', async () => {
    const cluster = knowWorker(pair({ tag: 'behind' }));
    network.set('192.168.200.13', () => 'ECONNREFUSED');
    expect(await connect(cluster, 'worker-behind')).toMatchObject({
      why: 'refused',
      sentence:
        'worker-behind (192.168.200.13 port 22) refuses the connection from head: no SSH server listens there.',
    });
    network.set('192.168.200.13', () => 'EHOSTUNREACH');
    expect(await connect(cluster, 'worker-behind')).toMatchObject({ why: 'no-route' });
    head.ssh.fail('forbids-forwarding');
    const failure = await connect(cluster, 'worker-behind');
    head.ssh.fail('none');
    expect(failure).toMatchObject({ why: 'jump-may-not-forward' });
    expect(failure?.sentence).toContain('head may not forward connections to worker-behind');
    network.set('192.168.200.13', () => 'silence');
    writeFileSync(
      join(head.bin, 'ssh'),
      '#!/bin/sh\necho "ssh: connect to host 192.168.200.13 port 22: Connection timed out" >&2\nexit 255\n',
      { mode: 0o755 },
    );
    expect(await connect(cluster, 'worker-behind', 1)).toMatchObject({ why: 'timeout-connect' });
    // A way that ends without a word is no crowd of logins where the jump host itself finds nobody.
    const closes = await listen((socket) => socket.destroy());
    network.set('192.168.200.13', () => portOf(closes));
    expect(await connect(cluster, 'worker-behind')).toMatchObject({ why: 'timeout-connect' });
    await close(closes);
    network.set('192.168.200.13', () => worker.ssh.port);
  });

  it('names the jump node when that one is not reached', async () => {
    const listener = await listen(() => undefined);
    const port = portOf(listener);
    await close(listener);
    const cluster = clusterOf(far, key, [
      { name: 'dead-head', port },
      { name: 'behind-dead', ssh: '192.168.200.13', jump: 'dead-head' },
    ]);
    const failure = await connect(cluster, 'behind-dead');
    expect(failure).toMatchObject({ why: 'jump-unreachable' });
    expect(failure?.sentence).toContain('dead-head (127.0.0.1');
  });

  it('goes through a jump host that is no node', async () => {
    const cluster = knowWorker(
      clusterOf(
        far,
        key,
        [
          {
            name: 'plain-jump',
            ssh: `ssh://${USER}@192.168.200.13:22`,
            jump: `${USER}@127.0.0.1:${head.ssh.port}`,
          },
        ],
        { known: [head], more: `Host 192.168.200.13\nHostKeyAlias lab-worker\nHost *\nIdentityFile ${key}` },
      ),
    );
    expect(await connect(cluster, 'plain-jump')).toBeUndefined();
  });

  it('refuses jumps in a circle', () => {
    expect(() =>
      open(
        clusterOf(far, key, [
          { name: 'x', jump: 'y' },
          { name: 'y', jump: 'x' },
        ]),
      ),
    ).toThrow('x → y → x');
  });

  it('logs in anew once it was left, and what runs goes on', async () => {
    const [host] = open(clusterOf(far, key, [{ name: 'left', host: worker }])).all;
    await host?.connect({ signal: never });
    const logins = worker.ssh.connections;
    const running = host?.run({ argv: ['sh', '-c', 'echo >begun; sleep 1; echo done'] }, { signal: never });
    await until(() => existsSync(join(worker.home, 'begun')));
    await host?.leave({ signal: never });
    expect(await host?.run({ argv: ['echo', 'new'] }, { signal: never })).toMatchObject({ stdout: 'new\n' });
    expect(worker.ssh.connections).toBe(logins + 1);
    expect(await running).toMatchObject({ stdout: 'done\n' });
  });

  it('says that it was closed when the link breaks, and opens again for the next command', async () => {
    const [host] = open(clusterOf(far, key, [{ name: 'broken', host: worker }])).all;
    const pending = host?.run({ argv: ['sh', '-c', 'echo >there; sleep 5'] }, { signal: never });
    await until(() => existsSync(join(worker.home, 'there')));
    worker.ssh.dropConnections();
    expect(await pending).toMatchObject({ kind: 'lost', failure: { why: 'closed' } });
    expect(await host?.run({ argv: ['echo', 'back'] }, { signal: never })).toMatchObject({
      stdout: 'back\n',
    });
  });
});

function listen(onSocket: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer(onSocket);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
