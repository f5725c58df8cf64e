import { nowLine } from '../../domain/now-line.ts';
import { blank, fold, type RunState } from '../../domain/run-state.ts';
import type { Begun } from '../../operations/begin.ts';
import type { Answer } from '../../operations/operation.ts';
import type { World } from '../../operations/world.ts';
import type { WorkInHand } from './client.ts';

const LOOK_MILLISECONDS = 500;
const SIGN_MILLISECONDS = 10_000;

export type Followed = {
  /** Undefined where it ended before it opened a run. */
  readonly run: string | undefined;
  readonly state: RunState;
  /** The last thing that a person was asked. */
  readonly asked: RunState['asked'];
  /** Undefined while it goes on. */
  readonly answer: Answer | undefined;
};

/**
 * Tells how a run goes until it ends, or until so many seconds have passed: it then goes on, and `answer` is undefined.
 * Each new sentence is told, and the same one again as a sign of life.
 */
export async function followRun(
  world: World,
  begun: Begun,
  options: {
    readonly work: WorkInHand;
    readonly seconds: number;
    readonly tell: (sentence: string) => void;
    /** Called with each look at its state. */
    readonly saw?: (state: RunState) => void;
  },
): Promise<Followed> {
  options.work.add(begun.done);
  const run = await begun.run;
  if (run === undefined) return { run, state: blank, asked: undefined, answer: await begun.done };
  let state = blank;
  let asked: RunState['asked'];
  let told = '';
  let toldAt = 0;
  const look = (): void => {
    for (const event of world.journal.read(run, state.lastSeq)) {
      state = fold(state, event);
      asked = state.asked ?? asked;
    }
    options.saw?.(state);
    const now = world.clock.now();
    const { glyph, sentence, next } = nowLine(state, now);
    const text = [`${glyph} ${sentence}`.trim(), next].filter((part) => part !== '').join('; ');
    if (text === told && now - toldAt < SIGN_MILLISECONDS) return;
    told = text;
    toldAt = now;
    options.tell(`run ${run}: ${text}`);
  };
  const timer = setInterval(look, LOOK_MILLISECONDS);
  const late = new AbortController();
  try {
    const over = world.clock.wait(options.seconds * 1000, late.signal).then(
      () => undefined,
      () => undefined, // it ended before
    );
    const answer = await Promise.race([begun.done, over]);
    look();
    return { run, state, asked, answer };
  } finally {
    late.abort();
    clearInterval(timer);
  }
}
