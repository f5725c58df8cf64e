import type { Step } from '../domain/plan.ts';
import { markUndo, writeUndo } from '../remote/undo.ts';
import type { Recorder } from './recorder.ts';
import { endOf, type StepEnd, tellStep } from './tell-step.ts';
import type { World } from './world.ts';

/** How often a step that waits asks whether that is of any use: each asking is a look. */
const ASK_EVERY_MS = 6000;

export type Applied = StepEnd & {
  /** It failed because sudo did not let us. */
  readonly refused?: true;
};

/** Carries out one step, told in the journal: its guard, then its way back is written on the node, then the command. */
export async function applyStep(
  world: World,
  recorder: Recorder,
  step: Step,
  noUse?: () => Promise<string | undefined>,
): Promise<Applied> {
  // Once more, whoever called: nothing is taken on trust where somebody's work is stopped.
  if (step.needsConsent && !recorder.state().consented.includes(step.id))
    throw new Error(`step ${step.id} would stop foreign work, and nobody allowed it`);
  const host = world.hosts.of(step.node);
  // Ctrl-C lets the step that runs come to its end: nothing is left half done.
  const whole = new AbortController().signal;
  const { id, node, title, phase, kind, undo } = step;
  return tellStep(world, recorder, { id, node, title, phase, kind, undo: undo.kind }, carryOut);

  async function carryOut(): Promise<Applied> {
    if (step.guard) {
      const guard = await host.run(step.guard, { signal: whole });
      if (guard.kind === 'ran' && guard.code !== 0)
        return { result: 'skipped', text: 'it is no longer what was seen; looking again' };
      if (guard.kind !== 'ran') return endOf(guard);
    }
    if (step.undo.kind === 'command') {
      const written = await writeUndo(
        host,
        {
          id: step.id,
          run: recorder.run,
          title: step.undo.title,
          at: new Date(world.clock.now()).toISOString(),
          sudo: step.undo.command.sudo === true,
          command: step.undo.command,
        },
        { signal: whole },
      );
      if (written.kind !== 'ran' || written.code !== 0) {
        const why = endOf(written);
        return {
          ...why,
          result: why.result === 'done' ? 'failed' : why.result,
          text: `nothing was changed: the way back could not be written (${why.text})`,
        };
      }
    }
    const applied = await attempt();
    // Nothing was changed, so nothing is owed.
    if (applied.refused && step.undo.kind === 'command')
      await markUndo(host, step.id, 'restored', { signal: whole });
    return applied;
  }

  async function attempt(): Promise<Applied> {
    const until = world.clock.now() + (step.retry?.forSeconds ?? 0) * 1000;
    let ask = world.clock.now() + ASK_EVERY_MS;
    for (;;) {
      const applied = endOf(await host.run(step.command, { signal: whole }));
      if (applied.result !== 'failed' || step.retry === undefined || world.clock.now() >= until)
        return applied;
      if (noUse !== undefined && world.clock.now() >= ask) {
        const why = await noUse();
        if (why !== undefined) return { result: 'failed', text: why };
        ask = world.clock.now() + ASK_EVERY_MS;
      }
      await world.clock.wait(step.retry.everySeconds * 1000, world.signal);
    }
  }
}
