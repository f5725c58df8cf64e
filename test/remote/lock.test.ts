import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../../src/remote/host.ts';
import { takeLock } from '../../src/remote/lock.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import {
  clusterOf,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
} from '../pretend/far-side.ts';

describe('the lock on the nodes', () => {
  let far: FarSide;
  let a: FarHost;
  let b: FarHost;
  let hosts: readonly Host[];
  let gone: Host;
  const folder = (host: FarHost) => join(host.folder, 'tmp/firstlight.lock');
  const take = (run: string, these = hosts) =>
    takeLock(these, { run, owner: `me (run ${run})` }, { signal: never });
  /** Changes the record as if another process, or one of another machine, had written it. */
  const forge = (host: FarHost, change: Record<string, unknown>) => {
    const file = join(folder(host), 'owner');
    const record: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof record !== 'object') throw new Error('no record');
    writeFileSync(file, JSON.stringify({ ...record, ...change }));
  };
  const age = (host: FarHost, seconds: number) => {
    const then = Date.now() / 1000 - seconds;
    for (const name of readdirSync(folder(host))) utimesSync(join(folder(host), name), then, then);
    utimesSync(folder(host), then, then);
  };

  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    a = await far.host('a', { keys: [far.publicKey(key)] });
    b = await far.host('b', { keys: [far.publicKey(key)] });
    const nodes = [
      { name: 'a', host: a },
      { name: 'b', host: b },
    ];
    const all = openHosts(clusterOf(far, key, [...nodes, { name: 'gone', port: 1 }]), {
      secrets: secretsOf(),
      socketFolder: join(far.folder, 's'),
    });
    hosts = nodes.map(({ name }) => all.of(name));
    gone = all.of('gone');
  });
  afterAll(async () => {
    await endMasters(join(far.folder, 's'));
    await far.close();
  });

  it('is held on all nodes, tells the second who holds it, and is given back', async () => {
    const first = await take('1');
    if (first.kind !== 'held') throw new Error('not held');
    expect(await take('2')).toMatchObject({
      kind: 'held-by',
      lock: { owner: 'me (run 1)', run: '1', pid: process.pid },
    });
    expect(JSON.parse(readFileSync(join(folder(a), 'owner'), 'utf8'))).toMatchObject({ run: '1' });
    await first.release();
    await first.release();
    expect([existsSync(folder(a)), existsSync(folder(b))]).toEqual([false, false]);
  });

  it('gives back what it took where another node is held', async () => {
    const first = await take('1', hosts.slice(1));
    expect(await take('2')).toMatchObject({ kind: 'held-by', node: 'b' });
    expect(existsSync(folder(a))).toBe(false);
    if (first.kind === 'held') await first.release();
  });

  it('is taken over when nobody refreshed it for 45 s by the node’s clock, and the old owner learns it', async () => {
    const first = await take('1');
    for (const host of [a, b]) {
      forge(host, { host: 'elsewhere' });
      age(host, 30);
    }
    expect(await take('2')).toMatchObject({ kind: 'held-by', lock: { host: 'elsewhere' } });
    age(a, 60);
    age(b, 60);
    const second = await take('2');
    expect(second.kind).toBe('held');
    if (first.kind === 'held') await first.release();
    expect(await take('3')).toMatchObject({ kind: 'held-by', lock: { run: '2' } });
    if (second.kind === 'held') await second.release();
    expect(existsSync(folder(a))).toBe(false);
  });

  it('is taken again where a restart of the host has emptied /tmp', async () => {
    const mine = await take('again');
    if (mine.kind !== 'held') throw new Error('not held');
    rmSync(folder(b), { recursive: true });
    await expect.poll(() => existsSync(folder(b)), { timeout: 20_000, interval: 200 }).toBe(true);
    expect(mine.lost.aborted).toBe(false);
    expect(await take('other')).toMatchObject({ kind: 'held-by', lock: { run: 'again' } });
    await mine.release();
    expect(existsSync(folder(b))).toBe(false);
  });

  it('is taken over at once when its owner was a process of this machine that is gone', async () => {
    const first = await take('1');
    const child = spawn('sleep', ['60']);
    const { pid } = child;
    if (pid === undefined) throw new Error('no process');
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ');
    for (const host of [a, b]) forge(host, { pid, started: stat[21] });
    expect((await take('2')).kind).toBe('held-by');
    await new Promise((resolve) => {
      child.on('exit', resolve);
      child.kill('SIGKILL');
    });
    const second = await take('2');
    expect(second.kind).toBe('held');
    if (second.kind === 'held') await second.release();
    // Else it would take the free lock again at its next beat, from the tests that follow.
    if (first.kind === 'held') await first.release();
  });

  it('has one taker when many take over a dead one', async () => {
    const first = await take('1');
    for (const host of [a, b]) {
      forge(host, { host: 'elsewhere' });
      age(host, 60);
    }
    const all = await Promise.all(Array.from({ length: 8 }, (_, index) => take(String(index + 10))));
    expect(all.filter((one) => one.kind === 'held')).toHaveLength(1);
    expect(all.filter((one) => one.kind === 'held-by')).toHaveLength(7);
    for (const one of [first, ...all]) if (one.kind === 'held') await one.release();
    expect(readdirSync(join(a.folder, 'tmp'))).toEqual([]);
  });

  it('left half made is cleared away when it is old', async () => {
    const first = await take('1', hosts.slice(0, 1));
    if (first.kind !== 'held') throw new Error('not held');
    for (const name of readdirSync(folder(a)).filter((file) => file !== 'owner')) {
      rmSync(join(folder(a), name));
    }
    age(a, 60);
    const second = await take('2', hosts.slice(0, 1));
    expect(second.kind).toBe('held');
    await first.release();
    expect(existsSync(folder(a))).toBe(true);
    if (second.kind === 'held') await second.release();
  });

  it('is held on the others where one does not answer, and keeps a second one out there', async () => {
    const first = await take('1', [...hosts, gone]);
    expect(first.kind).toBe('held');
    expect([existsSync(folder(a)), existsSync(folder(b))]).toEqual([true, true]);
    expect(await take('2', [gone, ...hosts])).toMatchObject({ kind: 'held-by' });
    if (first.kind === 'held') await first.release();
    expect([existsSync(folder(a)), existsSync(folder(b))]).toEqual([false, false]);
  });

  it('counts one host under two names once', async () => {
    const [first] = hosts;
    if (first === undefined) throw new Error('no host');
    const twice = await take('1', [first, first]);
    expect(twice.kind).toBe('held');
    if (twice.kind === 'held') await twice.release();
    expect(existsSync(folder(a))).toBe(false);
  });

  it('that a host cannot give is the host’s trouble, not ours, and leaves none behind', async () => {
    rmSync(join(b.folder, 'tmp'), { recursive: true });
    writeFileSync(join(b.folder, 'tmp'), 'no folder');
    await expect(take('1')).rejects.toMatchObject({
      name: 'UserError',
      message: expect.stringContaining('b gives no lock in /tmp: '),
      hint: expect.stringContaining('df -h /tmp'),
    });
    expect(existsSync(folder(a))).toBe(false);
    rmSync(join(b.folder, 'tmp'));
    mkdirSync(join(b.folder, 'tmp'));
  });
});
