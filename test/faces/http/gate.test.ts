import { connect } from 'node:net';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { problemSchema } from '../../../src/faces/http/problem.ts';
import { askedRun, openRig, type Rig } from './rig.ts';

let rig: Rig;
let cookie = '';
beforeAll(async () => {
  rig = await openRig();
  const first = await rig.get(`/?token=${rig.addresses.write}`, {});
  cookie = String(first.headers['set-cookie']?.[0]).split(';')[0] ?? '';
});
afterAll(() => rig.close());

const bearer = (scope: 'write' | 'read' | 'agent') => ({ Authorization: `Bearer ${rig.addresses[scope]}` });

describe('the first address', () => {
  it('swaps the token for a cookie that scripts and other sites cannot use, and takes it out of the address', async () => {
    const answer = await rig.get(`/?token=${rig.addresses.write}`, {});
    expect(answer.status).toBe(303);
    expect(answer.headers.location).toBe('/');
    const [set = ''] = answer.headers['set-cookie'] ?? [];
    expect(set).toMatch(/^firstlight-\d+=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/);
    expect(set).not.toContain(rig.addresses.write);
    expect((await rig.get('/api/cluster', { Cookie: cookie })).status).toBe(200);
    expect((await rig.get('/', { Cookie: cookie })).status).toBe(200);
  });

  it('opens from a link in a mail or a chat too, and from there nothing else', async () => {
    const from = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' };
    expect((await rig.get(`/?token=${rig.addresses.read}`, from)).status).toBe(303);
    expect((await rig.get('/api/cluster', { ...from, Cookie: cookie })).status).toBe(403);
  });
});

describe('a request that must not come in', () => {
  it.each<[string, number, () => Parameters<Rig['ask']>[0]]>([
    ['has no token', 401, () => ({ path: '/api/cluster' })],
    ['has no token and wants the page', 401, () => ({ path: '/' })],
    [
      'has another token',
      401,
      () => ({ path: '/api/cluster', headers: { Authorization: `Bearer ${'A'.repeat(43)}` } }),
    ],
    ['has an empty token', 401, () => ({ path: '/api/cluster', headers: { Authorization: 'Bearer ' } })],
    [
      'has the token as Basic',
      401,
      () => ({ path: '/api/cluster', headers: { Authorization: `Basic ${rig.addresses.write}` } }),
    ],
    [
      'has the token in the address of the API',
      401,
      () => ({ path: `/api/cluster?token=${rig.addresses.write}` }),
    ],
    [
      'has the token as its cookie',
      401,
      () => ({ path: '/api/cluster', headers: { Cookie: `${cookie.split('=')[0]}=${rig.addresses.write}` } }),
    ],
    [
      'has two cookies of that name',
      401,
      () => ({ path: '/api/cluster', headers: { Cookie: `${cookie}; ${cookie}` } }),
    ],
    [
      'has a cookie cut short',
      401,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie.slice(0, -1) } }),
    ],
    [
      'has a cookie of another port',
      401,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie.replace(/-\d+=/, '-1=') } }),
    ],
    ["opens the page with the agents' token", 401, () => ({ path: `/?token=${rig.addresses.agent}` })],
    [
      'names another host',
      421,
      () => ({ path: '/api/cluster', headers: { ...bearer('write'), Host: `evil.example:${rig.port}` } }),
    ],
    [
      'names a host that begins as ours',
      421,
      () => ({
        path: '/api/cluster',
        headers: { ...bearer('write'), Host: `127.0.0.1.evil.example:${rig.port}` },
      }),
    ],
    [
      'names our host with another port',
      421,
      () => ({ path: '/api/cluster', headers: { ...bearer('write'), Host: '127.0.0.1:1' } }),
    ],
    [
      'names our host without the port',
      421,
      () => ({ path: '/api/cluster', headers: { ...bearer('write'), Host: '127.0.0.1' } }),
    ],
    [
      'names an address that is none of ours',
      421,
      () => ({ path: '/api/cluster', headers: { ...bearer('write'), Host: `10.0.0.1:${rig.port}` } }),
    ],
    [
      'names a host with a user in it',
      421,
      () => ({ path: '/api/cluster', headers: { ...bearer('write'), Host: `a@127.0.0.1:${rig.port}` } }),
    ],
    [
      'comes from a page of another site',
      403,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie, Origin: 'https://evil.example' } }),
    ],
    [
      'comes from a page of no site',
      403,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie, Origin: 'null' } }),
    ],
    [
      'comes from our host on another port',
      403,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie, Origin: 'http://127.0.0.1:1' } }),
    ],
    [
      'comes from our host by another scheme',
      403,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie, Origin: `https://127.0.0.1:${rig.port}` } }),
    ],
    [
      'comes from a page of a sister site',
      403,
      () => ({ path: '/api/cluster', headers: { Cookie: cookie, 'Sec-Fetch-Site': 'same-site' } }),
    ],
    [
      'changes something from another site',
      403,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { Cookie: cookie, Origin: 'https://evil.example', 'Content-Type': 'application/json' },
        body: '{"run":"1","allowed":["7f3a"]}',
      }),
    ],
    [
      'sends a form',
      415,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { Cookie: cookie, 'Content-Type': 'application/x-www-form-urlencoded' },
        body: 'run=1',
      }),
    ],
    [
      'sends JSON as text',
      415,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { Cookie: cookie, 'Content-Type': 'text/plain' },
        body: '{"run":"1"}',
      }),
    ],
    [
      'sends half a JSON',
      400,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { ...bearer('write'), 'Content-Type': 'application/json' },
        body: '{"run":',
      }),
    ],
    [
      'sends no UTF-8',
      400,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { ...bearer('write'), 'Content-Type': 'application/json' },
        body: Buffer.from([0x22, 0xff, 0xfe, 0x22]),
      }),
    ],
    [
      'sends a key that is none',
      422,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { ...bearer('write'), 'Content-Type': 'application/json' },
        body: '{"run":"1","sudo":"yes"}',
      }),
    ],
    [
      'sends a prototype',
      422,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { ...bearer('write'), 'Content-Type': 'application/json' },
        body: '{"run":"1","__proto__":{"allowed":["7f3a"]}}',
      }),
    ],
    ['climbs out of the page', 400, () => ({ path: '/../../etc/passwd', headers: { Cookie: cookie } })],
    [
      'climbs out in disguise',
      400,
      () => ({ path: '/%2e%2e/%2e%2e/etc/passwd', headers: { Cookie: cookie } }),
    ],
    [
      'climbs out with one part',
      400,
      () => ({ path: '/assets%2f..%2f..%2fetc/passwd', headers: { Cookie: cookie } }),
    ],
    ['climbs out with backslashes', 400, () => ({ path: '/..%5c..%5cetc', headers: { Cookie: cookie } })],
    ['has a NUL in its path', 400, () => ({ path: '/index.html%00.js', headers: { Cookie: cookie } })],
    ['has a broken percent', 400, () => ({ path: '/%zz', headers: { Cookie: cookie } })],
    ['begins with two slashes', 400, () => ({ path: '//evil.example/', headers: { Cookie: cookie } })],
    [
      'names a whole address',
      400,
      () => ({ path: `http://127.0.0.1:1/api/cluster`, headers: bearer('write') }),
    ],
    [
      'is longer than any address',
      414,
      () => ({ path: `/api/runs?limit=${'1'.repeat(9000)}`, headers: bearer('write') }),
    ],
    ['asks for a run that is no number', 422, () => ({ path: '/api/runs/one', headers: bearer('write') })],
    [
      'uses a method that is none there',
      405,
      () => ({ method: 'PUT', path: '/api/cluster', headers: bearer('write') }),
    ],
    ['posts to the page', 405, () => ({ method: 'POST', path: '/', headers: bearer('write') })],
    ['wants what is not there', 404, () => ({ path: '/api/secrets', headers: bearer('write') })],
    [
      'names a recipe elsewhere',
      422,
      () => ({
        method: 'POST',
        path: '/api/operations/plan',
        headers: { ...bearer('read'), 'Content-Type': 'application/json' },
        body: '{"recipe":"/etc/passwd"}',
      }),
    ],
    [
      'names a recipe above',
      422,
      () => ({
        method: 'POST',
        path: '/api/operations/plan',
        headers: { ...bearer('read'), 'Content-Type': 'application/json' },
        body: '{"recipe":"../x.yaml"}',
      }),
    ],
    [
      'has a log of this machine read',
      422,
      () => ({
        method: 'POST',
        path: '/api/operations/diagnose',
        headers: { ...bearer('write'), 'Content-Type': 'application/json' },
        body: '{"log":["/etc/passwd"]}',
      }),
    ],
    [
      'may only read and answers for a person',
      403,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { ...bearer('read'), 'Content-Type': 'application/json' },
        body: '{"run":"1","allowed":["7f3a"]}',
      }),
    ],
    [
      'may only read and starts a run',
      403,
      () => ({
        method: 'POST',
        path: '/api/operations/up',
        headers: { ...bearer('read'), 'Content-Type': 'application/json' },
        body: '{"recipe":"recipe.yaml"}',
      }),
    ],
    [
      "answers for a person with the agents' token",
      403,
      () => ({
        method: 'POST',
        path: '/api/consent',
        headers: { ...bearer('agent'), 'Content-Type': 'application/json' },
        body: '{"run":"1","allowed":["7f3a"]}',
      }),
    ],
    ["reads the API with the agents' token", 403, () => ({ path: '/api/cluster', headers: bearer('agent') })],
    [
      "asks as an agent with a person's token",
      403,
      () => ({
        method: 'POST',
        path: '/mcp',
        headers: { ...bearer('write'), 'Content-Type': 'application/json' },
        body: '{}',
      }),
    ],
    [
      "asks as an agent with the page's cookie",
      403,
      () => ({
        method: 'POST',
        path: '/mcp',
        headers: { Cookie: cookie, 'Content-Type': 'application/json' },
        body: '{}',
      }),
    ],
    [
      'asks as an agent without a token',
      401,
      () => ({ method: 'POST', path: '/mcp', headers: { 'Content-Type': 'application/json' }, body: '{}' }),
    ],
  ])('%s: %i', async (_, status, make) => {
    const run = askedRun(rig.journal);
    const answer = await rig.ask(make());
    expect(answer.status).toBe(status);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(problemSchema.parse(answer.json())).toMatchObject({ status });
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    expect(answer.headers['content-security-policy']).toContain("default-src 'none'");
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
    for (const secret of [rig.addresses.write, rig.addresses.read, rig.addresses.agent, 'root:x:0'])
      expect(answer.text).not.toContain(secret);
    expect(rig.journal.read(run).some((event) => event.type === 'consent-given')).toBe(false);
  });

  it('is opened by a person without a token: it is answered with words, and nothing of the address is run', async () => {
    const headers = { Accept: 'text/html,application/xhtml+xml' };
    const answer = await rig.get('/', headers);
    expect(answer.status).toBe(401);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.text).toContain('open the address that firstlight serve printed');
    const odd = await rig.get('/<script>alert(1)</script>', { ...headers, Cookie: cookie });
    expect(odd.status).toBe(404);
    expect(odd.text).not.toContain('<script>');
  });

  it('is no HTTP, or has no Host or two: the line is cut without an answer of ours', async () => {
    const say = (text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(rig.port, '127.0.0.1', () => socket.write(text));
        let heard = '';
        socket.setEncoding('utf8').on('data', (part: string) => {
          heard += part;
          if (heard.includes('\r\n\r\n')) socket.end();
        });
        socket.on('close', () => resolve(heard));
        // Cut while part of what was sent lay unread, the line ends by a reset.
        socket.on('error', (error: NodeJS.ErrnoException) => {
          if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
        });
      });
    const bearerLine = `Authorization: Bearer ${rig.addresses.write}`;
    expect(await say('SSH-2.0-OpenSSH_9.2\r\n\r\n')).toBe('');
    expect(await say(`GET /api/cluster HTTP/1.1\r\n${bearerLine}\r\n\r\n`)).not.toContain(' 200 ');
    const host = `Host: 127.0.0.1:${rig.port}`;
    expect(
      await say(`GET /api/cluster HTTP/1.1\r\n${host}\r\nHost: evil.example\r\n${bearerLine}\r\n\r\n`),
    ).toContain(' 421 ');
    expect(
      await say(
        `GET /api/cluster HTTP/1.1\r\n${host}\r\n${bearerLine}\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n`,
      ),
    ).not.toContain(' 200 ');
    expect(
      await say(`GET /api/cluster HTTP/1.1\r\n${host}\r\n${bearerLine}\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`),
    ).not.toContain(' 200 ');
  });

  it('has a body larger than any: it is refused before it is read', async () => {
    const headers = { ...bearer('write'), 'Content-Type': 'application/json' };
    const answer = await rig
      .ask({ method: 'POST', path: '/api/consent', headers, body: Buffer.alloc(2 * 2 ** 20, 0x20) })
      .catch((error: NodeJS.ErrnoException) => error);
    // The connection may be cut while the rest is still being sent.
    if (answer instanceof Error) expect(answer.code).toMatch(/ECONNRESET|EPIPE/);
    else expect(answer.status).toBe(413);
  });
});

describe('a server that only shows', () => {
  it('has no token that changes anything, and says so', async () => {
    const only = await openRig({ readOnly: true });
    try {
      expect(only.addresses.write).toBeUndefined();
      expect((await only.get('/api/cluster')).json()).toMatchObject({ readOnly: true, scope: 'read' });
      const run = askedRun(only.journal);
      const answer = await only.post('/api/consent', { run, allowed: ['7f3a'] });
      expect(answer.status).toBe(403);
      expect(answer.json()).toMatchObject({ code: 'read-only', detail: 'this server only shows' });
    } finally {
      await only.close();
    }
  });
});

describe('a server that is open to the network', () => {
  it('answers to its address and the name of the machine, and to no other name', async () => {
    const open = await openRig({ listen: '0.0.0.0' });
    try {
      const ask = async (host: string) =>
        (
          await open.ask({
            path: '/api/cluster',
            headers: { Authorization: `Bearer ${open.addresses.write}`, Host: `${host}:${open.port}` },
          })
        ).status;
      expect(open.addresses.open).toBe(true);
      expect(await ask('127.0.0.1')).toBe(200);
      expect(await ask(hostname())).toBe(200);
      expect(await ask('evil.example')).toBe(421);
      expect(await ask('8.8.8.8')).toBe(421);
    } finally {
      await open.close();
    }
  });
});
