import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Event } from '../../src/domain/event.ts';
import { randomOf } from '../../src/lab/random.ts';
import { downAfterEach, type Ended, endOf, type Firstlight, type Lab, of, openLab, owedOn } from './lab.ts';
import { looks } from './processes.ts';

const SEED = process.env['FIRSTLIGHT_KILL_SEED'] ?? 'kill -9';
const MOMENTS = 20;
const AT_ONCE = 2;
/** Engines at a quarter of their time: long enough that each stage is hit. */
const PACE = { FIRSTLIGHT_LAB_SPEED: '4' };
/** Programs of the story's holders, and what the way back of each is called. */
const HOLDERS = { ollama: 'ollama.service', python3: 'comfyui', 'llama-server': 'llama-server' } as const;

/** When firstlight is killed: so far into the story, or so long after its so many-eth event. */
type Moment =
  | { readonly kind: 'time'; readonly part: number }
  | { readonly kind: 'event'; readonly nth: number; readonly after: number };

/** Half of them spread over the time of the story, half over its steps, each at random within its own stretch. */
function moments(turns: number): readonly Moment[] {
  const random = randomOf(SEED);
  const half = MOMENTS / 2;
  return Array.from({ length: MOMENTS }, (_, at): Moment => {
    const part = (Math.floor(at / 2) + random()) / half;
    return at % 2 === 0
      ? { kind: 'time', part }
      : { kind: 'event', nth: Math.floor(part * turns), after: Math.floor(random() * 250) };
  });
}

/** Events at which something changes; stages come by the dozen and change nothing. */
function turnsOf(events: readonly Event[]): readonly Event[] {
  return events.filter((event) => event.type !== 'rank-stage');
}

async function killAt(up: Firstlight, moment: Moment, seconds: number): Promise<void> {
  if (moment.kind === 'time') await Promise.race([wait(moment.part * seconds * 1000), up.ended]);
  else {
    while (up.running && turnsOf(up.events).length <= moment.nth) await wait(5);
    await wait(moment.after);
  }
  up.signal('SIGKILL');
}

/** What must never be seen, at any moment: two engines of one rank, or a holder that is gone with no way back. */
function wrongs(lab: Lab): readonly string[] {
  return looks(lab.folder).flatMap(({ host, engines, shown }) => {
    const twice = engines.length > 1 ? [`${engines.length} engines at once on ${host}`] : [];
    if (host !== 'spark-b') return twice;
    const gone = Object.entries(HOLDERS).filter(
      ([name]) => !shown.some((line) => line.startsWith(`${name} `)),
    );
    const owed = owedOn(lab, host);
    const lost = gone.filter(([, title]) => !owed.some((one) => one.includes(title)));
    return [...twice, ...lost.map(([name]) => `${name} is gone and nothing says how it comes back`)];
  });
}

/** Looks again and again until the work is done; gives all that was wrong. */
async function watching<T>(lab: Lab, seen: Set<string>, work: Promise<T>): Promise<T> {
  let over = false;
  const done = work.finally(() => {
    over = true;
  });
  while (!over) {
    for (const wrong of wrongs(lab)) seen.add(wrong);
    await Promise.race([wait(150), done.catch(() => undefined)]);
  }
  return done;
}

async function containers(lab: Lab): Promise<readonly string[]> {
  const names = await Promise.all(
    lab.story.hosts.map(({ name }) => lab.on(name, "docker ps --format '{{.Names}}'")),
  );
  return names.flatMap(({ stdout }) => stdout.split('\n').filter((name) => name.startsWith('firstlight-')));
}

function told(what: string, { code, events, stderr }: Ended): string {
  const end = of(events, 'run-ended').at(-1);
  return `${what} ended with ${code}: ${end?.outcome} ${end?.why} ${stderr}`;
}

/** One life: up, killed at its moment; up again, to the end; everything given back. Gives what went wrong. */
async function live(
  moment: Moment,
  seconds: number,
  downKilledAfter: number | undefined,
): Promise<readonly string[]> {
  const lab = await openLab('two-sparks', { env: PACE });
  const wrong = new Set<string>();
  try {
    const consent = ['--consent', [...(await lab.holderSteps()).values()].join(',')];
    const words = ['up', 'recipe.yaml', '--json', ...consent];
    const first = lab.start(words);
    await watching(lab, wrong, killAt(first, moment, seconds));
    const before = of((await first.ended).events, 'run-ended')[0]?.outcome;
    const second = await watching(lab, wrong, lab.run(words));
    const outcome = of(second.events, 'run-ended')[0]?.outcome;
    if (second.code !== 0 || (outcome !== 'serving' && outcome !== 'nothing-to-do'))
      wrong.add(told('up', second));
    if (outcome === 'nothing-to-do' && before === undefined && !served(first.events))
      wrong.add('it said nothing-to-do for its own work');
    const running = looks(lab.folder).map(({ engines }) => engines.length);
    if (running.join() !== '1,1') wrong.add(`engines at the end: ${running}`);
    const ours = await containers(lab);
    if ([...ours].sort().join() !== 'firstlight-qwen3.5-122b-r0,firstlight-qwen3.5-122b-r1')
      wrong.add(`containers: ${ours}`);

    if (downKilledAfter !== undefined) {
      const down = lab.start(['down', '--restore', '--json']);
      await Promise.race([wait(downKilledAfter), down.ended]);
      down.signal('SIGKILL');
      await down.ended;
    }
    const last = await lab.run(['down', '--restore', '--json']);
    const ends = of(last.events, 'run-ended').map((end) => end.outcome);
    if (ends.join() !== 'stopped,restored') wrong.add(told('down --restore', last));
    for (const [name] of Object.entries(HOLDERS)) {
      const there = looks(lab.folder).flatMap(({ shown }) =>
        shown.filter((line) => line.startsWith(`${name} `)),
      );
      if (there.length !== 1) wrong.add(`${name} runs ${there.length} times at the end`);
    }
    const left = owedOn(lab, 'spark-b');
    if (left.length > 0) wrong.add(`still owed: ${left}`);
    if (looks(lab.folder).some(({ engines }) => engines.length > 0)) wrong.add('an engine runs after down');
  } catch (error) {
    wrong.add(error instanceof Error ? error.message : String(error));
  } finally {
    await lab.down();
  }
  return [...wrong];
}

/** Whether a run had come so far that the model's answer was proved. */
function served(events: readonly Event[]): boolean {
  return of(events, 'serving').length > 0;
}

describe('firstlight up, killed with -9', () => {
  downAfterEach();

  it(`at ${MOMENTS} moments of the story: up again serves, launches nothing twice, loses no way back`, async ({
    signal,
  }) => {
    const lab = await openLab('two-sparks', { env: PACE });
    const consent = [...(await lab.holderSteps()).values()].join(',');
    const whole = await lab.run(['up', 'recipe.yaml', '--json', '--consent', consent]);
    expect(endOf(whole.events).outcome).toBe('serving');
    await lab.down();

    const turns = turnsOf(whole.events).length;
    console.log(
      `moments from the seed ${JSON.stringify(SEED)}, over ${whole.seconds.toFixed(1)} s and ${turns} events`,
    );
    const failures: string[] = [];
    const left = moments(turns).map((moment, at) => ({ moment, at }));
    const worker = async (): Promise<void> => {
      // A test that ran out of time begins no more lives.
      for (let next = left.shift(); next !== undefined && !signal.aborted; next = left.shift()) {
        const { moment, at } = next;
        const began = Date.now();
        const wrong = await live(moment, whole.seconds, at % 4 === 3 ? 300 + at * 180 : undefined);
        const line = `${at + 1}. ${JSON.stringify(moment)}: ${((Date.now() - began) / 1000).toFixed(0)} s ${wrong.join('; ')}`;
        console.log(line);
        if (wrong.length > 0) failures.push(line);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    expect(failures).toEqual([]);
  }, 1_200_000);
});
