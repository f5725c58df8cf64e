import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

/** Two ways to begin: a bring-up, and a diagnosis. */
export function addPrompts(server: McpServer): void {
  server.registerPrompt(
    'bring-up',
    {
      title: 'Bring a model up',
      description: 'From unknown hosts to a proved answer, without stopping anybody’s work unasked.',
      argsSchema: { recipe: z.string().describe('file of the recipe') },
    },
    ({ recipe }) =>
      asked(`Bring the model of the recipe ${recipe} up with firstlight.
1. Call look with this recipe. Tell me what is in the way, by node.
2. Call plan. Tell me whether it fits, and every step that stops somebody's work: what, whose, how it comes back.
3. Call up with the digest. If it says consent-needed, show me the steps and the ways to allow them exactly as they stand, and wait for me; then call up again with waitForConsentSeconds.
4. If it ends not-serving, call diagnose and evidence, and tell me the cause, the node, the lines that show it, and what you would do. Change nothing else.
5. If it serves, tell me model, engine, head, first token and tokens per second, what was cured, and what is owed.`),
  );
  server.registerPrompt(
    'diagnose',
    {
      title: 'Say why a bring-up failed',
      description: 'Cause, node at fault, the lines that show it, and what to do.',
      argsSchema: { run: z.string().optional().describe('number of the run; the newest if left out') },
    },
    ({ run }) =>
      asked(`Say why ${run === undefined ? 'the newest run' : `run ${run}`} of firstlight failed.
1. Call diagnose${run === undefined ? '' : ` with run ${run}`}, then evidence for the attempt of its last finding.
2. Read further lines with logs only where the quotes leave a question open.
3. Answer with: the cause in one sentence with its node; the lines that show it with rank and line number; what followed from it on other ranks; what was tried; what to do now. Say how sure it is. Change nothing.`),
  );
}

function asked(text: string) {
  return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }] };
}
