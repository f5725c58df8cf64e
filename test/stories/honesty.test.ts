import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { treat } from '../../src/diagnosis/treat.ts';
import type { Event } from '../../src/domain/event.ts';
import { chooseNodes } from '../../src/files/choose-nodes.ts';
import { readRecipe } from '../../src/files/recipe-file.ts';
import { twoSparks } from '../../src/lab/stories/two-sparks.ts';
import { bringUp } from '../../src/operations/bring-up.ts';
import { inRun } from '../../src/operations/in-run.ts';
import type { Clock } from '../../src/operations/world.ts';
import { makeWorld } from '../../src/world.ts';
import { downAfterEach, endOf, type Lab, of, openLab } from './lab.ts';
import { looks } from './processes.ts';

const MINUTES = 240_000;

/** `up` in this process, so that a test can change one of its parts. */
async function upHere(
  lab: Lab,
  consent: readonly string[],
  change: { readonly treat?: typeof treat; readonly clock?: (real: Clock) => Clock },
): Promise<readonly Event[]> {
  const events: Event[] = [];
  const opened = makeWorld({
    cluster: lab.file('cluster.yaml'),
    home: lab.file('home'),
    sudoPasswordFiles: [],
    passwords: lab.story.passwords,
    live: () => undefined,
    onEvent: (event) => events.push(event),
    signal: new AbortController().signal,
    env: {},
  });
  const world = { ...opened, clock: change.clock?.(opened.clock) ?? opened.clock };
  try {
    const file = readRecipe(lab.file('recipe.yaml'));
    const nodes = chooseNodes(world.cluster, file.recipe);
    const opening = {
      operation: 'up',
      nodes,
      recipe: file.recipe.recipe,
      recipeDigest: file.digest,
    } as const;
    const own = change.treat === undefined ? {} : { treat: change.treat };
    const input = { consent, replace: false, wait: false };
    await inRun(
      world,
      opening,
      (recorder, inside) => bringUp({ world: inside, recorder, file, nodes, input, ...own }),
      async () => [],
    );
  } finally {
    opened.close();
  }
  return events;
}

const engines = (lab: Lab) => looks(lab.folder).flatMap((host) => host.engines);

describe('the lab is honest', () => {
  downAfterEach();

  it(
    'with the remedy’s edit left out two-sparks ends not-serving, whatever was called a remedy',
    async () => {
      const lab = await openLab('two-sparks');
      const consent = [...(await lab.holderSteps()).values()];
      const events = await upHere(lab, consent, {
        treat: (input) => {
          const treatment = treat(input);
          return treatment && { ...treatment, edits: [] };
        },
      });
      expect(endOf(events)).toMatchObject({ outcome: 'not-serving', exit: 1 });
      const finals = of(events, 'finding').filter((finding) => finding.final);
      expect(finals.length).toBeGreaterThan(1);
      for (const final of finals) expect(final.cause).toBe('loopback-address-advertised');
      expect(of(events, 'remedy-proved')).toEqual([]);
      expect(of(events, 'remedy-failed')).toHaveLength(of(events, 'remedy-applied').length);
      expect(of(events, 'serving')).toEqual([]);
      expect(engines(lab)).toEqual([]);
    },
    MINUTES,
  );

  it(
    'with a holder left alive the memory does not come back, and nothing is launched',
    async () => {
      const lab = await openLab('two-sparks');
      const steps = await lab.holderSteps();
      await lab.on(
        'spark-b',
        "sudo -S -p '' -v && sudo -n systemctl stop ollama && docker stop comfyui",
        'northern-light\n',
      );
      // What they held comes back after a while, and no more than that.
      const available = () =>
        Number(/MemAvailable:\s+(\d+)/.exec(readFileSync(meminfo, 'utf8'))?.[1]) / 2 ** 20;
      const meminfo = lab.file('hosts/spark-b/proc/meminfo');
      await expect.poll(available, { timeout: 20_000 }).toBeGreaterThan(90);
      const left = steps.get('llama-server') ?? '';
      const told = await lab.run(['up', 'recipe.yaml', '--json', '--consent', 'ffff']);
      expect(endOf(told.events)).toMatchObject({ outcome: 'consent-needed', exit: 2 });
      expect(of(told.events, 'consent-asked').flatMap((asked) => asked.steps)).toMatchObject([{ id: left }]);
      const memory = of(told.events, 'planned')[0]?.plan.memory[1];
      expect(memory?.canGetBytes).toBeLessThan(memory?.sumBytes ?? 0);
      expect(of(told.events, 'step-started')).toEqual([]);
      expect(engines(lab)).toEqual([]);
      // Consent to that one alone is enough now.
      const freed = await lab.run(['plan', 'recipe.yaml', '--json']);
      expect(freed.code).toBe(1);
    },
    MINUTES,
  );

  it(
    'with a holder that comes back each time it is stopped it ends not-serving, names it, and launches nothing',
    async () => {
      const lab = await openLab('two-sparks');
      const consent = [...(await lab.holderSteps()).values()];
      // Somebody's own watchdog, which no restart policy tells of; it ends with the lab.
      const watchdog = lab.on('spark-b', 'while :; do docker start comfyui; sleep 0.5; done >/dev/null 2>&1');
      const events = await upHere(lab, consent, { clock: faster });
      expect(endOf(events)).toMatchObject({ outcome: 'not-serving', exit: 1 });
      expect(endOf(events).why).toContain('comfyui on spark-b came back each time it was stopped');
      expect(of(events, 'finding').at(-1)).toMatchObject({
        cause: 'leftover-process-holds-gpu-memory',
        node: 'spark-b',
        final: true,
      });
      expect(of(events, 'rank-started')).toEqual([]);
      expect(engines(lab)).toEqual([]);
      await lab.down();
      await watchdog;
    },
    MINUTES,
  );

  it(
    'with right /etc/hosts files no loopback finding is made, though the addresses are left to the engine',
    async () => {
      // On one management network too: what else the engine chooses by itself then leads there as well.
      const hosts = twoSparks.hosts.map((host, at) => ({
        ...host,
        etcHosts: 'right' as const,
        management: { ...host.management, address: `10.1.230.${180 + at}` },
        holders: [],
      }));
      const lab = await openLab({ ...twoSparks, hosts, consents: [] });
      const told = await lab.run(['up', 'recipe.yaml', '--json']);
      expect(told.code).toBe(0);
      expect(endOf(told.events).outcome).toBe('serving');
      expect(of(told.events, 'planned')[0]?.plan.recipe.network).toBe('engine');
      expect(of(told.events, 'finding')).toEqual([]);
      expect(of(told.events, 'rank-started').map((rank) => rank.attempt)).toEqual([1, 1]);
    },
    MINUTES,
  );
});

/** Three minutes of waiting for memory in six seconds. */
function faster(real: Clock): Clock {
  const began = real.now();
  return {
    now: () => began + (real.now() - began) * 30,
    wait: (milliseconds, signal) => real.wait(milliseconds / 30, signal),
  };
}
