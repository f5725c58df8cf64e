import { UserError } from '../domain/user-error.ts';
import { diagnoseLogs } from './diagnose-logs.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { findRun, hasLooked } from './past-run.ts';

/** `firstlight diagnose [RUN]`: why a past run failed, from its journal; with --log why a pair launched by hand did. */
export const diagnoseRun: Operation<typeof inputs.diagnose> = {
  name: 'diagnose',
  summary: 'say why a run or a pair launched by hand failed, with the lines that show it',
  effect: 'reads',
  input: inputs.diagnose,
  async run(input, world) {
    if (input.log.length > 0) {
      if (input.run === undefined) return diagnoseLogs(world, input);
      throw new UserError('bad-input', 'a run and --log exclude each other', 'leave one of them out');
    }
    if (input.follow || input.engine !== undefined)
      throw new UserError(
        'bad-input',
        '--follow and --engine need --log',
        'firstlight diagnose --log head=head.log --follow',
      );
    const found = findRun(world.journal, input.run, hasLooked);
    const findings = found.events.flatMap((event) =>
      event.type === 'finding' && event.final ? [event] : [],
    );
    return { report: { kind: 'diagnose', run: found.run, findings }, exit: 0 };
  },
};
