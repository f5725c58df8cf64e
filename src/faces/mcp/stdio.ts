import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { aside } from '../../operations/begin.ts';
import type { World } from '../../operations/world.ts';
import { newWork } from './client.ts';
import { type McpParts, newMcpServer } from './server.ts';

/** Answers one agent on stdin and stdout, until it closes them or the signal aborts. */
export async function serveStdio(parts: Omit<McpParts, 'work'>, signal: AbortSignal): Promise<void> {
  const work = newWork();
  const gone = new AbortController();
  const world = (): World => aside(parts.world(), { signal: gone.signal, face: 'through an agent' });
  if (process.stdin.isTTY)
    process.stderr.write(
      'This speaks the Model Context Protocol with the program that starts it, and none does here. Ctrl-C ends it.\n',
    );
  const server = newMcpServer({ ...parts, world, work });
  const transport = new StdioServerTransport();
  const closed = new Promise<void>((resolve) => {
    server.server.onclose = () => resolve();
    // The SDK does not look for the end of its input.
    process.stdin.once('end', () => resolve());
    process.stdin.once('close', () => resolve());
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await server.connect(transport);
  await closed;
  await server.close();
  // A run whose agent is gone ends as with Ctrl-C: after its step, or leaving the ranks to run on.
  gone.abort(new Error('the agent is gone'));
  await work.over();
}
