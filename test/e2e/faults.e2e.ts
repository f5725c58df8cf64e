import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import { FAULTS, type Fault } from './whole/faults.ts';
import { eventOf, type Json, outcomeOf, type Told, until, WholeFleet } from './whole/fleet.ts';
import { causeOf, wrongEnd } from './whole/judge.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);
const FULL = process.env['FIRSTLIGHT_E2E_FULL'] === '1';

/** How long a fault lasts that ranks wait out. */
const BRIEF_MS = 15_000;

const STAGES = ['look', 'clear', 'launch', 'weights', 'serving'] as const;
type Stage = (typeof STAGES)[number];

/** Stages at which each comes without `--full`. */
const USUAL: readonly (readonly [Fault, readonly Stage[]])[] = [
  [FAULTS.linkDown, ['weights']],
  [FAULTS.fabricDown, ['serving']],
  [FAULTS.sshFrozen, ['look']],
  [FAULTS.hostFrozen, ['serving']],
  [FAULTS.powerCut, ['clear', 'serving']],
  [FAULTS.reboot, ['weights']],
  [FAULTS.diskFull, ['look']],
  [FAULTS.hostKeyChanged, ['look']],
  [FAULTS.maxStartups, ['look']],
];

describe.skipIf(why !== undefined)('faults at the stages of a bring-up, on whole hosts', () => {
  const fleet = new WholeFleet(2);
  const recipe = fleet.file('recipe.yaml');
  const password = ['--sudo-password-file', `spark-b=${fleet.file('password')}`];
  let struck: Fault | undefined;

  beforeAll(async () => {
    fleet.up();
    fleet.writeRecipe({ nodes: ['a', 'b'], speed: 2 });
    // Hosts that have answered before: of others nobody can say whether the address or the host is wrong.
    const known = await fleet.firstlight(['up', recipe, '--json', ...password], { seconds: 120 });
    expect(outcomeOf(known), known.text).toBe('serving');
    await fleet.firstlight(['down', '--json', ...password]);
  });

  afterEach(async () => {
    await mend();
    fleet.on('b', 'root', "pkill -f '[l]istener.mjs'");
    const down = await fleet.firstlight(['down', '--json', ...password]);
    expect(down.code, down.text).toBe(0);
    for (const host of ['a', 'b'] as const) {
      const left = fleet.must(host, 'root', "pgrep -f '[e]ngine/main.js' | wc -l");
      expect(left, `ranks left on spark-${host}`).toBe('0');
      expect(
        fleet.must(host, 'root', 'ls -d /tmp/firstlight.lock 2>/dev/null | wc -l'),
        `lock on spark-${host}`,
      ).toBe('0');
    }
  }, 240_000);

  afterAll(() => fleet.down());

  async function mend(): Promise<void> {
    const fault = struck;
    struck = undefined;
    await fault?.mend(fleet, 'b');
    await until('spark-b answers again', () => fleet.on('b', 'root', 'true').code === 0, 120);
    if (fault !== undefined) fleet.host('ready', 'b', '120');
  }

  /** Somebody on the worker listens where the rank wants to: consent to stop them. */
  async function consentToListener(): Promise<readonly string[]> {
    fleet.must('b', 'aurora', `cd /tmp && setsid ${LISTENER} </dev/null >/dev/null 2>&1 &`);
    await until('somebody listens', () => listens());
    const asked = await fleet.firstlight(['up', recipe, '--json']);
    const steps = eventOf(asked, 'consent-asked')?.['steps'];
    if (!Array.isArray(steps)) throw new Error(`nothing was asked: ${asked.text}`);
    return ['--consent', steps.map((step: Json) => step['id']).join(',')];
  }

  function listens(): boolean {
    return fleet.on('b', 'root', 'ss -ltnH "sport = :30000"').stdout.includes(':30000');
  }

  /** One bring-up that meets the fault at a stage; one that serves meets it as it is looked at, and brought up again. */
  async function meet(fault: Fault, stage: Stage): Promise<Met> {
    const strike = (): void => {
      if (struck !== undefined) return;
      struck = fault;
      fault.strike(fleet, 'b');
      if (fault.brief && stage !== 'serving')
        setTimeout(() => void Promise.resolve(fault.mend(fleet, 'b')), BRIEF_MS).unref();
    };
    const consent = stage === 'clear' ? await consentToListener() : [];
    if (stage === 'look') strike();
    const told = await fleet.firstlight(['up', recipe, '--json', ...password, ...consent], {
      seconds: 240,
      onEvent: (event) => {
        if (at(event) === stage) strike();
      },
    });
    if (stage !== 'serving') return { told };
    expect(outcomeOf(told), told.text).toBe('serving');
    strike();
    const status = await fleet.firstlight(['status', '--json'], { seconds: 180 });
    return { told: await fleet.firstlight(['up', recipe, '--json', ...password], { seconds: 240 }), status };
  }

  for (const [fault, usual] of USUAL)
    for (const stage of STAGES) {
      if (!(FULL || usual.includes(stage))) continue;
      test(`${fault.what} at ${stage}: named, nothing lost, nothing loops`, async () => {
        const { told, status } = await meet(fault, stage);
        expect(struck, `${stage} was never reached: ${told.text}`).toBe(fault);
        expect(wrongEnd(told, [{ fault, host: 'b' }]), told.text).toBeUndefined();
        const survived = ['serving', 'nothing-to-do'].includes(String(outcomeOf(told)));
        if (fault.surely && stage === 'look') expect(survived, told.text).toBe(false);
        // Whoever looks at what served either sees that it still does, or which host it is.
        if (status !== undefined && status.code !== 0) expect(status.text).toContain('spark-b');
        await mend();
        if (stage === 'clear') {
          // Stopped or not, it is there again once everything was given back.
          const back = await fleet.firstlight(['down', '--restore', '--json', ...password]);
          expect(back.code, back.text).toBe(0);
          if (!listens() && fault.ends === 'host')
            expect(
              fleet.must('b', 'root', 'grep -l pending /home/aurora/.firstlight/*/undo/*/state | wc -l'),
            ).toBe('0');
          else await until(`somebody listens again: ${back.text}`, listens);
          fleet.on('b', 'root', "pkill -f '[l]istener.mjs'");
        }
        const again = await fleet.firstlight(['up', recipe, '--json', ...password], { seconds: 180 });
        expect(['serving', 'nothing-to-do'], again.text).toContain(outcomeOf(again));
        tell({
          what: `${fault.what} at ${stage}`,
          seen: survived ? 'lived through' : String(causeOf(told)),
          named: survived ? '' : String(eventOf(told, 'finding')?.['title']),
          done: `up again: ${String(outcomeOf(again))}`,
          seconds: told.seconds,
        });
      }, 480_000);
    }
});

type Met = { readonly told: Told /** While it serves: what `status` says of it. */; readonly status?: Told };

const LISTENER = '/srv/bin/node /srv/listener.mjs';

/** The stage that this event begins, if it begins one. */
function at(event: Json): Stage | undefined {
  if (event['type'] === 'step-started' && event['phase'] === 'clear' && event['node'] === 'spark-b')
    return 'clear';
  if (event['type'] === 'rank-started' && event['role'] === 'worker') return 'launch';
  if (event['type'] === 'rank-stage' && event['stage'] === 'weights') return 'weights';
  return undefined;
}
