import type { Ran } from '../domain/command.ts';
import type { Step } from '../domain/plan.ts';
import { markUndo, writeUndo } from '../remote/undo.ts';
import type { Recorder } from './recorder.ts';
import type { World } from './world.ts';

export type Applied = {
  readonly result: 'done' | 'failed' | 'skipped' | 'lost';
  readonly text: string;
  /** It failed because sudo did not let us. */
  readonly refused?: true;
};

/** Carries out one step: undo first, guard next, then the command; each told before and after in the journal. */
export async function applyStep(world: World, recorder: Recorder, step: Step): Promise<Applied> {
  const host = world.hosts.of(step.node);
  const started = world.clock.now();
  // Ctrl-C lets the step that runs come to its end: nothing is left half done.
  const whole = new AbortController().signal;
  recorder.emit({
    type: 'step-started',
    id: step.id,
    node: step.node,
    title: step.title,
    phase: step.phase,
    kind: step.kind,
    undo: step.undo.kind,
  });
  const applied = await carryOut();
  recorder.emit({
    type: 'step-ended',
    id: step.id,
    node: step.node,
    title: step.title,
    kind: step.kind,
    result: applied.result,
    text: applied.text,
    milliseconds: world.clock.now() - started,
  });
  return applied;

  async function carryOut(): Promise<Applied> {
    if (step.guard) {
      const guard = await host.run(step.guard, { signal: whole });
      if (guard.kind === 'ran' && guard.code !== 0)
        return { result: 'skipped', text: 'it is no longer what was seen; looking again' };
      if (guard.kind !== 'ran') return asApplied(guard);
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
        const why = asApplied(written);
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
    for (;;) {
      const applied = asApplied(await host.run(step.command, { signal: whole }));
      if (applied.result !== 'failed' || step.retry === undefined || world.clock.now() >= until)
        return applied;
      await world.clock.wait(step.retry.everySeconds * 1000, world.signal);
    }
  }
}

/** What a command's end means for its step. */
function asApplied(ran: Ran): Applied {
  switch (ran.kind) {
    case 'ran': {
      const text = lastLines(ran.code === 0 ? ran.stdout : `${ran.stdout}\n${ran.stderr}`);
      return ran.code === 0
        ? { result: 'done', text }
        : { result: 'failed', text: text || `exit ${ran.code}` };
    }
    case 'timeout':
      return { result: 'failed', text: `no end after ${ran.seconds} s` };
    case 'refused':
      return { result: 'failed', text: ran.text, refused: true };
    case 'lost':
      return { result: 'lost', text: ran.failure.sentence };
  }
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join('\n').slice(-600);
}
