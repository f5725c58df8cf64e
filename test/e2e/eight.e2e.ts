import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import { eventOf, outcomeOf, WholeFleet } from './whole/fleet.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);

describe.skipIf(why !== undefined)('eight whole hosts at once', () => {
  const fleet = new WholeFleet(8);
  const password = ['--sudo-password-file', `spark-b=${fleet.file('password')}`];

  beforeAll(() => {
    fleet.up();
    fleet.writeRecipe({ nodes: fleet.letters, speed: 8 });
  });

  afterAll(() => fleet.down());

  test('are looked at in one round trip each, behind one head that drops no login', async () => {
    const check = await fleet.firstlight(['check', fleet.file('recipe.yaml'), '--json']);
    expect([0, 1], check.text).toContain(check.code);
    for (const host of fleet.letters) expect(check.stdout).toContain(`spark-${host}`);
    expect(check.stdout).not.toContain('"reached":false');
    const dropped = fleet.must(
      'a',
      'root',
      "journalctl -q -o cat -u ssh | grep -ci 'drop connection' || true",
    );
    expect(dropped).toBe('0');
    tell({
      what: 'look at eight hosts, cold',
      seen: '8 of 8',
      named: '',
      done: 'no login dropped',
      seconds: check.seconds,
    });
  });

  test('serve one model with a rank on each, and give all of it back', async () => {
    const up = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json', ...password], {
      seconds: 240,
    });
    expect(outcomeOf(up), up.text).toBe('serving');
    const ranks = up.events.filter((event) => event['type'] === 'rank-started');
    expect(ranks.map((event) => event['node']).toSorted()).toEqual(
      fleet.letters.map((host) => `spark-${host}`),
    );
    const status = await fleet.firstlight(['status', '--json']);
    expect(status.code, status.text).toBe(0);
    tell({
      what: 'a model over eight hosts',
      seen: 'a rank on each',
      named: String(eventOf(up, 'serving')?.['answer']),
      done: 'serving',
      seconds: up.seconds,
    });
    const down = await fleet.firstlight(['down', '--restore', '--json', ...password]);
    expect(down.code, down.text).toBe(0);
    for (const host of fleet.letters)
      expect(fleet.must(host, 'root', "pgrep -f '[e]ngine/main.js' | wc -l"), host).toBe('0');
  });
});
