import { describe, expect, it } from 'vitest';
import { downAfterEach, endOf, of, openLab, owedOn } from './lab.ts';
import { looks } from './processes.ts';

const MINUTES = 180_000;

describe('two controllers', () => {
  downAfterEach();

  it(
    'do not work at once: the second is told who does and since when; a killed one’s lock is free at once',
    async () => {
      const lab = await openLab('clean-start', { env: { FIRSTLIGHT_LAB_SPEED: '2' } });
      const first = lab.start(['up', 'recipe.yaml', '--json']);
      await first.until('rank-started');
      // Held where it is, so that it is still at work however long the others take.
      first.signal('SIGSTOP');
      const elsewhere = { FIRSTLIGHT_HOME: lab.file('other-home') };
      const second = await lab.run(['up', 'recipe.yaml', '--json'], elsewhere);
      expect(second.code).toBe(2);
      const end = endOf(second.events);
      expect(end.exit).toBe(2);
      expect(end.why).toContain(`(pid ${first.pid})`);
      expect(end.why).toMatch(/since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
      expect(second.events.map((event) => event.type)).toEqual(['run-started', 'run-ended']);
      const down = await lab.run(['down', '--json'], elsewhere);
      expect(down.code).toBe(2);
      expect(of(down.events, 'step-started')).toEqual([]);
      expect(first.running).toBe(true);

      const killed = Date.now();
      first.signal('SIGKILL');
      await first.ended;
      const third = await lab.run(['up', 'recipe.yaml', '--json'], elsewhere);
      expect(third.code).toBe(0);
      const [looked] = of(third.events, 'looked');
      expect(Date.parse(looked?.at ?? '') - killed).toBeLessThan(45_000);
      expect(endOf(third.events).outcome).toBe('serving');
      // It went on from what the first had started.
      expect(of(third.events, 'rank-started').map((rank) => rank.followed)).toEqual([true, true]);
      expect(of(third.events, 'step-started')).toEqual([]);
    },
    MINUTES,
  );

  it(
    'know the same: one with an empty journal sees what serves, and gives back what the first stopped',
    async () => {
      const lab = await openLab('two-sparks');
      const consent = [...(await lab.holderSteps()).values()].join(',');
      const up = await lab.run(['up', 'recipe.yaml', '--json', '--consent', consent]);
      expect(endOf(up.events).outcome).toBe('serving');

      const other = { FIRSTLIGHT_HOME: lab.file('other-home') };
      const status = await lab.run(['status', '--json'], other);
      expect(status.code).toBe(0);
      const seen = JSON.parse(status.stdout);
      expect(seen.services).toMatchObject([
        { recipe: 'qwen3.5-122b', engine: 'sglang', serving: true, head: 'spark-a', port: 30000 },
      ]);
      expect(seen.services[0].since).toMatch(/^\d{4}-/);
      expect(seen.services[0].ranks).toHaveLength(2);
      expect(seen.owed).toHaveLength(3);

      // The remedy lies on the node too: the file's network is still the engine's, and yet nothing is to be done.
      const again = await lab.run(['up', 'recipe.yaml', '--json'], other);
      expect(endOf(again.events).outcome).toBe('nothing-to-do');

      // While the ranks hold the room, giving back what made it is refused.
      const early = await lab.run(['restore', '--json'], other);
      expect(early.code).toBe(2);
      expect(endOf(early.events).why).toContain('firstlight down --restore stops it first');
      expect(owedOn(lab, 'spark-b')).toHaveLength(3);

      const down = await lab.run(['down', '--restore', '--json'], other);
      expect(down.code).toBe(0);
      expect(of(down.events, 'run-ended').map((end) => end.outcome)).toEqual(['stopped', 'restored']);
      const [, worker] = looks(lab.folder);
      expect(looks(lab.folder).flatMap((host) => host.engines)).toEqual([]);
      for (const program of ['ollama', 'python3', 'llama-server']) {
        expect(worker?.shown.filter((command) => command.startsWith(`${program} `))).toHaveLength(1);
      }
      expect(owedOn(lab, 'spark-b')).toEqual([]);
      const idle = await lab.run(['status', '--json'], other);
      expect(idle.code).toBe(1);
      expect(JSON.parse(idle.stdout)).toMatchObject({ services: [], owed: [] });
    },
    MINUTES,
  );
});
