import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

/** What a tool answered: what it says, and its data where it worked. */
export type Told = {
  readonly text: string;
  readonly failed: boolean;
  readonly data: Readonly<Record<string, unknown>>;
};

/** A real MCP client, as an AI agent has one. */
export type Agent = {
  readonly client: Client;
  readonly progress: string[];
  call(tool: string, input?: Record<string, unknown>, signal?: AbortSignal): Promise<Told>;
  close(): Promise<void>;
};

/** The agent starts `firstlight mcp` itself, and speaks with it over its pipes. */
export async function agentOverStdio(
  main: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<Agent> {
  return connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [main, 'mcp'],
      cwd,
      env: { PATH: process.env['PATH'] ?? '', HOME: cwd, LANG: 'C.UTF-8', ...env },
      stderr: 'ignore',
    }),
  );
}

/** The agent speaks with a server that runs already. */
export async function agentOverHttp(base: string, token: string): Promise<Agent> {
  return connect(
    new StreamableHTTPClientTransport(new URL(`${base}/mcp`), {
      requestInit: { headers: { Authorization: `Bearer ${token}` } },
    }),
  );
}

async function connect(transport: Transport): Promise<Agent> {
  const client = new Client({ name: 'a test', version: '1' });
  await client.connect(transport);
  // The client holds answers against the schemas that it was told.
  await client.listTools();
  const progress: string[] = [];
  return {
    client,
    progress,
    async call(tool, input = {}, signal) {
      const result = CallToolResultSchema.parse(
        await client.callTool({ name: tool, arguments: input }, CallToolResultSchema, {
          timeout: 300_000,
          resetTimeoutOnProgress: true,
          onprogress: ({ message }) => progress.push(message ?? ''),
          ...(signal === undefined ? {} : { signal }),
        }),
      );
      const [first] = result.content;
      return {
        text: first?.type === 'text' ? first.text : '',
        failed: result.isError === true,
        data: z.record(z.string(), z.unknown()).parse(result.structuredContent ?? {}),
      };
    },
    close: () => client.close(),
  };
}
