import type { Finding } from '../domain/finding.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { findRun, isUp } from './past-run.ts';

/** `firstlight diagnose [RUN]`: why a past run failed, from its journal. */
export const diagnoseRun: Operation<typeof inputs.diagnose> = {
  name: 'diagnose',
  summary: 'say why a run failed, with the lines that show it',
  effect: 'reads',
  input: inputs.diagnose,
  async run(input, world) {
    const found = findRun(world.journal, input.run, isUp);
    const findings: Finding[] = found.events.flatMap((event) =>
      event.type === 'finding' && event.final ? [event] : [],
    );
    return { report: { kind: 'diagnose', run: found.run, findings }, exit: 0 };
  },
};
