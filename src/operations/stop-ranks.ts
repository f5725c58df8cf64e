import type { EngineName } from '../domain/recipe.ts';
import { engines } from '../knowledge/engines/index.ts';
import { stopRank } from '../remote/rank-runner.ts';
import type { Recorder } from './recorder.ts';
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
  signal = world.signal,
): Promise<boolean> {
  let fine = true;
  for (const rank of [...ranks].sort((a, b) => a.rank - b.rank)) {
    const started = world.clock.now();
    const step = {
      id: rank.name,
      node: rank.node,
      title: `stop rank ${rank.rank}, ${rank.engine}`,
      kind: 'stop-rank',
    };
    recorder.emit({ type: 'step-started', ...step, phase: 'stop', undo: 'nothing' });
    const ran = await stopRank(
      world.hosts.of(rank.node),
      rank.name,
      { graceSeconds: engines[rank.engine].stopSeconds },
      { signal },
    );
    const done = ran.kind === 'ran' && ran.code === 0;
    fine &&= done;
    const text = done
      ? why
      : ran.kind === 'ran'
        ? `${ran.stdout} ${ran.stderr}`.trim()
        : ran.kind === 'lost'
          ? ran.failure.sentence
          : ran.kind === 'refused'
            ? ran.text
            : `no end after ${ran.seconds} s`;
    recorder.emit({
      type: 'step-ended',
      ...step,
      result: done ? 'done' : ran.kind === 'lost' ? 'lost' : 'failed',
      text,
      milliseconds: world.clock.now() - started,
    });
  }
  return fine;
}
