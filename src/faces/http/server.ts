import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { aside } from '../../operations/begin.ts';
import { readBody } from './body.ts';
import type { Reply, Route } from './call.ts';
import type { Desk } from './desk.ts';
import { cookieName, enter, type Gate, unknownToken } from './gate.ts';
import type { Keys, Scope } from './keys.ts';
import { problemOf, Refusal } from './problem.ts';
import { HEADERS, json, problemAnswer, problemPage, send } from './send.ts';

/** Answers /mcp; joined from outside, since it is a face of its own. */
export type McpHandler = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>;

export type ServerParts = {
  readonly desk: Desk;
  readonly keys: Keys;
  readonly routes: readonly Route[];
  readonly listen: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly names: readonly string[];
  /** The page and its parts; undefined for an address that it does not have. */
  readonly page: (path: string, accepts: string) => PageFile | undefined;
  readonly mcp: McpHandler;
  /** Told of each answer's status. */
  readonly counted: (status: number) => void;
};

export type PageFile = {
  readonly type: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
};

export type Running = { readonly port: number; close(): Promise<void> };

/** Starts to answer. Rejects where the address or port is not to be had. */
export async function startServer(parts: ServerParts): Promise<Running> {
  const { desk, keys, routes } = parts;
  let port = parts.port;
  const gate: Gate = { keys, port: () => port, tls: parts.tls !== undefined, names: parts.names };
  const going = new Set<Promise<unknown>>();
  const listener: RequestListener = (request, response) => {
    const answered = answer(request, response)
      .catch((error: unknown) => refuse(request, response, error))
      .catch(desk.bug);
    const closed = new Promise((resolve) => response.once('close', resolve));
    const over = Promise.all([answered, closed]).finally(() => going.delete(over));
    going.add(over);
  };
  const server: Server =
    parts.tls === undefined
      ? createServer(LIMITS, listener)
      : createTlsServer({ ...LIMITS, ...parts.tls }, listener);
  server.maxConnections = 2000;
  // What is no HTTP at all is closed without an answer that could be taken for ours.
  server.on('clientError', (_error, socket) => socket.destroy());

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.once('close', () => parts.counted(response.statusCode));
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const { url, scope } = enter(request, gate);
    if (url.pathname === '/' && url.searchParams.has('token')) return welcome(response, url, scope);
    if (url.pathname === '/mcp') {
      needAgent(scope);
      await parts.mcp(request, response, await readBody(request));
      return;
    }
    if (scope === undefined) throw unknownToken();
    if (scope === 'agent')
      throw new Refusal(403, 'agents-only', 'this token is for /mcp alone', 'a person has another token');
    const found = match(routes, request.method ?? '', url.pathname);
    if (found === undefined) return page(request, response, url);
    if (found.route.scope === 'write' && scope !== 'write')
      throw new Refusal(
        403,
        'read-only',
        desk.readOnly ? 'this server only shows' : 'this token may only read',
        'open the address for changes that firstlight serve printed',
      );
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client went away')));
    const face = request.headers.authorization === undefined ? 'in the dashboard' : 'through the API';
    const world = aside(desk.world(), { signal: gone.signal, face });
    const body = found.route.method === 'POST' ? await readBody(request) : undefined;
    const query = Object.fromEntries(url.searchParams);
    const raw = { params: found.params, query, body };
    const reply = await found.route.handle({ request, response, url, scope, world, desk }, raw);
    await write(request, response, reply);
  }

  async function write(request: IncomingMessage, response: ServerResponse, reply: Reply): Promise<void> {
    if (reply === 'written') return;
    const whole =
      'text' in reply
        ? { status: reply.status, type: reply.type, body: desk.scrub(reply.text) }
        : {
            status: reply.status,
            type: 'application/json',
            body: desk.scrub(json(reply.body)),
            headers: reply.headers ?? {},
          };
    await send(request, response, whole);
  }

  /** The first visit: the token is taken out of the address and kept as a cookie. */
  function welcome(response: ServerResponse, url: URL, scope: Scope | undefined): void {
    const value = scope === undefined ? undefined : keys.cookie(scope);
    if (value === undefined) throw unknownToken();
    const secure = parts.tls === undefined ? '' : '; Secure';
    url.searchParams.delete('token');
    response.writeHead(303, {
      Location: `/${url.search}`,
      'Set-Cookie': `${cookieName(port)}=${value}; HttpOnly; SameSite=Strict; Path=/${secure}`,
      'Cache-Control': 'no-store',
    });
    response.end();
  }

  async function page(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const accepts = String(request.headers['accept-encoding'] ?? '');
    const file = url.pathname.startsWith('/api/') ? undefined : parts.page(url.pathname, accepts);
    if (file === undefined)
      throw new Refusal(404, 'no-such-page', `there is nothing at ${url.pathname}`, 'see /api/openapi.json');
    if (request.method !== 'GET' && request.method !== 'HEAD') throw wrongMethod('GET, HEAD');
    await send(request, response, { status: 200, ...file });
  }

  async function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): Promise<void> {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const problem = problemOf(error);
    if (problem.status === 500) desk.bug(error);
    const headers = error instanceof Refusal ? error.headers : {};
    // A person who opens an address gets words, not JSON.
    const person = request.method === 'GET' && /\btext\/html\b/.test(String(request.headers.accept ?? ''));
    const whole = person ? problemPage(problem, headers) : problemAnswer(problem, headers);
    await send(request, response, { ...whole, body: desk.scrub(whole.body) });
    // What was not read of the body is not waited for.
    if (!request.complete) request.destroy();
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(parts.port, parts.listen, () => resolve());
  });
  const address = server.address();
  if (typeof address === 'object' && address !== null) port = address.port;
  return {
    port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      // What is still being answered reads the journal, which is closed next.
      await Promise.race([
        Promise.all(going),
        setTimeout(LAST_WORDS_MILLISECONDS, undefined, { ref: false }),
      ]);
    },
  };
}

const LAST_WORDS_MILLISECONDS = 2000;

const LIMITS = {
  maxHeaderSize: 16 * 2 ** 10,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 30_000,
  insecureHTTPParser: false,
};

function needAgent(scope: Scope | undefined): void {
  if (scope === undefined) throw unknownToken();
  if (scope !== 'agent')
    throw new Refusal(
      403,
      'agents-only',
      'an agent takes the token for agents: this one could answer for a person',
      'firstlight serve prints it beside the address of /mcp',
    );
}

function match(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly route: Route; readonly params: Readonly<Record<string, string>> } | undefined {
  const parts = path.split('/');
  const here = routes.flatMap((route) => {
    const params = paramsOf(route.path.split('/'), parts);
    return params === undefined ? [] : [{ route, params }];
  });
  if (here.length === 0) return undefined;
  const wanted = method === 'HEAD' ? 'GET' : method;
  const found = here.find(({ route }) => route.method === wanted);
  if (found === undefined) throw wrongMethod(here.map(({ route }) => route.method).join(', '));
  return found;
}

function paramsOf(
  wanted: readonly string[],
  given: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    const value = decodeURIComponent(given[at] ?? '');
    if (name !== undefined) params[name] = value;
    else if (part !== value) return undefined;
  }
  return params;
}

function wrongMethod(allowed: string): Refusal {
  return new Refusal(405, 'wrong-method', 'this address does not take that method', `it takes ${allowed}`, {
    Allow: allowed,
  });
}
