import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { downAfterEach, endOf, of, openLab, owedOn } from './lab.ts';
import { looks } from './processes.ts';

const MINUTES = 180_000;

describe('Ctrl-C', () => {
  downAfterEach();

  it(
    'before the launch ends after the step that runs; what was stopped is owed, nothing is half done',
    async () => {
      const lab = await openLab('two-sparks');
      const consent = [...(await lab.holderSteps()).values()].join(',');
      const up = lab.start(['up', 'recipe.yaml', '--json', '--consent', consent]);
      const stopping = await up.until('step-started');
      up.signal('SIGINT');
      const told = await up.ended;
      expect(told.signal).toBeNull();
      expect(told.code).toBe(1);
      const end = endOf(told.events);
      expect(end.outcome).toBe('cancelled');
      expect(told.events.at(-1)?.type).toBe('run-ended');
      const started = of(told.events, 'step-started').map((step) => step.id);
      expect(started).toEqual([stopping.id]);
      expect(of(told.events, 'step-ended').map(({ id, result }) => ({ id, result }))).toEqual([
        { id: stopping.id, result: 'done' },
      ]);
      expect(owedOn(lab, 'spark-b')).toHaveLength(1);
      expect(end.owed.map((one) => one.title)).toEqual(owedOn(lab, 'spark-b'));
      expect(end.owed.map((one) => one.title)).toEqual(owedOn(lab, 'spark-b'));
      expect(looks(lab.folder).flatMap((host) => host.engines)).toEqual([]);

      // Without the right password nothing is given back, and it stays owed.
      const wrong = lab.file('wrong-password');
      writeFileSync(wrong, 'southern-dark\n', { mode: 0o600 });
      const refused = await lab.run(['restore', '--json'], { FIRSTLIGHT_SUDO_PASSWORD_FILE: wrong });
      expect(refused.code).toBe(2);
      expect(endOf(refused.events)).toMatchObject({ outcome: 'consent-needed', owed: [{ node: 'spark-b' }] });
      expect(endOf(refused.events).why).toContain('does not accept that password');

      const restored = await lab.run(['restore', '--json']);
      expect(endOf(restored.events).outcome).toBe('restored');
      expect(owedOn(lab, 'spark-b')).toEqual([]);
    },
    MINUTES,
  );

  it(
    'while memory is waited for ends at once',
    async () => {
      const lab = await openLab('two-sparks');
      const consent = [...(await lab.holderSteps()).values()].join(',');
      const up = lab.start(['up', 'recipe.yaml', '--json', '--consent', consent]);
      await up.until('step-started', (step) => step.kind === 'await-memory');
      const at = Date.now();
      up.signal('SIGINT');
      const told = await up.ended;
      expect(Date.now() - at).toBeLessThan(10_000);
      expect(endOf(told.events).outcome).toBe('cancelled');
      expect(owedOn(lab, 'spark-b')).toHaveLength(3);

      // What needs no root is given back though sudo's password is wrong; it is tried once, not for each.
      const wrong = lab.file('wrong-password');
      writeFileSync(wrong, 'southern-dark\n', { mode: 0o600 });
      const partly = await lab.run(['restore', '--json'], { FIRSTLIGHT_SUDO_PASSWORD_FILE: wrong });
      expect(endOf(partly.events).outcome).toBe('consent-needed');
      expect(
        of(partly.events, 'step-ended')
          .map((step) => step.result)
          .sort(),
      ).toEqual(['done', 'failed']);
      expect(owedOn(lab, 'spark-b')).toHaveLength(2);
    },
    MINUTES,
  );

  it(
    'after the launch detaches: the ranks run on, down is told, and another up follows them to the end',
    async () => {
      const lab = await openLab('clean-start', { env: { FIRSTLIGHT_LAB_SPEED: '2' } });
      const up = lab.start(['up', 'recipe.yaml', '--json']);
      await up.until('rank-stage', (moved) => moved.stage === 'weights');
      const before = looks(lab.folder).map((host) => host.engines.map((engine) => engine.pid));
      expect(before.map((pids) => pids.length)).toEqual([1, 1]);
      up.signal('SIGINT');
      const told = await up.ended;
      expect(endOf(told.events)).toMatchObject({ outcome: 'cancelled', exit: 1 });
      expect(endOf(told.events).why).toContain('firstlight down');
      expect(of(told.events, 'rank-ended')).toEqual([]);
      expect(looks(lab.folder).map((host) => host.engines.map((engine) => engine.pid))).toEqual(before);

      const again = await lab.run(['up', 'recipe.yaml', '--json']);
      expect(again.code).toBe(0);
      expect(endOf(again.events).outcome).toBe('serving');
      expect(of(again.events, 'step-started')).toEqual([]);
      expect(looks(lab.folder).map((host) => host.engines.map((engine) => engine.pid))).toEqual(before);
    },
    MINUTES,
  );
});
