import { inputs } from './operations/inputs.ts';
import type { Operation } from './operations/operation.ts';

/** `firstlight serve`: the page, the API and /mcp on one port of this machine, until Ctrl-C. Read in when asked for. */
export const serve: Operation<typeof inputs.serve> = {
  name: 'serve',
  summary: 'show everything on a page, and answer programs and agents',
  effect: 'changes',
  input: inputs.serve,
  async run(input, world) {
    const { runServe } = await import('./serve-run.ts');
    return runServe(input, world);
  },
};
