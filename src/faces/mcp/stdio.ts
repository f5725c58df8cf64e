import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { type McpParts, newMcpServer } from './server.ts';

/** Answers one agent on stdin and stdout, until it closes them or the signal aborts. */
export async function serveStdio(parts: McpParts, signal: AbortSignal): Promise<void> {
  if (process.stdin.isTTY)
    process.stderr.write(
      'This speaks the Model Context Protocol with the program that starts it, and none does here. Ctrl-C ends it.\n',
    );
  const server = newMcpServer(parts);
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
}
