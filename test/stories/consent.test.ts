import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { twoSparks } from '../../src/lab/stories/two-sparks.ts';
import { downAfterEach, type Ended, endOf, type Lab, of, openLab, owedOn } from './lab.ts';
import { looks } from './processes.ts';

const HOLDERS = ['llama-server', 'ollama', 'python3'];
const MINUTES = 120_000;

/** Programs of the story's holders that run on the worker. */
function holding(lab: Lab): readonly string[] {
  const shown = looks(lab.folder).find((host) => host.host === 'spark-b')?.shown ?? [];
  return HOLDERS.filter((name) => shown.some((command) => command.startsWith(`${name} `)));
}

function expectNothingChanged(lab: Lab, told: Ended): void {
  expect(of(told.events, 'step-started')).toEqual([]);
  expect(holding(lab)).toEqual(HOLDERS);
  expect(owedOn(lab, 'spark-b')).toEqual([]);
  expect(looks(lab.folder).flatMap((host) => host.engines)).toEqual([]);
}

describe('up on two-sparks', () => {
  downAfterEach();

  it(
    'without consent and without a terminal ends consent-needed, and nothing is stopped',
    async () => {
      const lab = await openLab('two-sparks');
      const told = await lab.run(['up', 'recipe.yaml', '--json']);
      expect(told.code).toBe(2);
      const end = endOf(told.events);
      expect(end).toMatchObject({ outcome: 'consent-needed', exit: 2 });
      const asked = of(told.events, 'consent-asked').flatMap((event) => event.steps);
      expect(asked.map((step) => step.target.name).sort()).toEqual([
        'comfyui',
        'llama-server',
        'ollama.service',
      ]);
      for (const step of asked) expect(end.why).toContain(step.id);
      expectNothingChanged(lab, told);

      // Its own words tell how to go on; all three are needed, so two alone stop none of them.
      const two = asked.slice(0, 2).map((step) => step.id);
      const less = await lab.run(['up', 'recipe.yaml', '--json', '--consent', two.join(',')]);
      expect(less.code).toBe(2);
      expect(endOf(less.events).outcome).toBe('consent-needed');
      // It names what is missing; its command allows that together with what was allowed this time.
      const [missing = '', command = ''] = endOf(less.events).why.split(' Allow them: ');
      expect(missing).toContain(asked[2]?.id);
      expect(missing).not.toContain(two[0]);
      for (const step of asked) expect(command).toContain(step.id);
      expectNothingChanged(lab, less);

      const odd = await lab.run(['up', 'recipe.yaml', '--json', '--consent', 'ffff']);
      expect(endOf(odd.events).outcome).toBe('consent-needed');
      const notes = of(odd.events, 'note').map(({ text }) => text);
      expect(notes.join('\n')).toMatch(/--consent ffff allows nothing.*those are /);
      expectNothingChanged(lab, odd);

      const plain = await lab.run(['up', 'recipe.yaml']);
      expect(plain.code).toBe(2);
      expect(plain.stdout + plain.stderr).toContain('--consent');
    },
    MINUTES,
  );

  it(
    'with a wrong sudo password, or one that is open to others, says so and stops nothing',
    async () => {
      const lab = await openLab('two-sparks');
      const consent = ['--consent', [...(await lab.holderSteps()).values()].join(',')];
      const wrong = lab.file('wrong-password');
      writeFileSync(wrong, 'southern-dark\n', { mode: 0o600 });
      const refused = await lab.run(['up', 'recipe.yaml', '--json', ...consent], {
        FIRSTLIGHT_SUDO_PASSWORD_FILE: wrong,
      });
      expect(refused.code).toBe(2);
      expect(endOf(refused.events).why).toMatch(/password.*spark-b|spark-b.*password/);
      expect(holding(lab)).toEqual(HOLDERS);
      expect(refused.stdout + refused.stderr).not.toContain('southern-dark');

      chmodSync(wrong, 0o644);
      const open = await lab.run(['up', 'recipe.yaml', '--json', ...consent], {
        FIRSTLIGHT_SUDO_PASSWORD_FILE: wrong,
      });
      expect(open.code).toBe(2);
      expect(open.stdout + open.stderr).toContain('0600');
      expect(holding(lab)).toEqual(HOLDERS);

      const none = await lab.run(['up', 'recipe.yaml', '--json', ...consent], {
        FIRSTLIGHT_SUDO_PASSWORD_FILE: '',
      });
      expect(none.code).toBe(2);
      expect(endOf(none.events)).toMatchObject({ outcome: 'consent-needed' });
      expect(endOf(none.events).why).toContain('--sudo-password-file');
      expect(holding(lab)).toEqual(HOLDERS);
    },
    MINUTES,
  );

  it(
    'with the digest of an older plan changes nothing, with that of the present one goes on',
    async () => {
      const lab = await openLab('two-sparks');
      const digest = async () =>
        JSON.parse((await lab.run(['plan', 'recipe.yaml', '--json'])).stdout).plan.digest;
      const old = await digest();
      // The order in which people write things is no other plan; another engine is.
      writeFileSync(lab.file('recipe.yaml'), `${readFileSync(lab.file('recipe.yaml'), 'utf8')}env: {A: b}\n`);
      const told = await lab.run(['up', 'recipe.yaml', '--json', '--plan', old]);
      expect(told.code).toBe(2);
      expect(endOf(told.events).why).toContain(`not ${old}; nothing was changed`);
      expectNothingChanged(lab, told);
      const again = await lab.run(['up', 'recipe.yaml', '--json', '--plan', await digest()]);
      expect(endOf(again.events).outcome).toBe('consent-needed');
      expectNothingChanged(lab, again);
    },
    MINUTES,
  );

  it(
    'does without dropping the page cache where sudo refuses, told once for each node',
    async () => {
      const hosts = twoSparks.hosts.map((host) => ({ ...host, holders: [] }));
      const lab = await openLab({ ...twoSparks, hosts, recipe: { ...twoSparks.recipe, network: 'auto' } });
      const wrong = lab.file('wrong-password');
      writeFileSync(wrong, 'southern-dark\n', { mode: 0o600 });
      const told = await lab.run(['up', 'recipe.yaml', '--json'], { FIRSTLIGHT_SUDO_PASSWORD_FILE: wrong });
      const drops = of(told.events, 'step-ended').filter((step) => step.kind === 'drop-cache');
      expect(drops.map(({ node, result }) => ({ node, result }))).toEqual([
        { node: 'spark-a', result: 'failed' },
        { node: 'spark-b', result: 'failed' },
        // Without root the model's own files leave the cache.
        { node: 'spark-a', result: 'done' },
        { node: 'spark-b', result: 'done' },
      ]);
      // What the cache leaves free is enough to begin with, and the kernel gives up the rest by itself.
      expect(endOf(told.events).outcome).toBe('serving');
    },
    MINUTES,
  );
});
