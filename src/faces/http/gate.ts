import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback, plainAddress } from '../../domain/address.ts';
import type { Keys, Scope } from './keys.ts';
import { Refusal } from './problem.ts';

/** What the gate knows of the server it stands before. */
export type Gate = {
  readonly keys: Keys;
  readonly port: () => number;
  readonly tls: boolean;
  /** Names of this machine that may stand in Host, beside its addresses; none on loopback. */
  readonly names: readonly string[];
};

export type Entered = { readonly url: URL; readonly scope: Scope | undefined };

const LONGEST_TARGET = 8192;

/**
 * Lets a request in or throws a Refusal: its form, the Host it means (DNS rebinding), the page it comes from
 * (cross-site), and what its token may do. `scope` is undefined without a token; a wrong token is refused.
 */
export function enter(request: IncomingMessage, gate: Gate): Entered {
  const target = request.url ?? '';
  if (target.length > LONGEST_TARGET)
    throw new Refusal(414, 'bad-address', 'the address is too long', 'shorten it');
  const host = ownHost(request, gate);
  const url = readTarget(target, `${gate.tls ? 'https' : 'http'}://${host}`);
  refuseOtherPages(request, url, gate);
  return { url, scope: scopeOf(request, url, gate) };
}

/** Name of the cookie: with the port, since cookies are shared by all ports of a host. */
export function cookieName(port: number): string {
  return `firstlight-${port}`;
}

function readTarget(target: string, base: string): URL {
  const path = target.split('?')[0] ?? '';
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // A broken percent sequence; refused below.
    decoded = '\0';
  }
  const odd =
    /[\0-\x1f\x7f\\]/.test(decoded) || /(^|\/)\.{1,2}(\/|$)/.test(decoded) || decoded.startsWith('//');
  if (!target.startsWith('/') || odd)
    throw new Refusal(400, 'bad-address', 'the address is no path of this server', 'see /api/openapi.json');
  return new URL(target, base);
}

/** The Host header, where it means this very server: its address, or a name that was given to it. */
function ownHost(request: IncomingMessage, { port, tls, names }: Gate): string {
  const given = request.rawHeaders.filter(
    (_, at) => at % 2 === 0 && /^host$/i.test(request.rawHeaders[at] ?? ''),
  );
  const host = request.headers.host ?? '';
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?$/i.exec(host);
  const name = (match?.[1] ?? '').toLowerCase().replace(/^\[|\]$/g, '');
  const wanted = match?.[2] === undefined ? (tls ? 443 : 80) : Number(match[2]);
  const here = plainAddress(request.socket.localAddress ?? '');
  const mine =
    name !== '' &&
    ((isLoopback(here) && isLoopback(name)) ||
      (isIP(name) !== 0 && plainAddress(name) === here) ||
      names.includes(name));
  if (given.length !== 1 || !mine || wanted !== port())
    throw new Refusal(
      421,
      'wrong-host',
      'the request names another host than this server',
      'open the address that firstlight serve printed',
    );
  return host;
}

function refuseOtherPages(request: IncomingMessage, url: URL, { tls }: Gate): void {
  const { origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  // The first address may be opened from anywhere: a mail, a chat, a terminal in a browser.
  const opened =
    request.method === 'GET' &&
    !url.pathname.startsWith('/api/') &&
    request.headers['sec-fetch-mode'] === 'navigate';
  const foreign =
    (origin !== undefined && origin !== `${tls ? 'https' : 'http'}://${request.headers.host}`) ||
    (site !== undefined && site !== 'same-origin' && site !== 'none' && !opened);
  if (foreign)
    throw new Refusal(
      403,
      'wrong-origin',
      'the request comes from a page of another site',
      'open the address that firstlight serve printed',
    );
}

function scopeOf(request: IncomingMessage, url: URL, { keys, port }: Gate): Scope | undefined {
  const header = request.headers.authorization;
  if (header !== undefined) {
    const scope = keys.scopeOfToken(/^Bearer ([\w-]{1,128})$/i.exec(header)?.[1] ?? '');
    if (scope === undefined) throw unknownToken();
    return scope;
  }
  if (request.method === 'GET' && url.pathname === '/' && url.searchParams.has('token')) {
    const scope = keys.scopeOfToken(url.searchParams.get('token') ?? '');
    if (scope === undefined || scope === 'agent') throw unknownToken();
    return scope;
  }
  const values = cookies(request.headers.cookie ?? '', cookieName(port()));
  const [value] = values;
  if (value === undefined) return undefined;
  const scope = values.length === 1 ? keys.scopeOfCookie(value) : undefined;
  if (scope === undefined) throw unknownToken();
  return scope;
}

function cookies(header: string, name: string): readonly string[] {
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}

/** 401: no token, or one that this server did not give. */
export function unknownToken(): Refusal {
  return new Refusal(
    401,
    'no-token',
    'this needs a token that this server gave',
    'open the address that firstlight serve printed; after a restart it prints a new one',
    { 'WWW-Authenticate': 'Bearer realm="firstlight"' },
  );
}
