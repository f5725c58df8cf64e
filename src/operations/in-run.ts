import type { Node } from '../domain/cluster.ts';
import type { EventBody, Owed } from '../domain/event.ts';
import { sentences } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { saysFullDisk } from '../knowledge/full-disk.ts';
import { LockRefused, takeLock } from '../remote/lock.ts';
import { lockOwner } from './lock-owner.ts';
import type { Answer } from './operation.ts';
import { newRecorder, type Recorder } from './recorder.ts';
import { lockHeld } from './standing.ts';
import type { World } from './world.ts';

export type RunEnd = {
  readonly outcome: Extract<EventBody, { type: 'run-ended' }>['outcome'];
  readonly why: string;
  readonly exit: 0 | 1 | 2;
  /** What is owed is given back at once, by a run of its own. */
  readonly givesBack?: true;
};

const LAST_LOOK_MILLISECONDS = 5000;

type Opening = {
  readonly operation: 'up' | 'down' | 'restore' | 'adopt';
  readonly nodes: readonly Node[];
  readonly recipe: string | undefined;
  readonly recipeDigest: string | undefined;
};

/**
 * Everything that changes hosts happens inside one run: opened in the journal, under the nodes' lock, closed by
 * run-ended whatever happens. User errors end the run and go on to the face; bugs do too, with a stack.
 */
export async function inRun(
  world: World,
  opening: Opening,
  work: (recorder: Recorder, world: World) => Promise<RunEnd>,
  owed: (world: World) => Promise<readonly Owed[]>,
): Promise<Answer> {
  const recorder = newRecorder(world);
  recorder.emit({
    type: 'run-started',
    operation: opening.operation,
    cluster: world.cluster.name,
    recipe: opening.recipe,
    recipeDigest: opening.recipeDigest,
    nodes: opening.nodes.map((node) => node.name),
    controller: world.controller,
    version: world.version,
  });
  const close = async (end: RunEnd, told = owed) => {
    // After Ctrl-C too: a person who ends it here must know what is still to be given back.
    const last = world.signal.aborted ? under(world, AbortSignal.timeout(LAST_LOOK_MILLISECONDS)) : world;
    const ended = recorder.emit({ type: 'run-ended', ...end, owed: await told(last).catch(() => []) }); // hosts out of reach: what is owed is unknown here
    if (ended.type !== 'run-ended') throw new Error('the journal changed an event');
    const answer: Answer = { report: { kind: 'run', run: recorder.run, ended }, exit: end.exit };
    return answer;
  };
  let release: (() => Promise<void>) | undefined;
  let lost: AbortSignal | undefined;
  try {
    const lock = await lockNodes(world, opening.nodes, recorder.run);
    if (lock.kind === 'held-by') {
      throw lockHeld(world, lock.node, lock.lock);
    }
    release = lock.release;
    lost = lock.lost;
    lost.addEventListener('abort', () =>
      recorder.emit({
        type: 'note',
        level: 'warning',
        node: undefined,
        text: 'another controller took the lock over; this run stops here',
      }),
    );
    // Whoever has lost the lock must not act any more, whatever its own user wants.
    const inside = under(world, AbortSignal.any([world.signal, lost]));
    // A node that did not answer is told by the work itself, which looks at all of them.
    return await close(await work(recorder, inside));
  } catch (error) {
    if (world.signal.aborted || lost?.aborted === true)
      return await close({ outcome: 'cancelled', why: cancelledWhy(recorder), exit: 1 });
    if (error instanceof LockRefused && opening.operation === 'up') tellLockRefused(recorder, opening, error);
    if (error instanceof UserError) {
      await close(
        {
          outcome:
            error.code === 'consent-needed'
              ? 'consent-needed'
              : error.code === 'lock-held'
                ? 'cancelled'
                : 'not-serving',
          why: sentences(error.message, error.hint),
          exit: error.code === 'not-serving' ? 1 : 2,
        },
        async () => [],
      );
    } else {
      recorder.emit({
        type: 'run-ended',
        outcome: 'not-serving',
        why: `this is our mistake: ${error instanceof Error ? error.message : String(error)}`,
        exit: 3,
        owed: [],
      });
    }
    throw error;
  } finally {
    await release?.();
  }
}

function tellLockRefused(recorder: Recorder, { nodes }: Opening, error: LockRefused): void {
  const { node, said, message, hint } = error;
  const rank = nodes.findIndex(({ name }) => name === node);
  recorder.emit({
    type: 'finding',
    attempt: 1,
    cause: saysFullDisk(said) ? 'disk-full' : 'unknown',
    node,
    rank: rank === -1 ? undefined : rank,
    role: rank === -1 ? undefined : rank === 0 ? 'head' : 'worker',
    stage: undefined,
    final: true,
    confidence: 1,
    title: message,
    why: 'Without a lock two controllers could act on it at once, so nothing was done.',
    quotes: [],
    consequences: [],
    advice: [hint],
    values: { path: '/tmp' },
  });
}

/** The same world, ended by another signal. */
function under(world: World, signal: AbortSignal): World {
  return Object.create(world, { signal: { value: signal } });
}

async function lockNodes(world: World, nodes: readonly Node[], run: string) {
  return takeLock(
    nodes.map((node) => world.hosts.of(node.name)),
    { run, owner: lockOwner(world.controller) },
    { signal: world.signal },
  );
}

function cancelledWhy(recorder: Recorder): string {
  const { attempts, steps } = recorder.state();
  const launched = attempts.some((attempt) => attempt.ranks.some((rank) => rank.ended === undefined));
  if (launched)
    return 'left while the ranks run on; firstlight up takes it up again, firstlight down stops them';
  // What an earlier run launched may run on: this one has only looked.
  if (steps.length === 0) return 'ended by you before anything was changed';
  return 'ended after the step that was running; nothing of ours runs';
}
