import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Agent, agentOverHttp, agentOverStdio } from '../faces/mcp/agent.ts';
import { downAfterEach, type Firstlight, type Lab, openLab, owedOn } from './lab.ts';
import { looks } from './processes.ts';

const MAIN = join(resolve(process.env['FIRSTLIGHT_DIST'] ?? 'dist'), 'main.js');
const HOLDERS = ['llama-server', 'ollama', 'python3'];
const MINUTES = 400_000;

const planShape = z.object({
  digest: z.string(),
  state: z.string(),
  steps: z.array(z.object({ id: z.string(), asks: z.boolean(), allowedBy: z.string().optional() })),
});
const upShape = z.object({
  run: z.string().optional(),
  outcome: z.string(),
  consent: z
    .object({ how: z.array(z.string()), steps: z.array(z.object({ id: z.string(), user: z.string() })) })
    .optional(),
  serving: z.object({ answer: z.string() }).optional(),
  cured: z.array(z.string()),
  owed: z.array(z.object({ id: z.string() })),
});

/** Programs of the story's holders that run on the worker. */
function holding(lab: Lab): readonly string[] {
  const shown = looks(lab.folder).find((host) => host.host === 'spark-b')?.shown ?? [];
  return HOLDERS.filter((name) => shown.some((command) => command.startsWith(`${name} `)));
}

function expectNothingStopped(lab: Lab): void {
  expect(holding(lab)).toEqual(HOLDERS);
  expect(owedOn(lab, 'spark-b')).toEqual([]);
  expect(looks(lab.folder).flatMap((host) => host.engines)).toEqual([]);
}

const stdio = (lab: Lab): Promise<Agent> =>
  agentOverStdio(MAIN, lab.folder, {
    FIRSTLIGHT_HOME: lab.file('home'),
    FIRSTLIGHT_SUDO_PASSWORD_FILE: lab.file('sudo-password'),
  });

/** `firstlight serve` beside the lab, and what it printed. */
async function serve(lab: Lab): Promise<{
  readonly server: Firstlight;
  readonly base: string;
  readonly token: (what: 'open' | 'show only' | 'agents') => string;
  readonly close: () => Promise<void>;
}> {
  const server = lab.start(['serve', '--port', '0', '--no-open']);
  while (!server.stdout.includes('told once')) {
    if (!server.running) throw new Error(`serve ended: ${server.stdout}`);
    await wait(20);
  }
  const said = server.stdout;
  return {
    server,
    base: /http:\/\/[\d.]+:\d+/.exec(said)?.[0] ?? '',
    token: (what) => new RegExp(`^${what} .*(?:token=|Bearer )([\\w-]+)$`, 'm').exec(said)?.[1] ?? '',
    close: async () => {
      server.signal('SIGINT');
      expect((await server.ended).code).toBe(0);
    },
  };
}

/** What a run waits for a person to allow, as soon as it does. */
async function askedOf(lab: Lab): Promise<{ readonly run: string; readonly ids: readonly string[] }> {
  for (;;) {
    const { stdout } = await lab.run(['show', '--json']);
    const shown = z
      .object({ run: z.string(), events: z.array(z.looseObject({ type: z.string() })) })
      .safeParse(stdout.startsWith('{') ? JSON.parse(stdout) : {});
    const asked = shown.data?.events.findLast((event) => event.type === 'consent-asked');
    const over = shown.data?.events.some((event) => event.type === 'run-ended');
    if (shown.data !== undefined && asked !== undefined && over === false) {
      const { steps } = z.object({ steps: z.array(z.object({ id: z.string() })) }).parse(asked);
      return { run: shown.data.run, ids: steps.map((step) => step.id) };
    }
    await wait(100);
  }
}

/** The whole job, as the agents' prompt tells it; a person allows by `allow`. */
async function bringUp(
  lab: Lab,
  agent: Agent,
  allow: (asked: { readonly run: string; readonly ids: readonly string[] }) => Promise<void>,
): Promise<void> {
  const look = await agent.call('look', { recipe: 'recipe.yaml' });
  expect(look.failed).toBe(false);
  expect(JSON.stringify(look.data)).toContain('comfyui');
  const plan = planShape.parse((await agent.call('plan', { recipe: 'recipe.yaml' })).data);
  expect(plan.steps.filter((step) => step.asks)).toHaveLength(3);

  const refused = await agent.call('up', { recipe: 'recipe.yaml', plan: plan.digest });
  const asks = upShape.parse(refused.data);
  expect(asks.outcome).toBe('consent-needed');
  expect(asks.consent?.steps.map((step) => step.id).sort()).toEqual(
    plan.steps
      .filter((step) => step.asks)
      .map((step) => step.id)
      .sort(),
  );
  const how = asks.consent?.how.join('\n') ?? '';
  for (const way of ['waitForConsentSeconds', '--consent', 'policy.yaml', 'kind: container, name: "comfyui"'])
    expect(how).toContain(way);
  expectNothingStopped(lab);

  const going = agent.call('up', { recipe: 'recipe.yaml', plan: plan.digest, waitForConsentSeconds: 120 });
  await allow(await askedOf(lab));
  const up = upShape.parse((await going).data);
  expect(up).toMatchObject({ outcome: 'serving', serving: { answer: expect.stringContaining('204') } });
  expect(up.cured.join(' ')).toMatch(/loopback/);
  expect(up.owed).toHaveLength(3);
  expect(agent.progress.join('\n')).toMatch(/Waiting for you.*Serving/s);

  const again = await agent.call('plan', { recipe: 'recipe.yaml' });
  expect(again.text).toMatch(/^qwen3.5-122b serves already on spark-a, nothing to do; plan [0-9a-f]{16}\./);
  expect(again.data).toMatchObject({
    state: 'empty',
    steps: [],
    fits: expect.stringMatching(/serves already/),
  });

  expect((await agent.call('status')).text).toMatch(/^qwen3.5-122b serves, its head on spark-a/);
  expect((await agent.call('chat', { prompt: 'What is 12 times 17?' })).text).toContain('204');
  const diagnosis = await agent.call('diagnose');
  expect(JSON.stringify(diagnosis.data)).toMatch(/loopback.*proved/);
  const evidence = await agent.call('evidence', { attempt: 1 });
  const { quotes } = z
    .object({ quotes: z.array(z.object({ place: z.string(), lines: z.array(z.string()) })) })
    .parse(evidence.data);
  expect(quotes[0]?.lines.join('\n')).toContain('127.0.1.1');
  expect((await agent.call('logs', { rank: 1, stage: 'weights', tail: 5 })).failed).toBe(false);
  for (const told of [look, refused, diagnosis, evidence]) expect(told.text.length).toBeLessThan(16_000);

  const shown = await agent.call('down', { restore: true });
  expect(shown.data).toMatchObject({ done: false });
  expect(looks(lab.folder).flatMap((host) => host.engines).length).toBeGreaterThan(0);
  const down = await agent.call('down', { restore: true, plan: shown.data['digest'] });
  expect(down.data).toMatchObject({ done: true, outcome: 'restored', owed: [] });
  expect(holding(lab)).toEqual(HOLDERS);
}

describe('an agent on two-sparks', () => {
  downAfterEach();

  it('does the whole job over stdio, with a person who allows in a terminal', {
    timeout: MINUTES,
  }, async () => {
    const lab = await openLab('two-sparks');
    const agent = await stdio(lab);
    await bringUp(lab, agent, async ({ run, ids }) => {
      const { code, stdout } = await lab.run(['consent', run, ...ids]);
      expect(code).toBe(0);
      expect(stdout).toBe(`3 steps of run ${run} allowed\n`);
    });
    await agent.close();
  });

  it('does the whole job over HTTP, with a person who allows on the page', { timeout: MINUTES }, async () => {
    const lab = await openLab('two-sparks');
    const { base, token, close } = await serve(lab);
    const agent = await agentOverHttp(base, token('agents'));
    await bringUp(lab, agent, async ({ run, ids }) => {
      const answer = await fetch(`${base}/api/consent`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token('open')}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ run, allowed: ids }),
      });
      expect(answer.status).toBe(200);
    });
    await agent.close();
    await close();
  });

  it('stops nobody’s work without a person, in whatever way it tries; with the owner’s policy it may', {
    timeout: MINUTES,
  }, async () => {
    const lab = await openLab('two-sparks');
    const { base, token, close } = await serve(lab);
    const agent = await agentOverHttp(base, token('agents'));
    const other = await agentOverHttp(base, token('agents'));
    const recipe = 'recipe.yaml';
    const plan = planShape.parse((await agent.call('plan', { recipe })).data);
    const ids = plan.steps.filter((step) => step.asks).map((step) => step.id);
    writeFileSync(lab.file('second.yaml'), readFileSync(lab.file('recipe.yaml')));
    const as = (name: string, body: object) =>
      fetch(`${base}${name}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token('agents')}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
    const refused = (told: { readonly failed: boolean }) => told.failed;
    const ways: readonly (readonly [string, () => Promise<boolean>])[] = [
      ['without a plan', async () => refused(await agent.call('up', { recipe }))],
      [
        'with a digest that it guessed',
        async () => refused(await agent.call('up', { recipe, plan: '0123456789abcdef' })),
      ],
      [
        'with a digest that another agent was shown',
        async () => refused(await other.call('up', { recipe, plan: plan.digest })),
      ],
      [
        'with the digest of another recipe',
        async () => refused(await agent.call('up', { recipe: 'second.yaml', plan: plan.digest })),
      ],
      [
        'with consent that it gives itself',
        async () => refused(await agent.call('up', { recipe, plan: plan.digest, consent: ids })),
      ],
      [
        'with a tool that there is none of',
        async () => refused(await agent.call('consent', { run: '1', allow: ids })),
      ],
      [
        'as a run of its own over the API',
        async () => (await as('/api/operations/up', { recipe: 'recipe.yaml', consent: ids })).status === 403,
      ],
      ['by hand-made down', async () => refused(await agent.call('down', { plan: plan.digest }))],
      ['by hand-made restore', async () => refused(await agent.call('restore', { plan: plan.digest }))],
      [
        'with a recipe from elsewhere',
        async () => refused(await agent.call('plan', { recipe: '../../../etc/passwd' })),
      ],
      [
        'with its plan, and nobody’s answer',
        async () =>
          upShape.parse((await agent.call('up', { recipe, plan: plan.digest })).data).outcome ===
          'consent-needed',
      ],
      [
        'by answering for the person while it waits',
        async () => {
          const going = agent.call('up', { recipe, plan: plan.digest, waitForConsentSeconds: 3 });
          const asked = await askedOf(lab);
          const answers = [
            await as('/api/consent', { run: asked.run, allowed: asked.ids }),
            await as('/api/operations/consent', { run: asked.run, allow: asked.ids }),
          ];
          const up = upShape.parse((await going).data);
          return answers.every(({ status }) => status === 403) && up.outcome === 'consent-needed';
        },
      ],
      [
        'by cancelling in the middle of its question',
        async () => {
          const cancel = new AbortController();
          const going = agent.call(
            'up',
            { recipe, plan: plan.digest, waitForConsentSeconds: 60 },
            cancel.signal,
          );
          const gone = going.then(
            () => false,
            () => true,
          );
          await askedOf(lab);
          cancel.abort();
          return gone;
        },
      ],
      [
        'with a policy of wildcards alone',
        async () => {
          writeFileSync(
            lab.file('policy.yaml'),
            'allow: [{node: "*", kind: container, name: "*", user: "*"}]\n',
            { mode: 0o600 },
          );
          const told = await agent.call('up', { recipe, plan: plan.digest });
          return told.text.includes('more than a wildcard');
        },
      ],
      [
        'with a policy that others may write',
        async () => {
          writeFileSync(lab.file('policy.yaml'), policyOf(['comfyui', 'ollama.service', 'llama-server']), {
            mode: 0o666,
          });
          chmodSync(lab.file('policy.yaml'), 0o666);
          const told = await agent.call('up', { recipe, plan: plan.digest });
          chmodSync(lab.file('policy.yaml'), 0o600);
          return told.text.includes('it must be 0644');
        },
      ],
      [
        'with a policy for two of three',
        async () => {
          writeFileSync(lab.file('policy.yaml'), policyOf(['comfyui', 'ollama.service']));
          const told = await agent.call('plan', { recipe });
          expect(told.text).toContain("2 allowed by the owner's policy.yaml, 1 needs a person's consent");
          expect(
            planShape
              .parse(told.data)
              .steps.flatMap((step) => step.allowedBy ?? [])
              .sort(),
          ).toEqual(['policy.yaml, line 2', 'policy.yaml, line 3']);
          const up = upShape.parse((await agent.call('up', { recipe, plan: plan.digest })).data);
          return up.outcome === 'consent-needed' && up.consent?.steps.length === 1;
        },
      ],
    ];
    expect(ways.length).toBeGreaterThan(10);
    for (const [way, attempt] of ways) {
      expect(await attempt(), way).toBe(true);
      await untilFree(lab);
      expectNothingStopped(lab);
    }

    writeFileSync(lab.file('policy.yaml'), policyOf(['comfyui', 'ollama.service', 'llama-server']));
    const up = upShape.parse((await agent.call('up', { recipe, plan: plan.digest })).data);
    expect(up.outcome).toBe('serving');
    const { stdout } = await lab.run(['show', up.run ?? '', '--json']);
    expect(stdout).toContain('policy.yaml, rule 3');
    await agent.close();
    await other.close();
    await close();
    const down = await lab.run(['down', '--restore']);
    expect(down.stdout).toContain('Stopped. 3 things on spark-b are given back next');
    expect(down.stdout).toContain('Everything is given back');
    expect(down.stdout + down.stderr).not.toMatch(/not given back yet|owed/i);
    expect(holding(lab)).toEqual(HOLDERS);
  });
});

function policyOf(names: readonly string[]): string {
  const rules = [
    '  - {node: spark-b, kind: container, name: comfyui, user: root}',
    '  - {node: spark-b, kind: unit, name: ollama.service, user: ollama}',
    '  - {node: spark-b, kind: process, name: llama-server, user: root}',
  ];
  return `allow:\n${rules.filter((rule) => names.some((name) => rule.includes(name))).join('\n')}\n`;
}

/** Until no run of the lab is open any more. */
async function untilFree(lab: Lab): Promise<void> {
  for (;;) {
    const { stdout } = await lab.run(['show', '--json']);
    if (!stdout.includes('"run-started"') || stdout.includes('"run-ended"')) return;
    await wait(100);
  }
}
