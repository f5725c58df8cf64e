import type { NodeFacts } from '../../domain/facts.ts';
import { sentences } from '../../domain/units.ts';
import { unreachedCause } from '../../knowledge/unreached-cause.ts';
import { hostKeyError } from '../host-key-error.ts';
import type { RunEnd } from '../in-run.ts';
import { type BringUp, notServing, type Progress } from './progress.ts';
import { tellFinding } from './tell-finding.ts';

/** The end of a run that does not reach one of its nodes. Throws a UserError where its host key is to be accepted first. */
export function unreached(
  up: BringUp,
  progress: Progress,
  { node, failure }: Extract<NodeFacts, { reached: false }>,
): RunEnd {
  tellFinding(up, progress.attempt + 1, {
    cause: unreachedCause(failure.why, answeredBefore(up, node)),
    node,
    title: failure.sentence,
    why: failure.text.trim().split('\n').slice(-2).join(' '),
    advice: [failure.remedy],
  });
  const error = hostKeyError(failure);
  if (error !== undefined) throw error;
  return notServing(sentences(failure.sentence, failure.remedy));
}

/** Runs before this one that are asked whether they reached a host. */
const PAST_RUNS = 5;

/** Whether a look of this run or of one of the last few reached it: then its address was the right one. */
function answeredBefore({ world, recorder }: BringUp, node: string): boolean {
  const runs = world.journal.runs().toSorted((a, b) => b.number - a.number);
  return [recorder.run, ...runs.slice(0, PAST_RUNS).map(({ run }) => run)].some((run) =>
    world.journal
      .read(run)
      .some(
        (event) =>
          event.type === 'looked' && event.facts.some((facts) => facts.node === node && facts.reached),
      ),
  );
}
