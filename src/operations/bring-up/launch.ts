import type { Service } from '../../domain/plan.ts';
import { startRank } from '../../remote/rank-runner.ts';
import type { RunEnd } from '../in-run.ts';
import { announceRanks } from './announce-ranks.ts';
import { type BringUp, notServing } from './progress.ts';
import { stopAttempt } from './stop-attempt.ts';
import { tellFinding } from './tell-finding.ts';

/** Starts every rank that does not run yet, in the plan's order; undefined when all of them run. */
export async function launch(
  up: BringUp,
  attempt: number,
  services: readonly Service[],
): Promise<RunEnd | undefined> {
  up.world.signal.throwIfAborted();
  // From here Ctrl-C detaches: all ranks are started or none.
  const whole = new AbortController().signal;
  for (const service of services.filter((one) => one.running !== true)) {
    const started = await start(up, attempt, service, whole);
    if (started.fine) continue;
    await stopAttempt(up, attempt, services, 'another rank could not be started');
    const { node, rank } = service;
    tellFinding(up, attempt + 1, {
      cause: 'unknown',
      node,
      title: `Rank ${rank} could not be started on ${node}`,
      why: started.text,
      advice: [`look at it there: ${started.text}`],
    });
    return notServing(`rank ${rank} could not be started on ${node}: ${started.text}`);
  }
  announceRanks(up, attempt, services, false);
  return undefined;
}

async function start(
  { world, recorder }: BringUp,
  attempt: number,
  service: Service,
  signal: AbortSignal,
): Promise<{ readonly fine: boolean; readonly text: string }> {
  const began = world.clock.now();
  const step = {
    id: service.name,
    node: service.node,
    title: `start rank ${service.rank}, ${service.engine}`,
    kind: 'start-rank',
  };
  recorder.emit({ type: 'step-started', ...step, phase: 'launch', undo: 'command' });
  const ran = await startRank(
    world.hosts.of(service.node),
    service,
    { run: recorder.run, attempt, startedAt: new Date(began).toISOString() },
    { signal },
  );
  const text =
    ran.kind === 'ran'
      ? ran.code === 0
        ? ran.stdout.trim()
        : `${ran.stderr} ${ran.stdout}`.trim()
      : ran.kind === 'lost'
        ? ran.failure.sentence
        : ran.kind === 'refused'
          ? ran.text
          : `no end after ${ran.seconds} s`;
  const fine = ran.kind === 'ran' && ran.code === 0;
  recorder.emit({
    type: 'step-ended',
    ...step,
    result: fine ? 'done' : ran.kind === 'lost' ? 'lost' : 'failed',
    text,
    milliseconds: world.clock.now() - began,
  });
  return { fine, text };
}
