import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../../src/remote/host.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import { runProbes } from '../../src/remote/run-probes.ts';
import {
  clusterOf,
  done,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
} from '../pretend/far-side.ts';

describe('probes of one host', () => {
  let far: FarSide;
  let host: Host;
  let farHost: FarHost;
  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    farHost = await far.host('a', { keys: [far.publicKey(key)] });
    const [first] = openHosts(clusterOf(far, key, [{ name: 'a', host: farHost }]), {
      secrets: secretsOf(),
      socketFolder: join(far.folder, 's'),
    }).all;
    if (first === undefined) throw new Error('no host');
    host = first;
  });
  afterAll(async () => {
    await endMasters(join(far.folder, 's'));
    await far.close();
  });

  it('that are quick share a process, each with its own end, and one that hangs is told with those behind it', async () => {
    const script = 'echo $$ >&2; echo "<$x>"; x=left';
    const ran = await runProbes(
      host,
      [
        { name: 'one', script: `${script}; exit 4`, timeoutSeconds: 5, quick: true },
        { name: 'alone', script: 'echo $$ >&2', timeoutSeconds: 5 },
        { name: 'two', script, timeoutSeconds: 5, quick: true },
        { name: 'broken', script: 'if then', timeoutSeconds: 5, quick: true },
        { name: 'hangs', script: 'echo begun; sleep 60', timeoutSeconds: 1, quick: true },
        { name: 'behind', script: 'echo never', timeoutSeconds: 5, quick: true },
      ],
      '',
      { signal: never },
    );
    if (ran.kind !== 'ran') throw new Error('lost');
    const { one, alone, two, broken, hangs, behind } = Object.fromEntries(ran.outputs);
    expect(one).toMatchObject({ code: 4, stdout: '<>\n', timedOut: false });
    expect(two).toMatchObject({ code: 0, stdout: '<>\n', stderr: one?.stderr });
    expect(alone?.stderr).not.toBe(one?.stderr);
    expect(broken).toMatchObject({ code: 2, timedOut: false });
    expect(hangs).toMatchObject({ code: 124, stdout: 'begun\n', timedOut: true });
    expect(behind).toMatchObject({ code: 124, stdout: '', timedOut: true });
  });

  it('come back in one round trip, each with its own end', async () => {
    const ran = await runProbes(
      host,
      [
        { name: 'memory', script: 'cat "$R/proc/meminfo"; echo "$A"', timeoutSeconds: 5 },
        { name: 'fails', script: 'echo part; echo why >&2; exit 7', timeoutSeconds: 5 },
        { name: 'empty', script: '', timeoutSeconds: 5 },
        { name: 'stdin', script: 'cat; printf "no newline ż"', timeoutSeconds: 5 },
        { name: 'not sh', script: 'if then', timeoutSeconds: 5 },
      ],
      "A='set before'",
      { signal: never },
    );
    if (ran.kind !== 'ran') throw new Error('lost');
    expect(Object.fromEntries(ran.outputs)).toMatchObject({
      memory: { code: 0, stdout: 'MemTotal: 1000 kB\nMemAvailable:  900 kB\nset before\n', timedOut: false },
      fails: { code: 7, stdout: 'part\n', stderr: 'why\n' },
      empty: { code: 0, stdout: '' },
      stdin: { code: 0, stdout: 'no newline ż' },
      'not sh': { code: 2, stdout: '' },
    });
    // One clock for both here: it began there after it was sent, and before its time had come back.
    expect(ran.nodeEpochSeconds).toBeGreaterThan(ran.sentAt / 1000 - 0.1);
    expect(ran.nodeEpochSeconds).toBeLessThan(ran.receivedAt / 1000 + 0.1);
  });

  it('end at their own timeout with all that they started, and the others do not wait', async () => {
    const started = performance.now();
    const ran = await runProbes(
      host,
      [
        {
          name: 'hangs',
          script: "trap '' TERM; echo seen; sleep 98745 & sleep 98745; sleep 98745",
          timeoutSeconds: 1,
        },
        { name: 'quick', script: 'echo quick', timeoutSeconds: 3 },
        { name: 'ends', script: 'sleep 1.5; echo done', timeoutSeconds: 4 },
      ],
      '',
      { signal: never },
    );
    expect(performance.now() - started).toBeLessThan(10_000);
    if (ran.kind !== 'ran') throw new Error('lost');
    expect(Object.fromEntries(ran.outputs)).toMatchObject({
      hangs: { timedOut: true, stdout: 'seen\n' },
      quick: { timedOut: false, stdout: 'quick\n' },
      ends: { timedOut: false, stdout: 'done\n' },
    });
    expect((await done(['pgrep', '-f', 'sleep 98745'])).stdout).toBe('');
  });

  it('are cut after one MiB, and leave nothing behind', async () => {
    const ran = await runProbes(
      host,
      [
        {
          name: 'big',
          script: 'dd if=/dev/zero bs=1024 count=3000 2>/dev/null | tr "\\0" x',
          timeoutSeconds: 5,
        },
      ],
      '',
      { signal: never },
    );
    if (ran.kind !== 'ran') throw new Error('lost');
    expect(ran.outputs.get('big')?.stdout.length).toBe(1024 * 1024);
    expect(readdirSync(join(farHost.folder, 'tmp'))).toEqual([]);
  });

  it('that all stay out are a host that was not reached, with what a new connection says', async () => {
    const broken = { kind: 'unreachable', why: 'closed', sentence: '', remedy: '', text: '' } as const;
    const silent = (failure: typeof broken | undefined): Host => ({
      node: host.node,
      dial: () => host.dial('127.0.0.1', 1),
      run: (command, options) => host.run(command, options),
      connect: async () => failure,
      leave: async () => undefined,
      stream: async () => ({ kind: 'timeout', seconds: 22, stdout: '', stderr: '' }),
    });
    const probe = { name: 'memory', script: 'true', timeoutSeconds: 12 };
    const dead = await runProbes(silent(broken), [probe], '', { signal: never });
    expect(dead).toEqual({ kind: 'lost', failure: broken });
    const wedged = await runProbes(silent(undefined), [probe], '', { signal: never });
    expect(wedged).toMatchObject({
      kind: 'lost',
      failure: { sentence: expect.stringContaining('a lets SSH in, but runs nothing') },
    });
  });
});
