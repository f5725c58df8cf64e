import { inputs } from './operations/inputs.ts';
import type { Operation } from './operations/operation.ts';

/**
 * `firstlight lab up|down|story|list`: two Sparks of its own on this machine, for trying and for tests. Read in when
 * it is asked for: an SSH server and two pretend hosts would cost every other command a tenth of a second.
 */
export const lab: Operation<typeof inputs.lab> = {
  name: 'lab',
  summary: 'bring up two pretend Sparks on this machine, and try firstlight on them',
  effect: 'changes',
  input: inputs.lab,
  async run(input, world) {
    const { runLab } = await import('./lab-run.ts');
    return runLab(input, world);
  },
};
