import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/domain/cluster.ts';
import { pause } from '../../src/remote/limit.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import {
  clusterOf,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
  until,
} from '../pretend/far-side.ts';

const TIMED_OUT = 'ssh: connect to host 192.168.200.13 port 22: Connection timed out';

/** A wire that can be cut: what goes through it stays in it from then on, as where packets are dropped. */
async function wire(port: () => number) {
  const pairs = new Set<readonly [Socket, Socket]>();
  let whole = true;
  const server: Server = createServer((near) => {
    const far = dial(port(), '127.0.0.1');
    const pair = [near, far] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on('error', () => undefined); // the other side went first
      from.on('close', () => {
        pairs.delete(pair);
        to.destroy();
      });
    }
    if (whole) near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    cut: () => {
      whole = false;
      for (const [near, far] of pairs) for (const end of [near, far]) end.unpipe().pause();
    },
    mend: () => {
      whole = true;
      for (const [near, far] of pairs) near.pipe(far).pipe(near);
    },
    close: () => {
      for (const pair of pairs) for (const end of pair) end.destroy();
      server.close();
    },
  };
}

describe('a host that falls silent behind an open connection', () => {
  let far: FarSide;
  let key: string;
  let head: FarHost;
  let worker: FarHost;
  let toHead: Awaited<ReturnType<typeof wire>>;
  let toWorker: Awaited<ReturnType<typeof wire>>;
  let told: string[] = [];
  const sockets = () => join(far.folder, 's');
  const file = (name: string) => join(far.folder, name);
  const open = (cluster: Cluster) =>
    openHosts(cluster, {
      secrets: secretsOf(),
      socketFolder: sockets(),
      quietMs: 50,
      vainMs: 3_600_000,
      thereMs: 0,
      onQuiet: (name) => void told.push(name),
    });
  /** What the way from here to the head, and the head's own ssh to the worker, meets from now on: its words, or nothing. */
  const here = (words: string) => writeFileSync(file('here-meets'), words);
  const fromHead = (words: string) => writeFileSync(join(head.home, 'meets'), words && `${words}\n`);

  beforeAll(async () => {
    far = farSide();
    key = far.key('client');
    worker = await far.host('worker', { keys: [far.publicKey(key)] });
    toWorker = await wire(() => worker.ssh.port);
    head = await far.host('head', {
      keys: [far.publicKey(key)],
      dial: () =>
        new Promise((resolve) => {
          const socket = dial(toWorker.port, '127.0.0.1', () => resolve(socket));
        }),
    });
    toHead = await wire(() => head.ssh.port);
    writeFileSync(
      join(head.bin, 'ssh'),
      '#!/bin/sh\necho "$*" >>"$HOME/asked"\ncat "$HOME/meets"; [ ! -s "$HOME/meets" ]\n',
      {
        mode: 0o755,
      },
    );
    writeFileSync(
      file('way.mjs'),
      `import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
const meets = readFileSync(${JSON.stringify(file('here-meets'))}, 'utf8');
if (meets !== '') {
  console.error(meets);
  process.exit(255);
}
const to = connect(${toHead.port}, '127.0.0.1');
process.stdin.pipe(to).pipe(process.stdout);
`,
    );
  });
  beforeEach(() => {
    told = [];
    here('');
    fromHead('');
  });
  afterAll(async () => {
    toHead.close();
    toWorker.close();
    await endMasters(sockets());
    await far.close();
    rmSync(far.folder, { recursive: true, force: true });
  });

  /** A head that is reached by a program of the test, and a worker behind it. */
  function cluster(tag: string): Cluster {
    const made = clusterOf(
      far,
      key,
      [
        { name: `head-${tag}`, ssh: `head-${tag}` },
        { name: `worker-${tag}`, ssh: '192.168.200.13', jump: `head-${tag}` },
      ],
      {
        more: `Host 192.168.200.13\nHostKeyAlias lab-worker\nHost head-${tag}\nHostKeyAlias lab-head\nProxyCommand ${process.execPath} ${file('way.mjs')}\n`,
      },
    );
    const keyOf = (host: FarHost) => far.publicKey(host.hostKey).split(' ').slice(0, 2).join(' ');
    writeFileSync(`${made.sshConfig}-known`, `lab-worker ${keyOf(worker)}\nlab-head ${keyOf(head)}\n`);
    return made;
  }
  const say = (word: string) => ({ argv: ['echo', word], timeoutSeconds: 60 });

  it('is given up once its jump host finds that nobody answers, and the face is told once', async () => {
    const host = open(cluster('dark')).of('worker-dark');
    expect(await host.run(say('there'), { signal: never })).toMatchObject({ stdout: 'there\n' });
    told = [];
    fromHead(TIMED_OUT);
    toWorker.cut();
    const both = await Promise.all([1, 2].map((word) => host.run(say(`${word}`), { signal: never })));
    const asked = readFileSync(join(head.home, 'asked'), 'utf8');
    for (const ran of both) {
      expect(ran).toMatchObject({ kind: 'lost', failure: { why: 'timeout-connect', text: TIMED_OUT } });
    }
    expect(told).toEqual(['worker-dark']);
    // Whom nobody has made sure of gets no key, no agent and no forwarding, and no open connection is taken or left.
    for (const words of asked.trim().split('\n'))
      for (const word of ['PreferredAuthentications=none', '-S none', 'ControlMaster=no', 'ForwardAgent=no'])
        expect(words).toContain(word);
    // What follows at once does not wait once more.
    rmSync(join(head.home, 'asked'), { force: true });
    expect(await host.run(say('next'), { signal: never })).toEqual(both[0]);
    expect(existsSync(join(head.home, 'asked'))).toBe(false);
    toWorker.mend();
  });

  it('is not asked again soon after it was found to be there', async () => {
    const made = cluster('slow-again');
    await open(made).of('worker-slow-again').connect({ signal: never });
    let quiet: () => void = () => undefined;
    const host = openHosts(made, {
      secrets: secretsOf(),
      socketFolder: sockets(),
      quietMs: 50,
      thereMs: 3_600_000,
      onQuiet: () => quiet(),
    }).of('worker-slow-again');
    const asked = join(head.home, 'asked');
    /** One session that hears nothing until the jump host was asked, or was not for a while. */
    const askedWhile = async (word: string, most: number): Promise<boolean> => {
      rmSync(asked, { force: true });
      const silent = new Promise<void>((resolve) => {
        quiet = resolve;
      });
      toWorker.cut();
      const pending = host.run(say(word), { signal: never });
      await silent;
      for (let looks = 0; looks < most && !existsSync(asked); looks += 1) await pause(20, never);
      toWorker.mend();
      expect(await pending).toMatchObject({ stdout: `${word}\n` });
      return existsSync(asked);
    };
    expect(await askedWhile('first', 2000)).toBe(true);
    // An answer that comes after the session is heard again is not waited for: then the next one asks, too.
    let round = 0;
    while (await askedWhile(`${round}`, 50)) {
      round += 1;
      expect(round).toBeLessThan(20);
    }
  }, 60_000);

  it('is waited for where it is only slow', async () => {
    const host = open(cluster('slow')).of('worker-slow');
    expect(await host.run(say('there'), { signal: never })).toMatchObject({ stdout: 'there\n' });
    let heard: () => void = () => undefined;
    const silent = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const other = openHosts(cluster('slow'), {
      secrets: secretsOf(),
      socketFolder: sockets(),
      quietMs: 50,
      onQuiet: () => heard(),
    }).of('worker-slow');
    toWorker.cut();
    const pending = other.run(say('late'), { signal: never });
    await silent;
    toWorker.mend();
    expect(await pending).toMatchObject({ stdout: 'late\n' });
  });

  it('is given up where the way to it from here is dark, and so is who lies behind it', async () => {
    const hosts = open(cluster('off'));
    const names = ['head-off', 'worker-off'];
    const ask = () => Promise.all(names.map((name) => hosts.of(name).run(say(name), { signal: never })));
    expect(await ask()).toMatchObject([{ stdout: 'head-off\n' }, { stdout: 'worker-off\n' }]);
    here('ssh: connect to host head-off port 22: Connection timed out');
    toHead.cut();
    const [first, second] = await ask();
    expect(first).toMatchObject({ kind: 'lost', failure: { why: 'timeout-connect' } });
    expect(second).toMatchObject({ kind: 'lost', failure: { why: 'jump-unreachable' } });
    expect(second?.kind === 'lost' && second.failure.sentence).toContain(
      'head-off (head-off port 22) does not',
    );
    toHead.mend();
  });

  it('is asked about by its jump host while a login through that one waits, and gets in all the same', async () => {
    const made = cluster('cold');
    const patient = { secrets: secretsOf(), socketFolder: sockets(), connectTimeoutSeconds: 60, quietMs: 50 };
    const hosts = openHosts(made, patient);
    expect(await hosts.of('head-cold').connect({ signal: never })).toBeUndefined();
    rmSync(join(head.home, 'asked'), { force: true });
    worker.ssh.fail('wedged');
    const pending = hosts.of('worker-cold').connect({ signal: never });
    await until(() => existsSync(join(head.home, 'asked')));
    worker.ssh.fail('none');
    expect(await pending).toBeUndefined();
  });
});
