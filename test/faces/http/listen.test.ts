import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openRig } from './rig.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-listen-'));
const cert = join(folder, 'cert.pem');
const key = join(folder, 'key.pem');
const openssl = spawnSync(
  'openssl',
  [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=127.0.0.1',
    '-keyout',
    key,
    '-out',
    cert,
  ],
  { stdio: 'ignore' },
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('says who has the port, and which address it cannot have', async () => {
  const taken = createServer();
  await new Promise<void>((settle) => taken.listen(0, '127.0.0.1', settle));
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(openRig({ port })).rejects.toThrow(`port ${port} on 127.0.0.1 is in use`);
  taken.close();
  await expect(openRig({ listen: '192.0.2.1' })).rejects.toThrow('cannot listen on 192.0.2.1');
});

it('takes certificate and key together, each readable', async () => {
  await expect(openRig({ tlsCert: cert })).rejects.toThrow('go together');
  await expect(openRig({ tlsCert: '/nowhere', tlsKey: '/nowhere' })).rejects.toThrow(
    'cannot be read (ENOENT)',
  );
  const text = join(folder, 'text.pem');
  writeFileSync(text, 'no certificate\n');
  await expect(openRig({ tlsCert: text, tlsKey: text })).rejects.toThrow('is no certificate with its key');
});

it.runIf(openssl.status === 0)(
  'speaks https with the certificate that it was given, its cookie for https alone',
  async () => {
    const rig = await openRig({ tlsCert: cert, tlsKey: key });
    try {
      expect(rig.addresses.base).toBe(`https://127.0.0.1:${rig.port}`);
      const headers = await new Promise<Readonly<Record<string, unknown>>>((settle, fail) => {
        const options = { ca: readFileSync(cert), checkServerIdentity: () => undefined, agent: false };
        https
          .get(`${rig.addresses.base}/?token=${rig.addresses.write}`, options, (response) => {
            response.resume();
            settle({ status: response.statusCode, ...response.headers });
          })
          .on('error', fail);
      });
      expect(headers['status']).toBe(303);
      expect(String(headers['set-cookie'])).toContain('; Secure');
      await expect(rig.get('/api/cluster')).rejects.toThrow();
    } finally {
      await rig.close();
    }
  },
);
