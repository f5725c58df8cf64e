import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { logsAfterwards } from '../../src/diagnosis/afterwards.ts';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import {
  endedContainersProbe,
  kernelLogProbe,
  parseAfterwards,
} from '../../src/knowledge/probes/afterwards.ts';
import { evidenceOf } from '../diagnosis/cases.ts';
import { sparkFacts } from '../diagnosis/facts.ts';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'fl-after-'));
  mkdirSync(join(root, 'proc'));
  mkdirSync(join(root, 'bin'));
  writeFileSync(join(root, 'proc/uptime'), '5000.31 9000.00\n');
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A tool of the host that prints this, or says no. */
function tool(name: string, text: string, code = 0): void {
  const path = join(root, 'bin', name);
  writeFileSync(path, `#!/bin/sh\ncat <<'END'\n${text}END\nexit ${code}\n`);
  chmodSync(path, 0o755);
}

function run(script: string): {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
} {
  const env = {
    PATH: `${root}/bin:/usr/bin:/bin`,
    R: root,
    FL_RUNTIME: 'docker',
    FL_SINCE_SECONDS: '600',
    LC_ALL: 'C',
  };
  try {
    return {
      code: 0,
      stdout: execFileSync('sh', ['-c', script], { env, encoding: 'utf8', stdio: 'pipe' }),
      stderr: '',
      timedOut: false,
    };
  } catch (error) {
    const { status, stderr } = error instanceof Error && 'status' in error && 'stderr' in error ? error : {};
    return { code: Number(status), stdout: '', stderr: String(stderr), timedOut: false };
  }
}

const KILLED =
  'Out of memory: Killed process 4711 (sglang::schedul) total-vm:180000000kB, anon-rss:110000000kB';

describe('the look after a failure', () => {
  it('reads what the kernel said since the launch, and no older line', () => {
    tool(
      'dmesg',
      `[   12.000001] ${KILLED}\n[ 4700.100000] docker0: port 1 entered forwarding state\n[ 4900.123456] ${KILLED}\n  that goes on\n`,
    );
    const afterwards = parseAfterwards(new Map([['kernel-log', run(kernelLogProbe.script)]]), true);
    expect(afterwards?.kernelLog).toEqual({
      known: true,
      value: [
        '[ 4700.100000] docker0: port 1 entered forwarding state',
        `[ 4900.123456] ${KILLED}`,
        'that goes on',
      ],
    });
  });

  it('takes what root sees where root may be had, and says so where nobody may', () => {
    for (const name of ['dmesg', 'sudo', 'journalctl']) tool(name, '', 1);
    const none = parseAfterwards(new Map([['kernel-log', run(kernelLogProbe.script)]]), true);
    expect(none?.kernelLog).toEqual({
      known: false,
      why: 'the kernel log: the kernel log is for root alone',
    });
    tool('sudo', `[ 4900.123456] ${KILLED}\n`);
    const root = parseAfterwards(new Map([['kernel-log', run(kernelLogProbe.script)]]), true);
    expect(root?.kernelLog).toMatchObject({ known: true, value: [`[ 4900.123456] ${KILLED}`] });
  });

  it('reads how containers of ours ended', () => {
    tool(
      'docker',
      '/firstlight-m-r1 exited 137 true \n/firstlight-m-r0 exited 1 false OCI runtime create failed\n',
    );
    const afterwards = parseAfterwards(
      new Map([['ended-containers', run(endedContainersProbe.script)]]),
      true,
    );
    expect(afterwards?.containers).toEqual({
      known: true,
      value: [
        { name: 'firstlight-m-r1', state: 'exited', exitCode: 137, oomKilled: true, error: '' },
        {
          name: 'firstlight-m-r0',
          state: 'exited',
          exitCode: 1,
          oomKilled: false,
          error: 'OCI runtime create failed',
        },
      ],
    });
  });

  it('names who ended a rank that said nothing', () => {
    const after = sparkFacts({
      node: 'spark-b',
      more: {
        afterwards: {
          kernelLog: { known: true, value: [`[ 4900.123456] ${KILLED}`] },
          containers: { known: true, value: [] },
        },
      },
    });
    const logs = {
      head: ['[2026-11-29 10:00:18 TP0] Load weight begin. avail mem=107.40 GB'],
      worker: ['[2026-11-29 10:00:18 TP1] Load weight begin. avail mem=107.40 GB'],
    };
    const evidence = { ...evidenceOf({ engine: 'sglang', logs, ended: { worker: 137 } }), after: [after] };
    const finding = diagnose({ ...evidence, side: logsAfterwards([after]) }, { final: true });
    expect(finding).toMatchObject({
      cause: 'oom-killer-during-weight-load',
      node: 'spark-b',
      stage: 'weights',
    });
    expect(finding.quotes[0]).toMatchObject({ log: 'spark-b kernel', text: `[ 4900.123456] ${KILLED}` });
  });
});
