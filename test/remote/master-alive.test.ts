import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { masterAlive } from '../../src/remote/master-alive.ts';

const folder = mkdtempSync(join(tmpdir(), 'flm-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a master of OpenSSH 9.2 sends on connecting, and to `ssh -O check`: recorded from one. */
const HELLO = Buffer.from('000000080000000100000004', 'hex');
const ALIVE = Buffer.from('0000000c800000050000000000006b1e', 'hex');

async function answering(name: string, said: readonly Buffer[]): Promise<string> {
  const socket = join(folder, name);
  const server = createServer((link) => {
    link.on('error', () => undefined);
    for (const part of said) link.write(part);
    if (said.length === 0) link.end();
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  server.unref();
  return socket;
}

it('no socket, and a file that is none, are no master', async () => {
  expect(await masterAlive(join(folder, 'none'))).toBe('gone');
  writeFileSync(join(folder, 'file'), '');
  expect(await masterAlive(join(folder, 'file'))).toBe('gone');
});

it('a master that answers is one, however its words are cut', async () => {
  expect(await masterAlive(await answering('whole', [HELLO, ALIVE]))).toBe('alive');
  const bytes = Buffer.concat([HELLO, ALIVE]);
  const cut = [...bytes].map((byte) => Buffer.from([byte]));
  expect(await masterAlive(await answering('cut', cut))).toBe('alive');
});

it('whoever hangs up or says something else is unclear', async () => {
  expect(await masterAlive(await answering('hangs-up', []))).toBe('unclear');
  expect(await masterAlive(await answering('other', [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')]))).toBe(
    'unclear',
  );
  expect(
    await masterAlive(await answering('refuses', [HELLO, Buffer.from('0000000880000003deadbeef', 'hex')])),
  ).toBe('unclear');
});
