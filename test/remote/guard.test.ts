import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { GuardRig, runs, session, startTicks, until } from './guard-rig.ts';

const rigs: GuardRig[] = [];
afterAll(() => {
  for (const rig of rigs.splice(0)) rig.close();
});
function rigOf(availableGib: number): GuardRig {
  const rig = new GuardRig(availableGib);
  rigs.push(rig);
  return rig;
}

const SHELLS = ['dash', 'busybox sh'].filter(
  (shell) => spawnSync(shell.split(' ')[0] ?? '', ['-c', 'true']).error === undefined,
);

describe.concurrent.each(SHELLS)('the guard in %s', (shell) => {
  it('stops all of its rank under the reserve, writes why with the curve, and touches nobody else', async () => {
    const rig = rigOf(60);
    const rank = await rig.process(true);
    const other = await rig.process(false);
    rig.engine(rank);
    rig.guard(shell);
    expect(await rig.recorded('guards')).toMatchObject({ by: 'signal', reserveBytes: 3 * 2 ** 30 });
    rig.memory(2.5);
    const record = await rig.recorded('stopped');
    expect(record).toMatchObject({ why: 'reserve', by: 'signal', memory: 'host' });
    expect(record.lowestBytes).toBe(2.5 * 2 ** 30);
    expect(record.curve.at(0)?.bytes).toBe(60 * 2 ** 30);
    expect(record.curve.at(-1)).toEqual({ second: 0, bytes: 2.5 * 2 ** 30 });
    expect(runs(rank)).toBe(false);
    expect(session(rank)).toEqual([]);
    expect(runs(other)).toBe(true);
    expect(existsSync(join(rig.folder, 'guard.stop'))).toBe(true);
    await until(() => !rig.guarding);
  });

  it('stays while what its rank started lives, and goes with the last of it', async () => {
    const rig = rigOf(60);
    const rank = await rig.process(true);
    rig.engine(rank);
    rig.guard(shell);
    await rig.recorded('guards');
    process.kill(rank, 'SIGKILL');
    await wait(2500);
    expect(rig.guarding).toBe(true);
    process.kill(-rank, 'SIGKILL');
    await until(() => !rig.guarding);
    expect(rig.record?.state).toBe('guards');
  });

  it('leaves a pid alone that is somebody else’s by now', async () => {
    const rig = rigOf(1);
    const other = await rig.process(false);
    rig.engine(other, String(Number(startTicks(other)) + 1));
    rig.guard(shell);
    await until(() => !rig.guarding);
    expect(runs(other)).toBe(true);
  });

  it('tells a fall to the end from a cache that is taken at one stroke', async () => {
    const rig = rigOf(80);
    const rank = await rig.process(true);
    rig.engine(rank);
    rig.guard(shell);
    await rig.recorded('guards');
    await rig.falls([78, 76, 74, 8, 8, 8]);
    expect(rig.record?.state).toBe('guards');
    await rig.falls([60, 48, 36, 24, 16]);
    expect(rig.record?.state).toBe('guards');
    await rig.falls([8.5, 3.2]);
    expect(await rig.recorded('stopped')).toMatchObject({ why: 'falling' });
  }, 90_000);

  it('takes the driver’s NV_ERR_NO_MEMORY for an end while memory falls, and for nothing while it does not', async () => {
    const rig = rigOf(40);
    const line = `4,1,2,-;${readFileSync(new URL('../samples/errors/dmesg-gb10-oom.txt', import.meta.url), 'utf8').split('\n')[0]}\n`;
    rig.put('dev/kmsg', line.repeat(5));
    const rank = await rig.process(true);
    rig.engine(rank);
    rig.guard(shell);
    expect(await rig.recorded('guards')).toMatchObject({ kernelLog: 'read', driverErrors: 0 });
    await rig.falls([38, 36, 34, 34, 34]);
    expect(rig.record?.state).toBe('guards');
    appendFileSync(rig.file('dev/kmsg'), line);
    await rig.falls([30, 26, 21, 15]);
    expect(await rig.recorded('stopped')).toMatchObject({ why: 'driver', driverErrors: 1 });
  }, 90_000);

  it.each(['v2', 'v1'] as const)('sees the limit of the rank’s own cgroup, %s', async (version) => {
    const rig = rigOf(60);
    const rank = await rig.process(true);
    rm(rig, rank);
    mkdirSync(rig.file(`proc/${rank}`));
    symlinkSync(`/proc/${rank}/stat`, rig.file(`proc/${rank}/stat`));
    rig.put(
      `proc/${rank}/cgroup`,
      version === 'v2' ? '0::/a.slice/b.scope\n' : '4:memory:/a.slice/b.scope\n0::/\n',
    );
    const at = version === 'v2' ? 'sys/fs/cgroup/a.slice' : 'sys/fs/cgroup/memory/a.slice';
    const [limit, use, prefix] =
      version === 'v2'
        ? ['memory.max', 'memory.current', '']
        : ['memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_'];
    rig.put(`${at}/${limit}`, `${8 * 2 ** 30}\n`);
    rig.put(`${at}/b.scope/${limit}`, version === 'v2' ? 'max\n' : '9223372036854771712\n');
    rig.put(`${at}/${use}`, `${7.5 * 2 ** 30}\n`);
    rig.put(
      `${at}/memory.stat`,
      `anon 1\n${prefix}inactive_file ${2 ** 30}\n${prefix}active_file ${2 ** 30}\n`,
    );
    rig.engine(rank);
    rig.guard(shell);
    // The reserve is an eighth of the limit, since 3 GiB are more.
    expect(await rig.recorded('guards')).toMatchObject({
      memory: 'cgroup',
      reserveBytes: 2 ** 30,
      lowestBytes: 2.5 * 2 ** 30,
    });
    rig.put(`${at}/memory.stat`, `anon 1\n${prefix}inactive_file 0\n${prefix}active_file 0\n`);
    expect(await rig.recorded('stopped')).toMatchObject({
      why: 'reserve',
      memory: 'cgroup',
      lowestBytes: 2 ** 29,
    });
  });

  it('writes down at once that a child was killed for memory, while its rank goes on', async () => {
    const rig = rigOf(60);
    const rank = await rig.process(true);
    rm(rig, rank);
    mkdirSync(rig.file(`proc/${rank}`));
    symlinkSync(`/proc/${rank}/stat`, rig.file(`proc/${rank}/stat`));
    rig.put(`proc/${rank}/cgroup`, '0::/b.scope\n');
    rig.put('sys/fs/cgroup/b.scope/memory.events', 'low 0\noom 2\noom_kill 2\n');
    rig.engine(rank);
    rig.guard(shell);
    expect(await rig.recorded('guards')).toMatchObject({ oomKills: 0 });
    rig.put('sys/fs/cgroup/b.scope/memory.events', 'low 0\noom 3\noom_kill 3\n');
    await until(() => rig.record?.oomKills === 1);
    expect(runs(rank)).toBe(true);
  });

  it('stops a container by its id, and goes when it is removed', async () => {
    const rig = rigOf(60);
    const rank = await rig.process(false);
    rig.tool(
      'docker',
      `echo "$@" >>"${rig.root}/asked"
case $1 in inspect) [ "$2" != -f ] || echo "0123abcd ${rank}";; kill) [ "$2" = 0123abcd ] && kill -KILL -${rank};; esac`,
    );
    rig.guard(shell, { runtime: 'docker' });
    expect(await rig.recorded('guards')).toMatchObject({ by: 'docker' });
    rig.memory(2);
    expect(await rig.recorded('stopped')).toMatchObject({ by: 'docker', why: 'reserve' });
    const asked = readFileSync(join(rig.root, 'asked'), 'utf8');
    expect(asked.match(/^kill .*$/gm)).toEqual(['kill 0123abcd']);

    const again = rigOf(60);
    const second = await again.process(false);
    again.tool('docker', `[ "$1 $2" = "inspect -f" ] && echo "4567 ${second}"; true`);
    again.guard(shell, { runtime: 'docker' });
    await again.recorded('guards');
    process.kill(-second, 'SIGKILL');
    await until(() => !again.guarding);
    expect(again.record?.state).toBe('guards');
  });

  it('goes on to the next means where one does not stop it', async () => {
    const rig = rigOf(60);
    const rank = await rig.process(false);
    rig.tool('docker', `[ "$1 $2" = "inspect -f" ] && echo "0123 ${rank}"; true`);
    rig.guard(shell, { runtime: 'docker' });
    await rig.recorded('guards');
    rig.memory(2);
    expect(await rig.recorded('stopped')).toMatchObject({ by: 'signal' });
    expect(runs(rank)).toBe(false);
  }, 90_000);

  it('calls a run unguarded where nothing would stop it, and touches it never', async () => {
    const rig = rigOf(60);
    rig.tool(
      'docker',
      `[ "$1 $2" = "inspect -f" ] && { case $3 in *Running*) echo true;; *) echo "0123 0";; esac; exit 0; }; echo "$@" >>"${rig.root}/asked"; exit 1`,
    );
    rig.tool('sudo', 'echo "sudo: a password is required" >&2; exit 1');
    rig.guard(shell, { runtime: 'docker' });
    expect(await rig.recorded('unguarded')).toMatchObject({ by: 'none' });
    rig.memory(1);
    await until(() => rig.record?.lowestBytes === 2 ** 30);
    expect(rig.record?.state).toBe('unguarded');
    expect(readFileSync(join(rig.root, 'asked'), 'utf8')).not.toMatch(/^kill/m);
  });

  it('keeps less on a small host, unless it was told how much', async () => {
    const small = rigOf(4);
    small.memory(4, 8);
    small.engine(await small.process(true));
    small.guard(shell);
    expect(await small.recorded('guards')).toMatchObject({ reserveBytes: 2 ** 30 });
    const told = rigOf(4);
    told.memory(4, 8);
    told.engine(await told.process(true));
    told.guard(shell, { reserveGib: 3, set: true });
    expect(await told.recorded('guards')).toMatchObject({ reserveBytes: 3 * 2 ** 30 });
  });
});

function rm(rig: GuardRig, pid: number): void {
  rmSync(rig.file(`proc/${pid}`));
}
