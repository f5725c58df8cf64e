import { resolve } from 'node:path';
import type { Told } from '../domain/evidence.ts';
import { UserError } from '../domain/user-error.ts';
import { readFactsFile } from '../files/facts-file.ts';
import { lookAt } from '../files/log-folder.ts';
import { answerOfRun } from './answer-of-run.ts';
import { inBundle } from './bundle-logs.ts';
import { diagnoseLogs, type LogsInput } from './diagnose-logs.ts';
import { inputs } from './inputs.ts';
import { logSources, sourceOf } from './logs/log-sources.ts';
import type { Operation } from './operation.ts';
import { findRun, hasLooked } from './past-run.ts';

/**
 * `firstlight diagnose [RUN]`: why a past run failed, from its journal; with --log, a folder, a bundle or standard input
 * why a job failed that was launched by hand, without any host.
 */
export const diagnoseRun: Operation<typeof inputs.diagnose> = {
  name: 'diagnose',
  summary: 'say why a run or a job launched by hand failed, with the lines that show it',
  effect: 'reads',
  input: inputs.diagnose,
  async run(input, world) {
    const { run, follow } = input;
    const told = input.facts === undefined ? undefined : readFactsFile(input.facts);
    const options = { told, engine: input.engine, follow };
    if (input.log.length > 0) {
      if (run === undefined) return diagnoseLogs(world, { ...options, sources: logSources(input.log) });
      throw new UserError('bad-input', 'a run and --log exclude each other', 'leave one of them out');
    }
    if (run !== undefined && !/^\d+$/.test(run))
      return diagnoseLogs(world, { ...options, ...givenAs(run, told) });
    if (follow || input.engine !== undefined || told !== undefined)
      throw new UserError(
        'bad-input',
        '--follow, --engine and --facts need --log',
        'firstlight diagnose --log head=head.log --follow',
      );
    const found = findRun(world.journal, run, hasLooked);
    const findings = found.events.flatMap((event) =>
      event.type === 'finding' && event.final ? [event] : [],
    );
    return {
      report: { kind: 'diagnose', answer: answerOfRun(found.events), run: found.run, findings },
      exit: 0,
    };
  },
};

/** What stands in place of a run: `-`, a folder of logs, a bundle, or one log. */
function givenAs(path: string, told: Told | undefined): Pick<LogsInput, 'sources' | 'contents' | 'told'> {
  if (path === '-')
    return { sources: [{ rank: 0, node: undefined, path, name: 'head', text: 'standard input' }] };
  const given = lookAt(path);
  if (given.kind === 'nothing')
    throw new UserError(
      'no-such-run',
      `there is neither a run nor a file ${path}`,
      'firstlight runs lists the runs; a folder of logs, a bundle, a log and - are taken too',
    );
  if (given.kind === 'file') return { sources: logSources([path.includes(':') ? resolve(path) : path]) };
  if (given.kind === 'bundle') return inBundle(path, told);
  const sources = given.logs.map(({ name, path: file }) => sourceOf(name, file));
  return { sources, told: told ?? (given.facts === undefined ? undefined : readFactsFile(given.facts)) };
}
