import type { EngineName } from '../domain/recipe.ts';
import { engines } from '../knowledge/engines/index.ts';
import { stopRank } from '../remote/rank-runner.ts';
import type { Recorder } from './recorder.ts';
import { endOf, tellStep } from './tell-step.ts';
import type { World } from './world.ts';

/** What is needed to stop one rank of ours. */
export type RankToStop = {
  readonly name: string;
  readonly node: string;
  readonly rank: number;
  readonly engine: EngineName;
};

/** Stops ranks of one job: the head first, so that it drains, then the workers; each is looked at until it is gone. */
export async function stopRanks(
  world: World,
  recorder: Recorder,
  ranks: readonly RankToStop[],
  why: string,
): Promise<boolean> {
  // As every step: Ctrl-C lets it come to its end.
  const whole = new AbortController().signal;
  let fine = true;
  for (const rank of [...ranks].sort((a, b) => a.rank - b.rank)) {
    world.signal.throwIfAborted();
    const { name, node, engine } = rank;
    const end = await tellStep(
      world,
      recorder,
      {
        id: name,
        node,
        title: `stop rank ${rank.rank}, ${engine}`,
        phase: 'stop',
        kind: 'stop-rank',
        undo: 'nothing',
      },
      async () => {
        const graceSeconds = engines[engine].stopSeconds;
        const stopped = endOf(
          await stopRank(world.hosts.of(node), name, { graceSeconds }, { signal: whole }),
        );
        return stopped.result === 'done' ? { ...stopped, text: why } : stopped;
      },
    );
    fine &&= end.result === 'done';
  }
  return fine;
}
