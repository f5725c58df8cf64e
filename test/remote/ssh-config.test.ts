import { chmodSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster, Node } from '../../src/domain/cluster.ts';
import { openSocketFolder } from '../../src/remote/socket-folder.ts';
import { makeLinks, splitDestination } from '../../src/remote/ssh-config.ts';
import { done, type FarSide, farSide } from '../pretend/far-side.ts';

describe('the generated ssh_config', () => {
  let far: FarSide;
  beforeAll(() => {
    far = farSide();
  });
  afterAll(() => far.close());
  const links = (nodes: readonly Node[], sshConfig?: string) => {
    const cluster: Cluster = {
      name: 't',
      file: join(far.folder, 'cluster.yaml'),
      nodes,
      ...(sshConfig === undefined ? {} : { sshConfig }),
    };
    return makeLinks(cluster, openSocketFolder(join(far.folder, 's')), { connectTimeoutSeconds: 10 });
  };
  const settings = async (config: string, destination: string) => {
    const { stdout } = await done(['ssh', '-G', '-F', config, '--', destination]);
    return new Map(
      stdout.split('\n').map((line) => [line.split(' ')[0], line.split(' ').slice(1).join(' ')]),
    );
  };

  it('sets only what the cluster file sets, and leaves the rest to the user’s own', async () => {
    const own = join(far.folder, 'own config');
    writeFileSync(
      own,
      'Host spark\nHostName 10.9.8.7\nUser configured\nPort 2200\nBatchMode no\nControlPath /nowhere\n',
    );
    const link = links([{ name: 'a', ssh: 'spark' }], own).get('a');
    const seen = await settings(link?.config ?? '', link?.destination ?? '');
    expect([seen.get('hostname'), seen.get('user'), seen.get('port')]).toEqual([
      '10.9.8.7',
      'configured',
      '2200',
    ]);
    expect([seen.get('batchmode'), seen.get('controlpath')]).toEqual(['yes', link?.socket]);
    const named = links([{ name: 'a', ssh: 'me@spark', user: 'other', port: 22 }], own).get('a');
    const set = await settings(named?.config ?? '', named?.destination ?? '');
    expect([set.get('user'), set.get('port')]).toEqual(['me', '22']);
  });

  it('copes with paths that ssh_config cannot quote', async () => {
    const odd = join(far.folder, 'odd "quoted" [a] $HOME 100% dir');
    mkdirSync(odd);
    const own = join(odd, 'config');
    writeFileSync(own, 'Host spark\nHostName 10.9.8.6\n');
    const key = join(odd, 'id');
    writeFileSync(key, '');
    const link = links([{ name: 'a', ssh: 'spark', key }], own).get('a');
    const seen = await settings(link?.config ?? '', 'spark');
    expect(seen.get('hostname')).toBe('10.9.8.6');
    expect(lstatSync(seen.get('identityfile') ?? '').isSymbolicLink()).toBe(true);
  });

  it('names a socket after all that it depends on', () => {
    const own = join(far.folder, 'changing');
    writeFileSync(own, 'Host x\n');
    const first = links([{ name: 'a', ssh: 'spark' }], own).get('a')?.socket;
    expect(links([{ name: 'a', ssh: 'spark' }], own).get('a')?.socket).toBe(first);
    writeFileSync(own, 'Host y\n');
    expect(links([{ name: 'a', ssh: 'spark' }], own).get('a')?.socket).not.toBe(first);
    expect(Buffer.byteLength(first ?? '')).toBeLessThan(100);
  });

  it('goes through one link for all nodes behind the same jump host', () => {
    const made = links([
      { name: 'a', ssh: '10.0.0.1', jump: 'first,me@second:2222' },
      { name: 'b', ssh: '10.0.0.2', jump: 'first,me@second:2222' },
      { name: 'c', ssh: '10.0.0.3', jump: 'a' },
      { name: 'd', ssh: '10.0.0.4', jump: 'none' },
    ]);
    expect(made.get('a')?.via).toBe(made.get('b')?.via);
    expect(made.get('a')?.via).toMatchObject({ destination: 'second', port: 2222, user: 'me' });
    expect(made.get('a')?.via?.via).toMatchObject({ destination: 'first' });
    expect(made.get('c')?.via).toBe(made.get('a'));
    expect(made.get('d')?.via).toBeUndefined();
    expect(readFileSync(made.get('c')?.config ?? '', 'utf8')).toContain(`-W [%h]:%p -- 10.0.0.1`);
  });

  it('takes destinations apart as ssh does', () => {
    expect(splitDestination('host')).toEqual({ host: 'host' });
    expect(splitDestination('a@b@host')).toEqual({ user: 'a@b', host: 'host' });
    expect(splitDestination('ssh://me@host:2222')).toEqual({ user: 'me', host: 'host', port: 2222 });
    expect(splitDestination('ssh://[::1]:22')).toEqual({ host: '::1', port: 22 });
    expect(splitDestination('me@fe80::1')).toEqual({ user: 'me', host: 'fe80::1' });
  });
});

describe('the folder of sockets', () => {
  let far: FarSide;
  beforeAll(() => {
    far = farSide();
  });
  afterAll(() => far.close());

  it('is ours alone and short, whatever XDG_RUNTIME_DIR says', () => {
    const long = join(far.folder, 'x'.repeat(100));
    mkdirSync(long);
    expect(openSocketFolder(undefined, { XDG_RUNTIME_DIR: long }).path).not.toContain('xxx');
    const odd = join(far.folder, 'a b');
    mkdirSync(odd);
    const { path } = openSocketFolder(undefined, { XDG_RUNTIME_DIR: odd });
    expect(path).toBe(join(odd, 'firstlight'));
    chmodSync(path, 0o755);
    openSocketFolder(undefined, { XDG_RUNTIME_DIR: odd });
    expect(lstatSync(path).mode & 0o777).toBe(0o700);
  });

  it('is refused when it is a link to somewhere else', () => {
    const link = join(far.folder, 'link');
    symlinkSync(far.folder, link);
    expect(() => openSocketFolder(link)).toThrow('is not a folder of yours');
  });
});
