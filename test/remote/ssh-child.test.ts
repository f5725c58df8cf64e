import { expect, test } from 'vitest';
import { runLocal } from '../../src/remote/ssh-child.ts';

test('a machine without an OpenSSH client is told what to install', async () => {
  const signal = new AbortController().signal;
  await expect(runLocal(['ssh-that-is-not-there', '-V'], { signal, timeoutMs: 1000 })).rejects.toMatchObject({
    code: 'ssh-missing',
    message: expect.stringContaining('ssh-that-is-not-there cannot be run on this machine'),
    hint: expect.stringContaining('openssh-client'),
  });
});
