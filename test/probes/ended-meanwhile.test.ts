import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readProcesses } from '../../src/knowledge/probes/process-reading.ts';
import { processesProbe } from '../../src/knowledge/probes/processes.ts';
import { outputOf } from './output-of.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-ended-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One large process of a host, whose awk ends so many times as mawk 1.3.4 does when what it reads has ended. */
function readWith(times: number) {
  const root = mkdtempSync(join(folder, 'host-'));
  const bin = join(root, 'bin');
  const proc = join(root, 'proc/4711');
  for (const path of [bin, proc, join(root, 'etc'), join(root, 'home')]) mkdirSync(path, { recursive: true });
  writeFileSync(join(root, 'proc/uptime'), '1000.00 1.00\n');
  writeFileSync(
    join(proc, 'stat'),
    `4711 (python) S 1 4711 4711 ${Array<string>(15).fill('0').join(' ')} 77 0\n`,
  );
  writeFileSync(
    join(proc, 'status'),
    'Name:\tpython\nUid:\t0\t0\t0\t0\nVmRSS:\t900000 kB\nRssAnon:\t800000 kB\nRssShmem:\t0 kB\n',
  );
  writeFileSync(join(proc, 'cmdline'), 'python\0train.py\0');
  writeFileSync(join(proc, 'cgroup'), '0::/user.slice/user-0.slice/session-1.scope\n');
  writeFileSync(join(proc, 'environ'), 'HOME=/root\0');
  const path = process.env['PATH'] ?? '';
  const calls = join(root, 'calls');
  writeFileSync(calls, '');
  writeFileSync(
    join(bin, 'awk'),
    `#!/bin/sh
case "$*" in */stat\\"*|*/environ\\"*)
  echo call >>${calls}
  if [ "$(grep -c . ${calls})" -le ${times} ]; then cat >/dev/null; echo "awk: read error (No such process)" >&2; exit 2; fi ;;
esac
PATH=${path}; exec awk "$@"
`,
  );
  chmodSync(join(bin, 'awk'), 0o755);
  const ran = spawnSync('sh', ['-s'], {
    input: `R="$FIRSTLIGHT_ROOT"\n(\n${processesProbe.script}\n) </dev/null\n`,
    encoding: 'utf8',
    env: {
      ...process.env,
      LC_ALL: 'C',
      FIRSTLIGHT_ROOT: root,
      HOME: join(root, 'home'),
      PATH: `${bin}:${path}`,
    },
  });
  expect(readFileSync(calls, 'utf8')).not.toBe('');
  return readProcesses(outputOf(ran.stdout, { stderr: ran.stderr }));
}

describe('processes that end while all are read', () => {
  it.each([0, 1, 2, 5])('%i times in a row cost no other its place', (times) => {
    const reading = readWith(times);
    if (!reading.known) throw new Error(reading.why);
    expect(reading.value.rows.get(4711)).toMatchObject({ name: 'python', residentBytes: 800_000 * 1024 });
    expect(reading.value.details.get(4711)).toMatchObject({ args: ['python', 'train.py'] });
  });

  it('without an end leave all unknown, and nobody waits for ever', () => {
    expect(readWith(1e6).known).toBe(false);
  });
});
