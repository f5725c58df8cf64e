import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { AdoptReport, LogsReport, PlanReport, StatusReport } from '../../src/domain/report.ts';
import { downAfterEach, type Lab, openLab } from './lab.ts';

downAfterEach();

/** Starts the pair as a person does who types docker run on each host. */
async function startByHand(lab: Lab): Promise<void> {
  const { stdout } = await lab.run(['plan', 'recipe.yaml', '--json']);
  const { plan }: PlanReport = JSON.parse(stdout);
  for (const { node, rank, argv, env } of plan.phases.flatMap(({ services }) => services)) {
    const [docker, run, ...rest] = argv.map((word) => (typeof word === 'string' ? word : ''));
    const words = [docker, run, '-d', '--name', `hand-${rank}`, ...rest].map((word) => `'${word}'`);
    const variables = Object.entries(env).map(([name, value]) => `export ${name}='${value}';`);
    const started = await lab.on(node, `${variables.join(' ')} ${words.join(' ')}`);
    expect(started.stderr).toBe('');
    expect(started.code).toBe(0);
  }
}

async function untilServing(lab: Lab): Promise<StatusReport> {
  for (let tries = 0; ; tries += 1) {
    const status = await lab.run(['status', '--json']);
    if (status.code === 0 || tries > 60) return JSON.parse(status.stdout);
    await wait(300);
  }
}

describe('firstlight adopt', () => {
  it('finds a pair that was started by hand, takes it into status, logs and down, and touches nothing before', async () => {
    const lab = await openLab('clean-start');
    expect((await lab.run(['adopt'])).code).toBe(1);
    await startByHand(lab);
    let found: AdoptReport = { kind: 'adopt', ranks: [], command: undefined, adopts: undefined };
    // Until the ranks hold memory they are nobody that a look names.
    for (let tries = 0; tries < 40 && found.ranks.length < 2; tries += 1) {
      found = JSON.parse((await lab.run(['adopt', '--json'])).stdout);
    }
    expect(found.ranks).toMatchObject([
      { rank: 0, node: 'spark-a', target: 'hand-0' },
      { rank: 1, node: 'spark-b', target: 'hand-1' },
    ]);
    expect(found.command).toBe(
      'firstlight adopt --rank 0=spark-a:hand-0 --rank 1=spark-b:hand-1 --engine sglang --port 30000',
    );
    const words = found.command?.split(' ').slice(1) ?? [];
    const adopted = await lab.run(words);
    expect(adopted.stderr).not.toContain('mistake');
    expect(adopted.code).toBe(0);
    expect((await lab.run(words)).code).toBe(0);

    const status = await untilServing(lab);
    expect(status.services).toMatchObject([
      { recipe: 'by-hand', serving: true, engine: 'sglang', port: 30000 },
    ]);
    for (const { text } of status.services[0]?.ranks ?? []) expect(text).toMatch(/^adopted, /);

    const logs: LogsReport = JSON.parse((await lab.run(['logs', '--rank', '1', '--json'])).stdout);
    expect(logs.lines.length).toBeGreaterThan(10);
    const { stdout } = await lab.on('spark-b', 'docker logs hand-1 2>&1 | head -1');
    expect(logs.lines[0]?.text).toBe(stdout.trim());

    // It is no recipe's: up takes it neither for its own nor out of the way.
    expect((await lab.run(['up', 'recipe.yaml'])).code).not.toBe(0);
    const down = await lab.run(['down']);
    expect(down.code).toBe(0);
    for (const [host, name] of [
      ['spark-a', 'hand-0'],
      ['spark-b', 'hand-1'],
    ] as const) {
      const there = await lab.on(host, `docker inspect -f '{{.State.Running}}' ${name}`);
      expect(there.stdout.trim()).toBe('false');
    }
    expect((await lab.run(['status'])).code).toBe(1);
  }, 240_000);

  it('refuses what is not there, and leaves no record of it', async () => {
    const lab = await openLab('clean-start');
    for (const rank of ['0=spark-a:nobody', '0=spark-a:4194000', '0=spark-z:1', 'x']) {
      const ended = await lab.run(['adopt', '--rank', rank, '--engine', 'vllm']);
      expect(ended.code).toBe(2);
    }
    expect((await lab.on('spark-a', 'ls .firstlight/*/ranks')).stdout.trim()).toBe('');
  }, 120_000);
});
