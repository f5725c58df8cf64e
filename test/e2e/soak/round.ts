import { pick } from '../../../src/lab/random.ts';
import { FAULTS, type Fault } from '../whole/faults.ts';
import {
  eventOf,
  type Json,
  type Letter,
  outcomeOf,
  type Told,
  until,
  type WholeFleet,
} from '../whole/fleet.ts';
import { causeOf, type Struck, wrongEnd } from '../whole/judge.ts';
import { BYSTANDERS, type Bystander, deedsAgainst, identityOf } from './bystanders.ts';
import { SQUATS, type Squatter, squat } from './squatter.ts';

export type Round = {
  readonly number: number;
  readonly hosts: readonly Letter[];
  readonly befell: string;
  readonly outcome: string;
  readonly named: string;
  readonly seconds: number;
  /** What must not have been; none in a good round. */
  readonly violations: readonly string[];
  /** All that firstlight told in it. */
  readonly told: readonly Told[];
};

export type Soak = {
  readonly fleet: WholeFleet;
  readonly random: () => number;
  /** Bytes to keep free by number of hosts, so that a squatter's memory is missing and nobody's else is. */
  readonly reserve: ReadonlyMap<number, number>;
  /** Who each bystander is now. */
  readonly identities: Map<Bystander, string | undefined>;
  /** Hosts on which the round before left a job of ours. */
  left: readonly Letter[];
};

type Blow = Struck & {
  /** Seconds after the bring-up began, 0 before it, or once it serves. */
  readonly at: number | 'serving';
  /** Seconds that it lasts; undefined: until the bring-up has ended. */
  readonly lasts: number | undefined;
};

const SIZES = [2, 2, 4, 8] as const;
const KINDS: readonly Fault[] = Object.values(FAULTS);
const UP_SECONDS = 240;

/** One bring-up with whatever befalls it; then everything is mended, and judged by what the hosts themselves say. */
export async function playRound(soak: Soak, number: number): Promise<Round> {
  const { fleet, random } = soak;
  const began = Date.now();
  const hosts = soak.left.length > 0 ? soak.left : chooseHosts(random);
  const blows = chooseBlows(random, hosts);
  const comes = random() < 0.3 && soak.left.length === 0;
  const violations: string[] = [];
  const told: Told[] = [];
  const kept: Told[] = [];
  fleet.writeRecipe({ nodes: hosts, speed: 4, reserve: soak.reserve.get(hosts.length) ?? 0 });
  const squatter = comes ? squat(fleet, pick(random, SQUATS), hosts[0] ?? 'a', number) : undefined;
  let allowed: readonly string[] = [];
  try {
    if (squatter !== undefined) {
      const asked = await bringUp(fleet, []);
      told.push(asked);
      violations.push(...askedRightly(fleet, squatter, asked));
      if (random() < 0.6) allowed = askedIds(asked);
    }
    if (squatter === undefined || allowed.length > 0) told.push(...(await underBlows(soak, blows, allowed)));
    const last = told.at(-1);
    if (squatter === undefined || allowed.length > 0)
      violations.push(
        ...told.slice(squatter === undefined ? 0 : 1).flatMap((one) => wrongEnd(one, blows) ?? []),
      );
    if (last !== undefined && serves(last) && blows.length === 0) violations.push(...silent(fleet, hosts));
    violations.push(...(await touched(soak, blows, began / 1000 - 1)));
    const ends = allowed.length > 0 || blows.length > 0 || random() < 0.5;
    if (ends)
      violations.push(...(await takeDown(fleet, blows, allowed.length > 0 ? squatter : undefined, kept)));
    soak.left = ends || last === undefined || !serves(last) ? [] : hosts;
    if (!ends && soak.left.length === 0) violations.push(...(await takeDown(fleet, blows, undefined, kept)));
  } catch (error) {
    violations.push(`the round broke off: ${error instanceof Error ? error.message : String(error)}`);
    soak.left = [];
  } finally {
    squatter?.gone(fleet);
  }
  return {
    number,
    hosts,
    befell:
      [...blows.map(wordsOf), ...(squatter ? [`${squatter.what} in the way`] : [])].join('; ') || 'nothing',
    outcome: told.map((one) => String(outcomeOf(one))).join(', '),
    named: told
      .map((one) => nameOf(one))
      .filter(Boolean)
      .join(', '),
    seconds: (Date.now() - began) / 1000,
    told: [...told, ...kept],
    violations: violations.map((text) => (text.length > 2000 ? `${text.slice(0, 2000)} …` : text)),
  };
}

function chooseHosts(random: () => number): readonly Letter[] {
  const all: Letter[] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const size = pick(random, SIZES);
  const chosen: Letter[] = [];
  while (chosen.length < size) chosen.push(...all.splice(Math.floor(random() * all.length), 1));
  return chosen;
}

/** None, one or two, each on a host of its own; mostly on hosts of the recipe. */
function chooseBlows(random: () => number, hosts: readonly Letter[]): readonly Blow[] {
  const count = [0, 0, 0, 1, 1, 1, 1, 1, 2, 2][Math.floor(random() * 10)] ?? 0;
  const blows: Blow[] = [];
  for (let tries = 0; blows.length < count && tries < 50; tries += 1) {
    const fault = KINDS[Math.floor(random() * KINDS.length)];
    const among = random() < 0.8 ? hosts : (['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const);
    const host = among[Math.floor(random() * among.length)];
    const when = random();
    const long = random();
    if (fault === undefined || host === undefined || blows.some((blow) => blow.host === host)) continue;
    if (fault.hosts !== undefined && !fault.hosts.includes(host)) continue;
    const at = when < 0.2 ? 0 : when < 0.8 ? when * 12 : 'serving';
    const brief = long < 0.5 || (fault.brief === true && at !== 'serving');
    const lasts = brief ? 1 + long * 30 : long < 0.65 ? 75 : undefined;
    blows.push({ fault, host, at, lasts });
  }
  return blows;
}

function wordsOf({ fault, host, at, lasts }: Blow): string {
  const when = at === 'serving' ? 'while serving' : at === 0 ? 'before' : `at ${at.toFixed(1)} s`;
  return `${fault.what} on ${host} ${when}${lasts === undefined ? '' : ` for ${lasts.toFixed(0)} s`}`;
}

function bringUp(fleet: WholeFleet, consent: readonly string[]): Promise<Told> {
  return fleet.firstlight(
    [
      ...[
        'up',
        fleet.file('recipe.yaml'),
        '--json',
        '--sudo-password-file',
        `spark-b=${fleet.file('password')}`,
      ],
      ...(consent.length > 0 ? ['--consent', consent.join(',')] : []),
    ],
    { seconds: UP_SECONDS },
  );
}

/** A bring-up, and another one where something befalls what serves; all is mended in the end. */
async function underBlows(
  soak: Soak,
  blows: readonly Blow[],
  consent: readonly string[],
): Promise<readonly Told[]> {
  const { fleet } = soak;
  const open = new Map<Blow, NodeJS.Timeout | undefined>();
  const timers: NodeJS.Timeout[] = [];
  const mends: Promise<void>[] = [];
  const mend = (blow: Blow): void => {
    if (!open.has(blow)) return;
    clearTimeout(open.get(blow));
    open.delete(blow);
    mends.push(
      Promise.resolve(blow.fault.mend(fleet, blow.host)).then(
        () => void fleet.host('ready', blow.host, '60'),
      ),
    );
  };
  const strike = (blow: Blow): void => {
    blow.fault.strike(fleet, blow.host);
    open.set(blow, blow.lasts === undefined ? undefined : setTimeout(() => mend(blow), blow.lasts * 1000));
  };
  try {
    for (const blow of blows) {
      if (blow.at === 0) strike(blow);
      else if (blow.at !== 'serving') timers.push(setTimeout(() => strike(blow), blow.at * 1000));
    }
    const first = await bringUp(fleet, consent);
    for (const timer of timers) clearTimeout(timer);
    const late = blows.filter((blow) => blow.at === 'serving');
    if (late.length === 0 || !serves(first)) return [first];
    for (const blow of late) strike(blow);
    return [first, await bringUp(fleet, consent)];
  } finally {
    for (const timer of timers) clearTimeout(timer);
    for (const blow of [...open.keys()]) mend(blow);
    await Promise.all(mends);
  }
}

function serves(told: Told): boolean {
  return ['serving', 'nothing-to-do'].includes(String(outcomeOf(told)));
}

function nameOf(told: Told): string {
  const cause = causeOf(told);
  return cause === undefined ? '' : `${cause} on ${String(eventOf(told, 'finding')?.['node'])}`;
}

function stepsOf(told: Told): readonly Json[] {
  const steps = eventOf(told, 'consent-asked')?.['steps'];
  return Array.isArray(steps) ? steps : [];
}

function askedIds(told: Told): readonly string[] {
  return stepsOf(told).map((step) => String(step['id']));
}

/** Without consent it must be asked for by its name, and run on. */
function askedRightly(fleet: WholeFleet, squatter: Squatter, told: Told): readonly string[] {
  const outcome = String(outcomeOf(told));
  if (outcome !== 'consent-needed') return [`${squatter.what} in the way: it ended ${outcome}: ${told.text}`];
  return [
    ...(identityOf(fleet, squatter) === undefined ? [`${squatter.name} was stopped without consent`] : []),
    ...(stepsOf(told).some((step) => step['node'] === `spark-${squatter.host}`)
      ? []
      : [`${squatter.name} was not asked for: ${told.text}`]),
  ];
}

/** What was said to serve must answer on the head, asked past firstlight. */
function silent(fleet: WholeFleet, hosts: readonly Letter[]): readonly string[] {
  const { stdout } = fleet.on(
    hosts[0] ?? 'a',
    'root',
    `/srv/bin/node -e 'fetch("http://127.0.0.1:30000/v1/models").then((r) => console.log(r.status), (e) => console.log(String(e)))'`,
  );
  return stdout.trim() === '200' ? [] : [`it was said to serve, and its head says ${stdout.trim()}`];
}

/** Whose work is not what it was, although nothing of this round ends it: by boot, pid and start, and by journals. */
async function touched(soak: Soak, blows: readonly Blow[], since: number): Promise<readonly string[]> {
  const { fleet, identities } = soak;
  const wrong: string[] = [];
  for (const bystander of BYSTANDERS) {
    const { host, name, keptBy } = bystander;
    const ended = blows.some(
      (blow) =>
        blow.host === host &&
        (blow.fault.ends === 'host' || (blow.fault.ends === 'docker' && keptBy === 'docker')),
    );
    let now = identityOf(fleet, bystander);
    if (ended && now === undefined) {
      if (keptBy === 'nobody') bystander.start(fleet);
      await until(`${name} is back on spark-${host}`, () => identityOf(fleet, bystander) !== undefined, 40);
      now = identityOf(fleet, bystander);
    }
    if (!ended && now !== identities.get(bystander))
      wrong.push(`${name} on spark-${host} was ${identities.get(bystander)} and is ${now ?? 'gone'}`);
    const before = identities.get(bystander);
    identities.set(bystander, now);
    wrong.push(
      ...deedsAgainst(fleet, bystander, before, since, ended).map(
        (deed) => `spark-${host}'s journal, of ${name}: ${deed}`,
      ),
    );
  }
  return wrong;
}

/** After `down` nothing of ours runs and no lock is held; who was stopped under consent runs again. */
async function takeDown(
  fleet: WholeFleet,
  blows: readonly Blow[],
  stopped: Squatter | undefined,
  kept: Told[],
): Promise<readonly string[]> {
  const down = await fleet.firstlight([
    ...['down', '--restore', '--json', '--sudo-password-file', `spark-b=${fleet.file('password')}`],
  ]);
  kept.push(down);
  const wrong = down.code === 0 ? [] : [`down ended with ${down.code}: ${down.text}`];
  for (const host of fleet.letters) {
    const { stdout } = fleet.on(
      host,
      'root',
      "pgrep -fa '[e]ngine/main.js'; ls -d /tmp/firstlight.lock 2>/dev/null; true",
    );
    if (stdout.trim() !== '') wrong.push(`left on spark-${host}: ${stdout.trim()}`);
  }
  const ended =
    stopped !== undefined && blows.some(({ fault, host }) => host === stopped.host && fault.ends === 'host');
  if (stopped !== undefined && !ended) {
    const back = await until('it is back', () => identityOf(fleet, stopped) !== undefined, 40).then(
      () => true,
      () => false,
    );
    if (!back) {
      const seen = fleet.on(
        stopped.host,
        'root',
        `ls -R /home/aurora/.firstlight/*/undo; journalctl -q -n 20 --no-pager`,
      );
      wrong.push(
        `${stopped.name} was not given back: ${down.text} ${seen.code} ${seen.stdout}${seen.stderr}`,
      );
    }
  }
  return wrong;
}
