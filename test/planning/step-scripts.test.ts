import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import {
  AWAIT_MEMORY_SH,
  SAME_PROCESS_SH,
  START_PROCESS_SH,
  START_UNIT_SH,
  STOP_PROCESS_SH,
  STOP_UNIT_SH,
} from '../../src/planning/step-scripts.ts';

const home = mkdtempSync(join(tmpdir(), 'fl-steps-'));
const started: number[] = [];
afterAll(() => {
  for (const pid of started)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  rmSync(home, { recursive: true, force: true });
});

const shells = [['sh'], ...(existsSync('/usr/bin/busybox') ? [['/usr/bin/busybox', 'sh']] : [])] as const;

type Ran = { readonly code: number; readonly out: string };
function run(
  shell: readonly string[],
  text: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Ran {
  const [program = 'sh', ...rest] = shell;
  const ran = spawnSync(program, [...rest, '-s', '--', ...args], {
    input: text,
    encoding: 'utf8',
    env: { ...process.env, HOME: home, ...env },
    timeout: 40_000,
  });
  return { code: ran.status ?? -1, out: `${ran.stdout}${ran.stderr}` };
}

function ticksOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** Processes with exactly this command line. */
function withArgv(argv: Buffer): readonly number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return Number.isInteger(pid) && readFileSync(`/proc/${pid}/cmdline`).equals(argv);
      } catch {
        return false;
      }
    });
}

const ODD = ["it's", 'two words', 'new\nline', '$HOME `x` "q" \\', '-x', ''];

function startOdd(): number {
  const child = spawn(
    process.execPath,
    ['-e', 'setInterval(() => {}, 1000)', '--', home, ...ODD, String(started.length)],
    {
      cwd: home,
      env: { PATH: process.env['PATH'], ODD: "a'b\nc $d", EMPTY: '' },
      stdio: 'ignore',
      detached: true,
    },
  );
  if (child.pid === undefined) throw new Error('it did not start');
  started.push(child.pid);
  return child.pid;
}

describe.each(shells.map((shell) => [shell.join(' '), shell] as const))('with %s', (_, shell) => {
  test('a bare process is stopped and started again with its argv, folder and environment', () => {
    const pid = startOdd();
    const argv = readFileSync(`/proc/${pid}/cmdline`);
    const ticks = ticksOf(pid);
    expect(run(shell, SAME_PROCESS_SH, [String(pid), ticks]).code).toBe(0);
    expect(run(shell, SAME_PROCESS_SH, [String(pid), '1']).code).toBe(1);

    const stopped = run(shell, STOP_PROCESS_SH, [
      String(pid),
      ticks,
      'ab12',
      home,
      'record',
      userInfo().username,
    ]);
    expect(stopped).toEqual({ code: 0, out: 'it ended on SIGTERM\n' });
    expect(withArgv(argv)).toEqual([]);
    expect(run(shell, SAME_PROCESS_SH, [String(pid), ticks]).code).toBe(1);
    const [machine = ''] = readdirSync(join(home, '.firstlight'));
    const folder = join(home, '.firstlight', machine, 'undo', 'ab12');
    expect(statSync(join(folder, 'start.sh')).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);

    expect(run(shell, START_PROCESS_SH, ['ab12', home])).toEqual({ code: 0, out: 'it runs again\n' });
    const [again = 0, ...more] = withArgv(argv);
    started.push(again);
    expect(more).toEqual([]);
    expect(readFileSync(`/proc/${again}/environ`, 'utf8').split('\0').sort()).toEqual(
      ['', `PATH=${process.env['PATH']}`, "ODD=a'b\nc $d", 'EMPTY='].sort(),
    );
    expect(run(shell, START_PROCESS_SH, ['ab12', home])).toEqual({ code: 0, out: 'it runs already\n' });
    process.kill(again, 'SIGKILL');
    rmSync(join(home, '.firstlight'), { recursive: true });
  });

  test('processes of one command line are each given back, and none stands for another', () => {
    const argv = [process.execPath, '-e', 'setInterval(() => {}, 1000)', '--', `${home}/twin`];
    const spawned = [1, 2, 3].map(() => {
      const child = spawn(argv[0] ?? '', argv.slice(1), { cwd: home, stdio: 'ignore', detached: true });
      started.push(child.pid ?? 0);
      return child.pid ?? 0;
    });
    const whole = Buffer.from(`${argv.join('\0')}\0`);
    const stop = (pid: number, id: string): string =>
      run(shell, STOP_PROCESS_SH, [String(pid), ticksOf(pid), id, home, 'record', userInfo().username]).out;
    const [first = 0, second = 0, bystander = 0] = spawned;
    expect(stop(first, 'aa01')).toBe('it ended on SIGTERM\n');
    expect(stop(second, 'aa02')).toBe('it ended on SIGTERM\n');
    expect(withArgv(whole)).toEqual([bystander]);

    expect(run(shell, START_PROCESS_SH, ['aa02', home]).out).toBe('it runs again\n');
    expect(run(shell, START_PROCESS_SH, ['aa01', home]).out).toBe('it runs again\n');
    started.push(...withArgv(whole));
    expect(withArgv(whole)).toHaveLength(3);
    expect(run(shell, START_PROCESS_SH, ['aa01', home]).out).toBe('it runs already\n');
    expect(run(shell, START_PROCESS_SH, ['aa02', home]).out).toBe('it runs already\n');
    expect(withArgv(whole)).toHaveLength(3);
    for (const pid of withArgv(whole)) process.kill(pid, 'SIGKILL');
    rmSync(join(home, '.firstlight'), { recursive: true });
  });

  test('a service with the same command line does not stand for a process that somebody started', () => {
    const root = mkdtempSync(join(home, 'root-'));
    const put = (pid: number, cgroup: string): void => {
      mkdirSync(join(root, 'proc', String(pid)), { recursive: true });
      writeFileSync(join(root, 'proc', String(pid), 'cmdline'), 'true\0');
      writeFileSync(join(root, 'proc', String(pid), 'cgroup'), `0::${cgroup}\n`);
      const fields = ['S', ...Array.from({ length: 18 }, () => '1'), '77', '1'];
      writeFileSync(join(root, 'proc', String(pid), 'stat'), `${pid} (true) ${fields.join(' ')}\n`);
    };
    mkdirSync(join(root, 'etc'));
    writeFileSync(join(root, 'etc/machine-id'), 'abc\n');
    const folder = join(home, '.firstlight/abc/undo/ab16');
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries({
      argv: 'true\0',
      cwd: '/nowhere\n',
      user: `${userInfo().username}\n`,
      place: '',
      'start.sh': 'exec true\n',
    }))
      writeFileSync(join(folder, name), text);
    const env = { FIRSTLIGHT_ROOT: root };
    put(4_194_000, '/user.slice/user-1001.slice/user@1001.service/app.slice/comfy.service');
    put(4_194_001, `/system.slice/docker-${'0a'.repeat(32)}.scope`);
    expect(run(shell, START_PROCESS_SH, ['ab16', home], env).out).not.toContain('already');
    put(4_194_002, '/user.slice/user-1001.slice/session-4.scope');
    expect(run(shell, START_PROCESS_SH, ['ab16', home], env).out).toBe('it runs already\n');
    rmSync(join(home, '.firstlight'), { recursive: true });
  });

  test('a process that is another one by now is left alone', () => {
    const pid = startOdd();
    const ran = run(shell, STOP_PROCESS_SH, [String(pid), '1', 'ab12', home, 'record', userInfo().username]);
    expect(ran).toEqual({ code: 0, out: 'it had ended by itself\n' });
    expect(() => process.kill(pid, 0)).not.toThrow();
    process.kill(pid, 'SIGKILL');
  });

  test('waiting for memory says how much is missing', () => {
    const root = mkdtempSync(join(home, 'root-'));
    spawnSync('mkdir', ['-p', join(root, 'proc')]);
    writeFileSync(join(root, 'proc/meminfo'), 'MemTotal: 125000000 kB\nMemAvailable: 52428800 kB\n');
    const env = { FIRSTLIGHT_ROOT: root };
    expect(run(shell, AWAIT_MEMORY_SH, ['104857600'], env)).toEqual({
      code: 1,
      out: '50.0 GiB available, 50.0 GiB short of 100.0 GiB\n',
    });
    expect(run(shell, AWAIT_MEMORY_SH, ['41943040'], env).code).toBe(0);
  });

  test('a unit that is active is not started again', () => {
    const { env, calls } = fakeSystemctl('[ "$1" = is-active ] && exit 0');
    expect(run(shell, START_UNIT_SH, ['ollama.service', '', 'ab12', home], env).code).toBe(0);
    expect(calls()).toEqual(['is-active --quiet ollama.service']);
  });

  test('a socket that would start the unit again stops and starts with it', () => {
    const { env, calls } = fakeSystemctl(`case "$*" in
      *TriggeredBy*) echo 'rerank.socket rerank.timer' ;;
      'is-active --quiet rerank.socket') exit 0 ;;
      is-active*) exit 3 ;;
    esac`);
    const stopped = run(shell, STOP_UNIT_SH, ['rerank.service', '', 'ab13', home], env);
    expect(stopped).toEqual({ code: 0, out: 'stopped with it, as they start it: rerank.socket\n' });
    expect(calls().at(-1)).toBe('stop rerank.socket rerank.service');

    const none = fakeSystemctl('case "$1" in is-active) exit 3 ;; esac');
    expect(run(shell, START_UNIT_SH, ['rerank.service', '', 'ab13', home], none.env)).toEqual({
      code: 1,
      out: 'it ended again right after its start\n',
    });
    expect(none.calls().filter((call) => call.startsWith('start'))).toEqual([
      'start rerank.socket',
      'start rerank.service',
    ]);
  });

  test('a unit of systemd-run, which is forgotten once it stops, is brought back from its file', () => {
    const root = mkdtempSync(join(home, 'root-'));
    mkdirSync(join(root, 'run/systemd/transient'), { recursive: true });
    const file = join(root, 'run/systemd/transient/job.service');
    writeFileSync(file, '[Service]\nExecStart=/bin/job "two words"\n');
    const { env, calls } = fakeSystemctl(`case "$*" in
      *FragmentPath*) echo ${file} ;;
      *LoadState*) echo not-found ;;
      start*) touch ${root}/started ;;
      is-active*) [ -e ${root}/started ] || exit 3 ;;
    esac`);
    const rooted = { ...env, FIRSTLIGHT_ROOT: root };
    expect(run(shell, STOP_UNIT_SH, ['job.service', '', 'ab14', home], rooted).code).toBe(0);
    rmSync(file);
    expect(run(shell, START_UNIT_SH, ['job.service', '', 'ab14', home], rooted)).toEqual({
      code: 0,
      out: '',
    });
    expect(readFileSync(join(root, 'run/systemd/system/job.service'), 'utf8')).toContain('"two words"');
    expect(calls().slice(-3, -1)).toEqual(['daemon-reload', 'start job.service']);

    const unread = run(shell, STOP_UNIT_SH, ['job.service', '', 'ab15', home], rooted);
    expect(unread.code).toBe(1);
    expect(unread.out).toContain('left alone');
    expect(calls().at(-1)).not.toContain('stop');
  });
});

/** A systemctl on PATH that runs this shell text and keeps what it was called with. */
function fakeSystemctl(text: string): { readonly env: NodeJS.ProcessEnv; calls(): readonly string[] } {
  const bin = mkdtempSync(join(home, 'bin-'));
  writeFileSync(join(bin, 'systemctl'), `#!/bin/sh\necho "$@" >>"${bin}/calls"\n${text}\nexit 0\n`, {
    mode: 0o755,
  });
  return {
    env: { PATH: `${bin}:${process.env['PATH']}` },
    calls: () => readFileSync(join(bin, 'calls'), 'utf8').trim().split('\n'),
  };
}
