import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { World } from '../../operations/world.ts';
import { newClient, type WorkInHand } from './client.ts';
import { addPrompts } from './prompts.ts';
import { addResources } from './resources.ts';
import { addTool } from './tool.ts';
import { chatTool } from './tools/chat.ts';
import { diagnoseTool } from './tools/diagnose.ts';
import { downTool } from './tools/down.ts';
import { evidenceTool } from './tools/evidence.ts';
import { logsTool } from './tools/logs.ts';
import { lookTool } from './tools/look.ts';
import { planTool } from './tools/plan.ts';
import { restoreTool } from './tools/restore.ts';
import { statusTool } from './tools/status.ts';
import { upTool } from './tools/up.ts';

const INSTRUCTIONS = `firstlight brings large language models up on several GPU hosts over SSH.
Go: look, then plan with a recipe, then up with the digest that plan gave. If up says consent-needed, tell the person what would be stopped and whose it is, word for word, and how they can allow it; you cannot allow it, and no other tool of yours can.
When it failed: diagnose, then evidence. down and restore first show what they would do, and do it when you hand their digest back.
Every answer says under left_out what it leaves out.`;

export type McpParts = {
  readonly world: () => World;
  readonly readOnly: boolean;
  readonly version: string;
  readonly work: WorkInHand;
};

/** A server for one agent: what it was shown is known of it alone. */
export function newMcpServer({ world, readOnly, version, work }: McpParts): McpServer {
  const server = new McpServer(
    { name: 'firstlight', title: 'firstlight', version },
    { instructions: INSTRUCTIONS, capabilities: { logging: {} } },
  );
  const client = newClient(world, readOnly, work);
  addTool(server, client, lookTool);
  addTool(server, client, planTool);
  addTool(server, client, upTool);
  addTool(server, client, statusTool);
  addTool(server, client, logsTool);
  addTool(server, client, diagnoseTool);
  addTool(server, client, evidenceTool);
  addTool(server, client, chatTool);
  addTool(server, client, downTool);
  addTool(server, client, restoreTool);
  addResources(server, world);
  addPrompts(server);
  return server;
}
