import type { Ran } from '../domain/command.ts';
import type { EventBody } from '../domain/event.ts';
import type { Recorder } from './recorder.ts';
import type { World } from './world.ts';

type Started = Extract<EventBody, { type: 'step-started' }>;
type Ended = Extract<EventBody, { type: 'step-ended' }>;

/** How a step ended, with what its command said. */
export type StepEnd = Pick<Ended, 'result' | 'text'>;

/** Does one thing on a node, told in the journal before and after. */
export async function tellStep<End extends StepEnd>(
  { clock }: Pick<World, 'clock'>,
  recorder: Recorder,
  step: Omit<Started, 'type'>,
  work: () => Promise<End>,
): Promise<End> {
  const { id, node, title, kind } = step;
  const started = clock.now();
  recorder.emit({ type: 'step-started', ...step });
  const end = await work();
  const { result, text } = end;
  recorder.emit({
    type: 'step-ended',
    id,
    node,
    title,
    kind,
    result,
    text,
    milliseconds: clock.now() - started,
  });
  return end;
}

/** What a command's end means for its step. `refused` where sudo did not let us. */
export function endOf(ran: Ran): {
  readonly result: 'done' | 'failed' | 'lost';
  readonly text: string;
  readonly refused?: true;
} {
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
