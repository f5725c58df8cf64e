import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ownRecordsProbe, parseOwnRecords } from '../../src/knowledge/probes/own-records.ts';
import { outputOf } from './output-of.ts';

const shells = [['sh'], ...(existsSync('/usr/bin/busybox') ? [['/usr/bin/busybox', 'sh']] : [])] as const;
const TICKS = '987654';
const folder = mkdtempSync(join(tmpdir(), 'fl-zombie-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the probe tells of one rank whose runner and guard are this process here, in that state by the host's /proc. */
function rankOf(shell: readonly string[], state: string, runner: string) {
  const root = mkdtempSync(join(folder, 'host-'));
  const rank = join(root, 'home/.firstlight/m1/ranks/qwen-r0');
  const proc = join(root, `proc/${process.pid}`);
  for (const path of [rank, proc, join(root, 'etc'), join(root, 'tmp')]) mkdirSync(path, { recursive: true });
  writeFileSync(join(root, 'etc/machine-id'), 'm1\n');
  // proc_pid_stat(5): the state is field 3, the start time field 22; the name may hold blanks and a bracket.
  const fields = [state, ...Array<string>(18).fill('0'), TICKS, '0', '0'];
  writeFileSync(join(proc, 'stat'), `${process.pid} (sh (run) Z) ${fields.join(' ')}\n`);
  writeFileSync(
    join(rank, 'service.json'),
    JSON.stringify({ name: 'qwen-r0', recipe: 'qwen', engine: 'vllm', rank: 0, in: 'process' }),
  );
  writeFileSync(join(rank, 'runner'), `${runner}\n`);
  writeFileSync(join(rank, 'guard'), `${process.pid} ${TICKS}\n`);
  writeFileSync(
    join(rank, 'guard.json'),
    '{"state":"guards","by":"signal","reserveKib":1,"lowestKib":2,"curve":[]}\n',
  );
  const [program = 'sh', ...args] = shell;
  const ran = spawnSync(program, [...args, '-s'], {
    input: `R="$FIRSTLIGHT_ROOT"\n(\n${ownRecordsProbe.script}\n) </dev/null\n`,
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C', FIRSTLIGHT_ROOT: root, HOME: join(root, 'home') },
  });
  const records = parseOwnRecords(outputOf(ran.stdout, { stderr: ran.stderr }));
  if (!records.known) throw new Error(records.why);
  const [found] = records.value.ranks;
  return {
    state: found?.state,
    exit: found?.exitCode,
    guard: found?.guard?.alive,
    runners: [...records.value.runners],
  };
}

describe.each(shells)('a rank’s runner, looked at by %s', (...shell) => {
  const alive = {
    state: 'running',
    exit: { known: false, why: 'it has not ended' },
    guard: true,
    runners: [[process.pid, 'qwen-r0']],
  };
  const gone = {
    state: 'ended',
    exit: { known: false, why: 'its runner is gone and left no exit code' },
    guard: false,
    runners: [],
  };

  it.each(['S', 'R', 'D', 'T'])('is alive in state %s', (state) => {
    expect(rankOf(shell, state, `${process.pid} ${TICKS}`)).toEqual(alive);
    // Where no start time was written down, the pid has to do.
    expect(rankOf(shell, state, String(process.pid))).toEqual(alive);
  });

  it.each(['Z', 'X'])('is gone in state %s, although its pid and its start time are still there', (state) => {
    expect(rankOf(shell, state, `${process.pid} ${TICKS}`)).toEqual(gone);
    expect(rankOf(shell, state, String(process.pid))).toEqual(gone);
  });

  it('is gone where its pid is somebody else’s by now', () => {
    expect(rankOf(shell, 'S', `${process.pid} 1`)).toEqual({ ...gone, guard: true });
  });
});
