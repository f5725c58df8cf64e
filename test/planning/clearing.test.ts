import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { END_ALL_SH, EVICT_FILES_SH } from '../../src/planning/step-scripts.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-clearing-'));
const started: number[] = [];
afterAll(() => {
  for (const pid of started)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  rmSync(folder, { recursive: true, force: true });
});

const shells = [['sh'], ...(existsSync('/usr/bin/busybox') ? [['/usr/bin/busybox', 'sh']] : [])] as const;

function run(shell: readonly string[], text: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const [program = 'sh', ...rest] = shell;
  const ran = spawnSync(program, [...rest, '-s', '--', ...args], {
    input: text,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    timeout: 40_000,
  });
  return { code: ran.status, out: ran.stdout.trim(), err: ran.stderr.trim() };
}

/** Bytes of a file that are in the page cache, as the kernel says. */
function resident(file: string): number {
  return Number(spawnSync('fincore', ['-nbo', 'RES', file], { encoding: 'utf8' }).stdout.trim());
}

/** Where the kernel's own word can be had, and files lie on a disk: what lies in memory alone cannot leave it. */
const proves =
  spawnSync('fincore', ['--version']).status === 0 &&
  spawnSync('dd', ['if=/dev/null', 'of=/dev/null', 'iflag=nocache', 'count=0']).status === 0 &&
  spawnSync('stat', ['-f', '-c', '%T', tmpdir()], { encoding: 'utf8' }).stdout.trim() !== 'tmpfs';

describe('a model’s own files, taken out of the page cache without root', () => {
  const model = join(folder, 'model');
  mkdirSync(join(model, 'blobs'), { recursive: true });
  const blob = join(model, 'blobs', 'one');
  writeFileSync(blob, Buffer.alloc(24 * 2 ** 20, 7));
  // As the hub keeps them: names that are links.
  symlinkSync('blobs/one', join(model, 'model 1.safetensors'));

  it.skipIf(!proves)('are really gone from it', () => {
    readFileSync(blob);
    expect(resident(blob)).toBe(24 * 2 ** 20);
    const ran = run(['sh'], EVICT_FILES_SH, [model], { FIRSTLIGHT_ROOT: '' });
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(ran.out).toMatch(/^\d+\.\d GiB left the page cache$/);
    expect(resident(blob)).toBe(0);
    expect(readFileSync(blob).every((byte) => byte === 7)).toBe(true);
  });

  it.skipIf(!proves)('stay where they may not be read, which is said', () => {
    if (process.getuid?.() !== 0) return;
    const closed = join(model, 'closed.safetensors');
    writeFileSync(closed, Buffer.alloc(3 * 2 ** 20, 1), { mode: 0o600 });
    // As somebody without the right to it; the folder itself is open.
    spawnSync('chmod', ['755', folder, model, join(model, 'blobs')]);
    const ran = run(
      ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'sh'],
      EVICT_FILES_SH,
      [model],
      {
        FIRSTLIGHT_ROOT: '',
      },
    );
    rmSync(closed);
    expect(ran.out).toMatch(/GiB left the page cache; 1 file could not be opened$/);
  });

  it('are left where the dd at hand cannot do it, which is said too', () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'dd'), '#!/bin/sh\necho "dd: invalid input flag" >&2\nexit 1\n', { mode: 0o755 });
    const ran = run(['sh'], EVICT_FILES_SH, [model], {
      FIRSTLIGHT_ROOT: '',
      PATH: `${bin}:${process.env['PATH']}`,
    });
    expect(ran.code).toBe(3);
    expect(ran.err).toBe('the dd here cannot take files out of the page cache');
  });

  it('are not looked for in a folder that is not there', () => {
    expect(run(['sh'], EVICT_FILES_SH, [join(folder, 'nowhere')]).code).toBe(1);
  });
});

describe('what an earlier rank of ours left', () => {
  const ticksOf = (pid: number): string => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  };
  const start = (text: string): number => {
    const { pid } = spawn('sh', ['-c', text], { detached: true, stdio: 'ignore' });
    if (pid === undefined) throw new Error('it did not start');
    started.push(pid);
    return pid;
  };
  const there = (pid: number): boolean => {
    try {
      return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return false;
    }
  };

  for (const shell of shells) {
    it(`is ended, all of it, and nobody who has its pid by now (${shell.join(' ')})`, () => {
      const [one, two, other] = [start('sleep 300'), start('exec sleep 300'), start('sleep 301')];
      const ran = run(shell, END_ALL_SH, [
        ...[String(one), ticksOf(one), String(two), ticksOf(two)],
        // A pid that somebody else has by now.
        ...[String(other), '1'],
      ]);
      expect(ran).toMatchObject({ code: 0, err: '' });
      expect([there(one), there(two), there(other)]).toEqual([false, false, true]);
      expect(run(shell, END_ALL_SH, [String(one), '1']).out).toBe('it had ended by itself');
    });
  }

  it('is made to end where it does not listen', () => {
    const deaf = start("trap '' TERM; while :; do sleep 1; done");
    spawnSync('sleep', ['0.3']);
    expect(run(['sh'], END_ALL_SH, [String(deaf), ticksOf(deaf)]).code).toBe(0);
    expect(there(deaf)).toBe(false);
  });
});
