import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { z } from 'zod';
import { sentences } from '../../domain/units.ts';
import { UserError } from '../../domain/user-error.ts';
import { scrubber } from '../../operations/scrub.ts';
import type { Client } from './client.ts';

/** What a tool may do while it works. */
export type Work = {
  readonly client: Client;
  /** Aborts when the client cancels, or is gone. */
  readonly signal: AbortSignal;
  /** Tells the client how far it is; nothing where it did not ask for that. */
  readonly progress: (message: string) => void;
};

export type Tool<I extends z.ZodObject, O extends z.ZodObject> = {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly input: I;
  readonly output: O;
  /**
   * `reads` touches nothing; `uses` changes nothing and makes the model work; `changes` starts or stops what is ours;
   * `asks` may lead to foreign work being stopped. A server that only shows does not offer what `uses`.
   */
  readonly effect: 'reads' | 'uses' | 'changes' | 'asks';
  readonly run: (
    input: z.output<I>,
    work: Work,
  ) => Promise<{ readonly say: string; readonly data: z.input<O>; readonly failed?: boolean }>;
};

/** Adds a tool to a server. User errors become answers that say what to do; mistakes of ours are named as such. */
export function addTool<I extends z.ZodObject, O extends z.ZodObject>(
  server: McpServer,
  client: Client,
  tool: Tool<I, O>,
): void {
  if (client.readOnly && tool.effect === 'uses') return;
  // The SDK cannot tell what a schema gives whose type is open; the arguments are read by it here once more.
  const inputSchema: z.ZodObject = tool.input;
  const outputSchema: z.ZodObject = tool.output;
  const handle = async (given: unknown, extra: Extra): Promise<CallToolResult> => {
    const progress = progressOf(extra);
    const scrub = scrubber(client.world());
    try {
      const input = tool.input.parse(given);
      const { say, data, failed } = await tool.run(input, { client, signal: extra.signal, progress });
      const json = scrub(JSON.stringify(tool.output.parse(data)));
      const structured: Record<string, unknown> = JSON.parse(json);
      return {
        content: [{ type: 'text' as const, text: `${scrub(say)}\n${json}` }],
        structuredContent: structured,
        ...(failed === true ? { isError: true } : {}),
      };
    } catch (error) {
      return { content: [{ type: 'text' as const, text: scrub(wordsOf(error)) }], isError: true };
    }
  };
  server.registerTool(
    tool.name,
    {
      title: tool.title,
      description: tool.about,
      inputSchema,
      outputSchema,
      annotations: {
        title: tool.title,
        readOnlyHint: tool.effect === 'reads',
        destructiveHint: tool.effect === 'changes' || tool.effect === 'asks',
        idempotentHint: tool.effect === 'reads',
        openWorldHint: false,
      },
    },
    handle,
  );
}

type Extra = {
  readonly signal: AbortSignal;
  readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined;
  readonly sendNotification: (notification: {
    method: 'notifications/progress';
    params: { progressToken: string | number; progress: number; message: string };
  }) => Promise<void>;
};

function progressOf({ _meta, sendNotification }: Extra): (message: string) => void {
  const token = _meta?.progressToken;
  let count = 0;
  return (message) => {
    if (token === undefined) return;
    count += 1;
    const params = { progressToken: token, progress: count, message };
    // A client that is gone ends the work by its signal; this need not.
    sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
  };
}

function wordsOf(error: unknown): string {
  if (error instanceof UserError)
    return `${sentences(error.message, `What to do: ${error.hint}`)} (${error.code})`;
  const text = error instanceof Error ? error.message : String(error);
  return `This is a mistake of firstlight, not the cluster's: ${text}`;
}
