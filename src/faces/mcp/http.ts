import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { type McpParts, newMcpServer } from './server.ts';

const MOST_SESSIONS = 32;
const IDLE_MILLISECONDS = 60 * 60_000;

type Session = { readonly transport: StreamableHTTPServerTransport; usedAt: number };

/** Answers agents over streamable HTTP; who may ask is decided before. Each session is a client of its own. */
export function mcpOverHttp(
  parts: McpParts,
): (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void> {
  const sessions = new Map<string, Session>();
  return async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? sessions.get(id) : undefined;
    if (known !== undefined) {
      known.usedAt = Date.now();
      await known.transport.handleRequest(request, response, body);
      return;
    }
    if (id !== undefined) {
      // As the protocol wants it: the client then begins anew.
      response.writeHead(404, { 'Content-Type': 'application/json' });
      response.end(
        JSON.stringify({ jsonrpc: '2.0', error: { code: -32001, message: 'no such session' }, id: null }),
      );
      return;
    }
    await makeRoom(sessions);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => {
        sessions.set(session, { transport, usedAt: Date.now() });
      },
    });
    const server = newMcpServer(parts);
    server.server.onclose = () => {
      if (transport.sessionId !== undefined) sessions.delete(transport.sessionId);
    };
    await server.connect(transport);
    await transport.handleRequest(request, response, body);
  };
}

/** Ends the session that was used least lately, where there are too many or it is long idle. */
async function makeRoom(sessions: Map<string, Session>): Promise<void> {
  const old = [...sessions].sort(([, a], [, b]) => a.usedAt - b.usedAt);
  for (const [id, { transport, usedAt }] of old) {
    if (sessions.size < MOST_SESSIONS && Date.now() - usedAt < IDLE_MILLISECONDS) return;
    sessions.delete(id);
    await transport.close();
  }
}
