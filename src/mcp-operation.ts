import { inputs } from './operations/inputs.ts';
import type { Operation } from './operations/operation.ts';

/** `firstlight mcp`: the face for AI agents, on stdin and stdout. Read in when it is asked for. */
export const mcp: Operation<typeof inputs.mcp> = {
  name: 'mcp',
  summary: 'answer an AI agent on stdin and stdout (Model Context Protocol)',
  effect: 'changes',
  input: inputs.mcp,
  async run(_input, world) {
    const { runMcp } = await import('./mcp-run.ts');
    return runMcp(world);
  },
};
