import type { LockRecord } from '../domain/facts.ts';
import { nowLine } from '../domain/now-line.ts';
import type { StatusReport } from '../domain/report.ts';
import { foldAll, type RunState } from '../domain/run-state.ts';
import { consentCommand, lowerFirst } from '../domain/run-words.ts';
import { UserError } from '../domain/user-error.ts';
import { lockOwner } from './lock-owner.ts';
import type { World } from './world.ts';

type Journaled = Pick<World, 'journal'>;
type Holder = Pick<LockRecord, 'run' | 'owner'>;

/** How the run that holds a lock stands, and which steps it asks about; empty where another journal tells of it. */
export function standing(
  world: Journaled & Pick<World, 'clock'>,
  holder: Holder,
): Pick<NonNullable<StatusReport['busy']>[number], 'now' | 'asks'> {
  const state = stateOf(world, holder);
  if (state === undefined) return {};
  const asks = (state.asked?.steps ?? []).map(({ id, node, title, target }) => ({
    id,
    node,
    title,
    bytes: target.bytes,
  }));
  return { now: nowLine(state, world.clock.now()), ...(asks.length === 0 ? {} : { asks }) };
}

/** Why this run may not begin: another one works there. One that waits for a person is answered, not waited for. */
export function lockHeld(world: Journaled, node: string, lock: LockRecord): UserError {
  const { owner, since, run } = lock;
  const asked = stateOf(world, lock)?.asked?.steps ?? [];
  const works = `${owner} works on ${node} since ${since} (run ${run})`;
  if (asked.length === 0)
    return new UserError(
      'lock-held',
      works,
      'wait until it ends, or end it there; firstlight status shows what it does',
    );
  const titles = asked.map(({ id, title, node: on }) => `${id} (${lowerFirst(title)} on ${on})`).join(', ');
  return new UserError(
    'lock-held',
    `${works}, and waits for consent to ${titles}`,
    `answer it there, or here: ${consentCommand(
      run,
      asked.map(({ id }) => id),
    )} allows all, firstlight consent ${run} --refuse allows none and ends it`,
  );
}

/** Another controller's run may have the same number. */
function stateOf({ journal }: Journaled, { run, owner }: Holder): RunState | undefined {
  const [first] = journal.read(run, 0, 1);
  if (first?.type !== 'run-started' || lockOwner(first.controller) !== owner) return undefined;
  return foldAll(journal.read(run));
}
