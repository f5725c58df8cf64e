import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import { type Bystander, deedsAgainst, identityOf, loose, unit } from './soak/bystanders.ts';
import { BROKEN, type Broken } from './whole/causes.ts';
import { FAULTS } from './whole/faults.ts';
import { eventOf, GIB, type Json, outcomeOf, type Told, until, WholeFleet } from './whole/fleet.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);

/** What the hosts of the suite have: little enough that one process can hold nearly all of it. */
const MEMORY = 2 * GIB;

/** Somebody else's work, of several users and as a unit: none of it is ever in the way. */
const OTHERS: readonly Bystander[] = [
  ...(['a', 'b'] as const).map(
    (host): Bystander => ({
      name: 'own-job',
      host,
      what: 'process of the same user',
      handle: 'own-job',
      keptBy: 'nobody',
      start: (fleet) => void fleet.must(host, 'aurora', loose('own-job')),
    }),
  ),
  {
    name: 'embedder',
    host: 'a',
    what: 'system unit',
    handle: 'embedder.service',
    keptBy: 'systemd',
    start: (fleet) => void fleet.must('a', 'root', unit('embedder', 'User=lab\\n')),
  },
  {
    name: 'night-job',
    host: 'b',
    what: 'root process',
    handle: 'night-job',
    keptBy: 'nobody',
    start: (fleet) => void fleet.must('b', 'root', loose('night-job')),
  },
];

/** An engine begins on a host when this is not there. */
const HELD = '/tmp/held';
const HOLDABLE = `  in: process
  command: {sglang: [/bin/sh, -c, 'while [ -e ${HELD} ]; do sleep 0.05; done; exec "$@"', sh, /srv/bin/node, /srv/dist/lab/engine/main.js, sglang]}`;

describe.skipIf(why !== undefined)('causes broken for real on whole hosts', () => {
  const fleet = new WholeFleet(2);
  const recipe = fleet.file('recipe.yaml');
  const password = ['--sudo-password-file', `spark-b=${fleet.file('password')}`];
  let struck: Broken | undefined;
  /** Who each of the others is, from the start to the end. */
  let known: readonly (string | undefined)[] = [];

  beforeAll(async () => {
    fleet.up();
    for (const host of fleet.letters) {
      fleet.host('limit', host, String(MEMORY));
      fleet.must(host, 'root', 'mkdir -p /var/models && cp -a --sparse=always /srv/model /var/models/tiny');
    }
    for (const other of OTHERS) other.start(fleet);
    await until('the others run', () => {
      known = OTHERS.map((other) => identityOf(fleet, other));
      return !known.includes(undefined);
    });
  });

  afterEach(async () => {
    if (struck === undefined) return;
    await mend();
    await fleet.firstlight(['down', '--json', ...password]);
  });

  afterAll(() => fleet.down());

  async function mend(): Promise<void> {
    const broken = struck;
    struck = undefined;
    release(broken);
    await broken?.mend(fleet);
  }

  function release(broken: Broken | undefined): void {
    if (broken?.holds !== undefined) fleet.must(broken.holds, 'root', `rm -f ${HELD}`);
  }

  /** One run over the broken hosts; whoever is asked for consent gives it to what the case names, and to nothing else. */
  function bringUp(broken: Broken, strike: () => void): Promise<Told> {
    let done = broken.at === undefined;
    return fleet.firstlight(['up', recipe, '--json', '--anew', '--wait', ...password], {
      seconds: 150,
      onEvent: (event) => {
        if (!done && broken.at?.(event) === true) {
          done = true;
          strike();
        }
        if (event['type'] === 'consent-asked') void answer(broken, event);
      },
    });
  }

  async function answer({ asks }: Broken, event: Json): Promise<void> {
    const steps: readonly Json[] = Array.isArray(event['steps']) ? event['steps'] : [];
    const ids = steps
      .filter((step) => asks?.test(JSON.stringify(step['target'])) === true)
      .map((step) => String(step['id']));
    await fleet.firstlight([
      'consent',
      String(event['run']),
      ...ids,
      ...(ids.length === steps.length ? [] : ['--refuse']),
    ]);
  }

  for (const broken of BROKEN) {
    test(`${broken.what}: named, on its node, shown and ended`, async () => {
      const since = Date.now() / 1000;
      const held = broken.holds === undefined ? {} : { run: HOLDABLE };
      fleet.writeRecipe({ nodes: ['a', 'b'], name: broken.name, ...held, ...broken.recipe });
      if (broken.holds !== undefined) fleet.must(broken.holds, 'root', `touch ${HELD}`);
      let met = false;
      const strike = (): void => {
        met = true;
        struck = broken;
        broken.strike(fleet);
        release(broken);
      };
      if (broken.at === undefined) strike();
      const told = await bringUp(broken, strike);
      expect(met, `it never broke: ${told.text}`).toBe(true);

      const finding = told.events.find((event) => event['type'] === 'finding' && event['final'] === true);
      expect(finding, told.text).toMatchObject({ cause: broken.cause, family: broken.family });
      expect(finding?.['node'], told.text).toBe(broken.node && `spark-${broken.node}`);
      shown(broken, told, finding ?? {});

      let done: string;
      if ('remedy' in broken.cure) {
        const { remedy, edits } = broken.cure;
        const { cause } = broken;
        expect(eventOf(told, 'remedy-applied'), told.text).toMatchObject({
          remedy,
          cause,
          edits: edits.map((path) => ({ path })),
        });
        expect(eventOf(told, 'remedy-proved'), told.text).toMatchObject({ remedy, cause });
        expect(outcomeOf(told), told.text).toBe('serving');
        expect(launchesOf(told), told.text).toBeLessThan(3);
        done = `${remedy}, proved; serving`;
      } else {
        const { advice } = broken.cure;
        const said: unknown = finding?.['advice'];
        expect(Array.isArray(said) ? said : [], told.text).toContainEqual(expect.stringMatching(advice));
        expect(outcomeOf(told), told.text).toBe('not-serving');
        expect(eventOf(told, 'remedy-applied'), told.text).toBeUndefined();
        await mend();
        const again = await fleet.firstlight(['up', recipe, '--json', ...password]);
        expect(outcomeOf(again), again.text).toBe('serving');
        done = 'advice; followed, it serves';
      }
      const down = await fleet.firstlight(['down', '--restore', '--json', ...password]);
      expect(down.code, down.text).toBe(0);
      await mend();
      untouched(broken, told, since);
      tell({
        what: broken.what,
        seen: `${broken.cause} (${broken.family})`,
        named: String(finding?.['title']),
        done,
        seconds: told.seconds,
      });
    }, 240_000);
  }

  test('sshd that allows one session a login is lived through: each session has a login of its own then', async () => {
    fleet.writeRecipe({ nodes: ['a', 'b'], name: 'sessions' });
    FAULTS.maxSessions.strike(fleet, 'b');
    const told = await fleet.firstlight(['up', recipe, '--json', ...password], { seconds: 90 });
    const status = await fleet.firstlight(['status', '--json']);
    const down = await fleet.firstlight(['down', '--json', ...password]);
    FAULTS.maxSessions.mend(fleet, 'b');
    expect(outcomeOf(told), told.text).toBe('serving');
    expect(eventOf(told, 'finding'), told.text).toBeUndefined();
    expect([status.code, down.code], status.text + down.text).toEqual([0, 0]);
    tell({
      what: 'sshd allows one session (MaxSessions)',
      seen: 'lived through',
      named: '',
      done: 'serving',
      seconds: told.seconds,
    });
  });

  /** A quote stands in that rank's own log, letter for letter, at its line; a fact is what the look itself saw. */
  function shown({ shows, name, node }: Broken, told: Told, finding: Json): void {
    if (!('line' in shows)) {
      const seen = told.events.flatMap((event): readonly Json[] =>
        event['type'] === 'looked' && Array.isArray(event['facts']) ? event['facts'] : [],
      );
      const facts = seen.filter((one) => one['node'] === `spark-${node}`).map((one) => JSON.stringify(one));
      if ('fact' in shows) expect(facts).toContainEqual(expect.stringMatching(shows.fact));
      else expect(new Set(facts.flatMap((text) => shows.changed.exec(text)?.[1] ?? [])).size).toBe(2);
      return;
    }
    const quotes: readonly Json[] = Array.isArray(finding['quotes']) ? finding['quotes'] : [];
    expect(quotes.map((quote) => quote['text'])).toContainEqual(expect.stringMatching(shows.line));
    for (const quote of quotes) {
      const host = quote['node'] === 'spark-a' ? 'a' : 'b';
      const rank = `/home/aurora/.firstlight/*/ranks/${name}-r${quote['rank']}`;
      // All attempts lie there; a bar's \r ends a line of its own, and is none where it stands in front.
      const at = `for f in ${rank}/log ${rank}~*/log; do [ ! -f "$f" ] || tr '\\r' '\\n' <"$f" | grep -v '^$' | sed -n '${quote['line']}p'; done`;
      expect(fleet.must(host, 'root', at).split('\n'), `line ${quote['line']}`).toContain(quote['text']);
    }
  }

  /** Whoever ran before still runs, as the same process, and no journal tells of a hand laid on it. */
  function untouched({ asks, ends }: Broken, told: Told, since: number): void {
    OTHERS.forEach((other, at) => {
      if (other.host !== ends)
        expect(identityOf(fleet, other), `${other.name} on ${other.host}`).toBe(known[at]);
      expect(deedsAgainst(fleet, other, known[at], since, false), other.name).toEqual([]);
    });
    const stops = told.events.filter(
      (event) =>
        event['type'] === 'step-started' &&
        String(event['kind']).startsWith('stop-') &&
        event['kind'] !== 'stop-rank',
    );
    expect(stops.length, told.text).toBe(asks === undefined ? 0 : 1);
  }
});

/** How often all ranks were launched. */
function launchesOf(told: Told): number {
  return new Set(told.events.flatMap((event) => (event['type'] === 'rank-started' ? [event['attempt']] : [])))
    .size;
}
