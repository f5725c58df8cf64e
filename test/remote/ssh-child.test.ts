import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runLocal } from '../../src/remote/ssh-child.ts';
import { until } from '../pretend/far-side.ts';

test('a machine without an OpenSSH client is told what to install', async () => {
  const signal = new AbortController().signal;
  await expect(runLocal(['ssh-that-is-not-there', '-V'], { signal, timeoutMs: 1000 })).rejects.toMatchObject({
    code: 'ssh-missing',
    message: expect.stringContaining('ssh-that-is-not-there cannot be run on this machine'),
    hint: expect.stringContaining('openssh-client'),
  });
});

test('who is ended is over, though another process holds its pipes, as a master does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fl-child-'));
  const file = join(folder, 'pid');
  const over = new AbortController();
  const holds = 'sleep 1000 & echo $! >"$0.new"; mv "$0.new" "$0"; wait';
  const running = runLocal(['sh', '-c', holds, file], { signal: over.signal, timeoutMs: 900_000 });
  running.catch(() => undefined); // looked at below
  await until(() => existsSync(file));
  try {
    over.abort(new Error('over'));
    await expect(running).rejects.toThrow('over');
  } finally {
    process.kill(Number(readFileSync(file, 'utf8')));
    rmSync(folder, { recursive: true });
  }
});
