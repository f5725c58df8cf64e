import type { RunState } from '../../domain/run-state.ts';
import { logWindow } from '../../operations/logs/log-window.ts';
import type { Call } from './call.ts';
import type { Channel } from './event-stream.ts';
import { Refusal } from './problem.ts';

/** What a stream may carry beside the events. */
export const CHANNELS = ['ledger', 'log', 'metrics'] as const;

const LEDGER_MILLISECONDS = 5000;
/** While ranks load, when a person wants to see memory go. */
const LOADING_MILLISECONDS = 1000;
/** A look is at most this part of the time, so that the nodes work for the run and not for who watches it. */
const SHARE_OF_LOOKS = 0.2;
const LOG_MILLISECONDS = 100;
const METRICS_MILLISECONDS = 5000;
const RUNS_MILLISECONDS = 500;
const TAIL_ROWS = 200;

/** The channels that a stream asked for by name; with any of them it also tells of newer runs. */
export function channelsOf(
  names: string | undefined,
  run: string,
  { desk, world }: Call,
): readonly Channel[] {
  if (names === undefined || names === '') return [];
  const wanted = new Set(names.split(','));
  const strange = [...wanted].find((name) => !CHANNELS.some((known) => known === name));
  if (strange !== undefined)
    throw new Refusal(
      422,
      'bad-input',
      `?with: there is no channel ${strange}`,
      `there are ${CHANNELS.join(', ')}`,
    );
  const channels = [
    polled('runs', RUNS_MILLISECONDS, async (tell) => {
      const newest = world.journal.latest();
      if (newest !== undefined) tell(`{"newest":${JSON.stringify(newest)}}`);
    }),
  ];
  if (wanted.has('ledger'))
    channels.push(
      polled('ledger', LOADING_MILLISECONDS, async (tell) => {
        const pause = ledgerPause(await desk.states.of(run), desk.looks.last()?.milliseconds ?? 0);
        const looked =
          pause < LEDGER_MILLISECONDS
            ? await desk.looks.freshMemory(pause - 100)
            : await desk.looks.fresh(LEDGER_MILLISECONDS - 500);
        tell(desk.scrub(JSON.stringify({ at: new Date(looked.at).toISOString(), facts: looked.facts })));
      }),
    );
  if (wanted.has('metrics'))
    channels.push(
      polled('metrics', METRICS_MILLISECONDS, async (tell) => {
        await desk.engine.fresh(METRICS_MILLISECONDS - 500);
        const newest = desk.engine.all().at(-1);
        if (newest !== undefined) tell(JSON.stringify(newest));
      }),
    );
  if (wanted.has('log'))
    channels.push(
      polled('log', LOG_MILLISECONDS, async (tell) => {
        const state = await desk.states.of(run);
        if (state === undefined || state.attempts.length === 0) return;
        const window = await logWindow(world, state, TAIL);
        tell(desk.scrub(JSON.stringify(window)));
      }),
    );
  return channels;
}

/**
 * So many milliseconds from one look at memory to the next: a second while ranks of this run load, longer where a look
 * takes long, else five.
 */
export function ledgerPause(state: RunState | undefined, lookMilliseconds: number): number {
  const loads =
    state !== undefined &&
    state.ended === undefined &&
    (state.attempts.at(-1)?.ranks ?? []).some(
      ({ ended, stage }) => ended === undefined && stage !== 'serving',
    );
  const wanted = loads ? LOADING_MILLISECONDS : LEDGER_MILLISECONDS;
  return Math.min(LEDGER_MILLISECONDS, Math.max(wanted, lookMilliseconds / SHARE_OF_LOOKS));
}

const TAIL = {
  from: undefined,
  count: TAIL_ROWS,
  ranks: [],
  attempt: undefined,
  stage: undefined,
  level: undefined,
  q: '',
  fold: true,
  open: [],
} as const;

/** Looks for something new so often, while the stream is open; the same as before is nothing new. */
function polled(
  name: string,
  everyMilliseconds: number,
  see: (tell: (data: string) => void) => Promise<void>,
): Channel {
  let number = 0;
  let data: string | undefined;
  return {
    name,
    newest: () => (data === undefined ? undefined : { number, data: () => data ?? 'null' }),
    listen(wake) {
      let busy = false;
      const turn = (): void => {
        if (busy) return;
        busy = true;
        see((fresh) => {
          if (fresh === data) return;
          data = fresh;
          number += 1;
          wake();
        })
          // Hosts out of reach, or a cluster file that is being written: the next turn sees.
          .catch(() => undefined)
          .finally(() => {
            busy = false;
          });
      };
      const timer = setInterval(turn, everyMilliseconds);
      turn();
      return () => clearInterval(timer);
    },
  };
}
