import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
    const bin = mkdtempSync(join(home, 'bin-'));
    writeFileSync(
      join(bin, 'systemctl'),
      `#!/bin/sh\necho "$@" >>"${bin}/calls"\n[ "$1" = is-active ] && exit 0\nexit 0\n`,
      { mode: 0o755 },
    );
    const env = { PATH: `${bin}:${process.env['PATH']}` };
    expect(run(shell, START_UNIT_SH, ['ollama.service', ''], env).code).toBe(0);
    expect(run(shell, STOP_UNIT_SH, ['ollama.service', ''], env).code).toBe(0);
    expect(readFileSync(join(bin, 'calls'), 'utf8')).toBe(
      'is-active --quiet ollama.service\nstop ollama.service\n',
    );
  });
});
