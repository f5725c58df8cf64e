import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Lab, startDaemon } from '../../src/lab/daemon.ts';
import type { LabHost } from '../../src/lab/lab-host.ts';
import type { Story } from '../../src/lab/story.ts';

export type Said = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type OpenLab = Lab & {
  /** Runs a shell line on a host, through OpenSSH's own client, the jump too. */
  on(host: string, line: string, input?: string): Promise<Said>;
  head: LabHost;
  worker: LabHost;
};

export async function openLab(story: Story | string, seed = 1): Promise<OpenLab> {
  const folder = mkdtempSync(join(tmpdir(), 'fl-world-'));
  const lab = await startDaemon(folder, story, seed);
  const [head, worker] = lab.world.hosts;
  if (head === undefined || worker === undefined) throw new Error('a story has two hosts');
  const config = join(lab.folder, 'ssh_config');
  const jump = `ssh -F ${config} -o BatchMode=yes -W [%h]:%p ${head.name}`;
  return {
    ...lab,
    head,
    worker,
    on(host, line, input = '') {
      const through = host === head.name ? [] : ['-o', `ProxyCommand=${jump}`];
      return run('ssh', ['-F', config, '-o', 'BatchMode=yes', ...through, host, line], input);
    },
    async close() {
      await lab.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function run(command: string, argv: readonly string[], input: string): Promise<Said> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...argv], { stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** Looks until it is so; fails after the seconds with what it was last. */
export async function until<T>(
  look: () => T | Promise<T>,
  good: (value: T) => boolean,
  seconds = 20,
): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await look();
    if (good(value)) return value;
    if (Date.now() > end) throw new Error(`it did not come about: ${JSON.stringify(value)}`);
    await wait(25);
  }
}
