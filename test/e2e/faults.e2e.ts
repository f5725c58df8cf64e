import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import { eventOf, type Json, outcomeOf, type Told, until, WholeFleet } from './whole/fleet.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);
const FULL = process.env['FIRSTLIGHT_E2E_FULL'] === '1';

const STAGES = ['look', 'clear', 'launch', 'weights', 'serving'] as const;
type Stage = (typeof STAGES)[number];

/** What breaks on the worker, and how it is mended. */
type Fault = {
  readonly what: string;
  /** Stages at which it comes without `--full`. */
  readonly stages: readonly Stage[];
  readonly strike: (fleet: WholeFleet) => void;
  readonly mend: (fleet: WholeFleet) => Promise<void> | void;
  /** How it must be named by whoever meets it. */
  readonly named: RegExp;
  /** It ends what runs on the worker, the stopped and those not stopped yet. */
  readonly restarts?: true;
  /** Nobody may live through it in silence. */
  readonly surely?: true;
};

/** What a connection that stands already would not meet. */
const HANG_UP = `for p in $(pgrep -x sshd); do [ "$p" = "$(systemctl show -p MainPID --value ssh)" ] || kill -9 $p; done`;

const answers = (fleet: WholeFleet) => fleet.host('ready', 'b', '60');

const FAULTS: readonly Fault[] = [
  {
    what: 'link to the worker down',
    stages: ['weights'],
    strike: (fleet) => fleet.host('port', 'b', 'mgmt', 'down'),
    mend: (fleet) => void fleet.host('port', 'b', 'mgmt', 'up'),
    named: /spark-b/,
  },
  {
    what: 'fabric link down',
    stages: ['serving'],
    strike: (fleet) => fleet.host('port', 'b', 'fab', 'down'),
    mend: (fleet) => void fleet.host('port', 'b', 'fab', 'up'),
    named: /spark-b/,
  },
  {
    what: 'sshd frozen',
    stages: ['look'],
    strike: (fleet) => fleet.must('b', 'root', 'pkill -STOP -x sshd'),
    mend: (fleet) => void fleet.must('b', 'root', 'pkill -CONT -x sshd'),
    named: /spark-b/,
  },
  {
    what: 'host frozen',
    stages: ['weights'],
    strike: (fleet) => fleet.host('freeze', 'b'),
    mend: (fleet) => void fleet.host('thaw', 'b'),
    named: /spark-b/,
  },
  {
    what: 'power cut',
    stages: ['clear', 'serving'],
    restarts: true,
    strike: (fleet) => fleet.host('power', 'b', 'cut'),
    mend: (fleet) => void fleet.host('power', 'b', 'on'),
    named: /spark-b/,
  },
  {
    what: 'reboot',
    stages: ['weights', 'serving'],
    restarts: true,
    strike: (fleet) => fleet.host('power', 'b', 'reboot'),
    mend: async (fleet) => {
      await new Promise((resolve) => setTimeout(resolve, 2500));
      answers(fleet);
    },
    named: /spark-b/,
  },
  {
    what: 'disk full',
    stages: ['look'],
    strike: (fleet) =>
      fleet.on(
        'b',
        'root',
        'for size in 64k 4k 512; do dd if=/dev/zero bs=$size 2>/dev/null >>/home/filler; done; sync',
      ),
    mend: (fleet) => void fleet.must('b', 'root', 'rm -f /home/filler'),
    named: /spark-b.*(No space|space|disk|full)|(No space|space|disk|full).*spark-b/i,
    surely: true,
  },
  {
    what: 'host key changed',
    stages: ['look'],
    strike: (fleet) => {
      fleet.must(
        'b',
        'root',
        `cd /etc/ssh && mkdir -p /root/keys && cp -p ssh_host_* /root/keys && rm ssh_host_* && ssh-keygen -q -t ed25519 -N "" -f ssh_host_ed25519_key && systemctl restart ssh && ${HANG_UP}`,
      );
    },
    mend: (fleet) => void fleet.must('b', 'root', 'cp -p /root/keys/* /etc/ssh && systemctl restart ssh'),
    named: /spark-b.*key|key.*spark-b/i,
    surely: true,
  },
  {
    what: 'MaxStartups reached',
    stages: ['look'],
    strike: (fleet) =>
      fleet.must(
        'b',
        'root',
        `echo 'MaxStartups 1:100:1' >/etc/ssh/sshd_config.d/few.conf && systemctl restart ssh && ${HANG_UP} && (setsid bash -c 'exec 3<>/dev/tcp/127.0.0.1/22; exec 4<>/dev/tcp/127.0.0.1/22; echo $$ >/run/knocks; sleep 600' </dev/null >/dev/null 2>&1 &) && sleep 0.5`,
      ),
    mend: (fleet) =>
      void fleet.must(
        'b',
        'root',
        'kill "$(cat /run/knocks)"; rm /etc/ssh/sshd_config.d/few.conf; systemctl restart ssh',
      ),
    named: /spark-b/,
  },
];

describe.skipIf(why !== undefined)('faults at the stages of a bring-up, on whole hosts', () => {
  const fleet = new WholeFleet(2);
  const recipe = fleet.file('recipe.yaml');
  const password = ['--sudo-password-file', `spark-b=${fleet.file('password')}`];
  let struck: Fault | undefined;

  beforeAll(async () => {
    fleet.up();
    fleet.writeRecipe({ nodes: ['a', 'b'], speed: 2 });
  });

  afterEach(async () => {
    await mend();
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
    await fault?.mend(fleet);
    await until('spark-b answers again', () => fleet.on('b', 'root', 'true').code === 0, 60);
    if (fault !== undefined) answers(fleet);
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

  /** One bring-up that meets the fault at a stage; the bound is what nothing that loops can keep. */
  async function meet(fault: Fault, stage: Stage): Promise<Told> {
    const strike = (): void => {
      if (struck !== undefined) return;
      struck = fault;
      fault.strike(fleet);
    };
    const consent = stage === 'clear' ? await consentToListener() : [];
    if (stage === 'look') strike();
    const told = await fleet.firstlight(['up', recipe, '--json', ...password, ...consent], {
      seconds: 180,
      onEvent: (event) => {
        if (at(event) === stage) strike();
      },
    });
    if (stage !== 'serving') return told;
    expect(outcomeOf(told), told.text).toBe('serving');
    strike();
    return fleet.firstlight(['status', '--json'], { seconds: 90 });
  }

  for (const fault of FAULTS)
    for (const stage of STAGES) {
      if (!(FULL || fault.stages.includes(stage))) continue;
      test(`${fault.what} at ${stage}: named, nothing lost, nothing loops`, async () => {
        const told = await meet(fault, stage);
        expect(told.overdue, told.text).toBe(false);
        expect(struck, `${stage} was never reached: ${told.text}`).toBe(fault);
        const survived = outcomeOf(told) === 'serving' || (stage === 'serving' && told.code === 0);
        if (fault.surely && stage === 'look') expect(survived, told.text).toBe(false);
        if (!survived) {
          expect(told.text).not.toContain('our mistake');
          expect([1, 2, 3], told.text).toContain(told.code);
          expect(told.text).toMatch(fault.named);
        }
        expect(attempts(told), told.text).toBeLessThanOrEqual(3);
        await mend();
        if (stage === 'clear') {
          // Stopped or not, it is there again once everything was given back.
          const back = await fleet.firstlight(['down', '--restore', '--json', ...password]);
          expect(back.code, back.text).toBe(0);
          if (!listens() && fault.restarts)
            expect(fleet.must('b', 'root', 'ls -A /home/aurora/.firstlight/*/undo 2>/dev/null | wc -l')).toBe(
              '0',
            );
          else expect(listens(), back.text).toBe(true);
          fleet.on('b', 'root', "pkill -f '[l]istener.mjs'");
        }
        const again = await fleet.firstlight(['up', recipe, '--json', ...password], { seconds: 180 });
        expect(['serving', 'nothing-to-do'], again.text).toContain(outcomeOf(again));
        tell({
          what: `${fault.what} at ${stage}`,
          seen: survived
            ? 'lived through'
            : String(eventOf(told, 'finding')?.['cause'] ?? outcomeOf(told) ?? 'status'),
          named: String(
            eventOf(told, 'finding')?.['title'] ?? eventOf(told, 'run-ended')?.['why'] ?? 'status',
          ),
          done: `up again: ${String(outcomeOf(again))}`,
          seconds: told.seconds,
        });
      }, 480_000);
    }
});

const LISTENER = '/srv/bin/node /srv/listener.mjs';

/** The stage that this event begins, if it begins one. */
function at(event: Json): Stage | undefined {
  if (event['type'] === 'step-started' && event['phase'] === 'clear' && event['node'] === 'spark-b')
    return 'clear';
  if (event['type'] === 'rank-started' && event['role'] === 'worker') return 'launch';
  if (event['type'] === 'rank-stage' && event['stage'] === 'weights') return 'weights';
  return undefined;
}

function attempts(told: Told): number {
  return Math.max(0, ...told.events.map((event) => Number(event['attempt'] ?? 0)));
}
