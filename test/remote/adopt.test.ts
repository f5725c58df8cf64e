import { spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adoptRank } from '../../src/remote/adopt.ts';
import type { Host } from '../../src/remote/host.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import { followRank, stopRank } from '../../src/remote/rank-runner.ts';
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

describe('a process that somebody started by hand', () => {
  let far: FarSide;
  let host: Host;
  let farHost: FarHost;
  const folder = (name: string) => join(farHost.home, '.firstlight/machine-a/ranks', name);
  const adopt = (name: string, pid: number | string, log?: string) =>
    adoptRank(
      host,
      { name, kind: 'process', target: String(pid), log, record: { name, adopted: true } },
      { signal: never },
    );

  /** An engine as a shell starts it: its output in a file, a child that would outlive it. */
  async function byHand(name: string): Promise<{ readonly pid: number; readonly child: number }> {
    const log = join(farHost.home, `${name}.log`);
    const out = openSync(log, 'w');
    const started = spawn('sh', ['-c', 'sleep 98743 & echo "child $!"; while :; do sleep 1; done'], {
      detached: true,
      stdio: ['ignore', out, out],
    });
    started.unref();
    await until(() => /child \d+\n/.test(readFileSync(log, 'utf8')));
    if (started.pid === undefined) throw new Error('it did not start');
    const child = Number(/child (\d+)/.exec(readFileSync(log, 'utf8'))?.[1]);
    for (const pid of [started.pid, child])
      symlinkSync(`/proc/${pid}`, join(farHost.folder, 'proc', String(pid)));
    return { pid: started.pid, child };
  }
  const runs = (pid: number): boolean =>
    existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    farHost = await far.host('a', { keys: [far.publicKey(key)] });
    const [first] = openHosts(clusterOf(far, key, [{ name: 'a', host: farHost }]), {
      secrets: secretsOf({}),
      socketFolder: join(far.folder, 's'),
    }).all;
    if (first === undefined) throw new Error('no host');
    host = first;
  });
  afterAll(async () => {
    await endMasters(join(far.folder, 's'));
    await far.close();
  });

  it('is followed from the file that its shell sent its output to, and not touched', async () => {
    const { pid, child } = await byHand('head');
    expect(await adopt('hand-r0', pid)).toMatchObject({ kind: 'ran', code: 0, stdout: 'adopted\n' });
    expect(await adopt('hand-r0', pid)).toMatchObject({ kind: 'ran', code: 0, stdout: 'already\n' });
    expect(readFileSync(join(folder('hand-r0'), 'adopted'), 'utf8')).toMatch(
      new RegExp(`^process ${pid} \\d+\n$`),
    );
    await until(() => readFileSync(join(folder('hand-r0'), 'log'), 'utf8') === `child ${child}\n`);
    expect(runs(pid) && runs(child)).toBe(true);

    const followed = followRank(host, 'hand-r0', 0, {
      signal: never,
      lines: () => undefined,
      beat: () => undefined,
    });
    const stopped = await stopRank(host, 'hand-r0', { graceSeconds: 3 }, { signal: never });
    expect(stopped).toMatchObject({ kind: 'ran', code: 0, stdout: 'stopped\n' });
    expect(runs(pid) || runs(child)).toBe(false);
    // No child of ours: its exit code is nobody's to know.
    expect(await followed).toMatchObject({ kind: 'gone' });
    expect(await stopRank(host, 'hand-r0', { graceSeconds: 1 }, { signal: never })).toMatchObject({
      code: 0,
    });
  }, 40_000);

  it('is left alone where another process has its pid by now', async () => {
    const { pid, child } = await byHand('worker');
    await adopt('hand-r1', pid);
    const record = join(folder('hand-r1'), 'adopted');
    await host.run({ argv: ['sh', '-c', `echo "process ${pid} 1" >${record}`] }, { signal: never });
    expect(await stopRank(host, 'hand-r1', { graceSeconds: 1 }, { signal: never })).toMatchObject({
      code: 0,
    });
    expect(runs(pid) && runs(child)).toBe(true);
    process.kill(-pid, 'SIGKILL');
  }, 40_000);

  it('is refused where it is not there, or its log is not', async () => {
    expect(await adopt('none-r0', 4_194_001)).toMatchObject({
      code: 3,
      stdout: 'there is no process 4194001\n',
    });
    const { pid } = await byHand('other');
    expect(await adopt('none-r0', pid, '/no/such.log')).toMatchObject({
      code: 3,
      stdout: 'there is no log /no/such.log that can be read\n',
    });
    expect(existsSync(folder('none-r0'))).toBe(false);
    process.kill(-pid, 'SIGKILL');
  }, 40_000);
});
