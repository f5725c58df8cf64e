import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { RunsReport } from '../../src/domain/report.ts';
import { downAfterEach, endOf, FAST, of, openLab } from './lab.ts';

downAfterEach();

const LIMIT = 240_000;
const UP = ['up', 'recipe.yaml', '--json'];

it(
  'what one run proved is there from the first attempt of the next, until it is left out',
  async () => {
    const lab = await openLab('clean-start', { env: FAST });
    const file = lab.file('recipe.yaml');
    writeFileSync(file, `${readFileSync(file, 'utf8').replace(/^network:.*\n/m, '')}network: engine\n`);
    const first = await lab.run(UP);
    expect(endOf(first.events)).toMatchObject({ outcome: 'serving' });
    expect(of(first.events, 'remedy-proved')).toMatchObject([{ remedy: 'use-node-addresses' }]);
    expect((await lab.run(['down'])).code).toBe(0);

    const listed: RunsReport = JSON.parse((await lab.run(['runs', '--remedies', '--json'])).stdout);
    expect(listed.remedies).toMatchObject([
      { remedy: 'use-node-addresses', cause: 'loopback-address-advertised', engine: 'sglang' },
    ]);
    const next = await lab.run(UP);
    expect(endOf(next.events)).toMatchObject({ outcome: 'serving' });
    expect(of(next.events, 'finding')).toEqual([]);
    expect(
      of(next.events, 'note')
        .map(({ text }) => text)
        .join(),
    ).toContain('from the first attempt on');
    expect(of(next.events, 'serving')[0]?.edits).toMatchObject([{ path: 'network', to: 'auto' }]);
    expect((await lab.run(['down'])).code).toBe(0);

    const anew = await lab.run(['plan', 'recipe.yaml', '--anew', '--json']);
    expect(JSON.parse(anew.stdout).plan.edits).toEqual([]);
    const planned = await lab.run(['plan', 'recipe.yaml', '--json']);
    expect(JSON.parse(planned.stdout).plan.edits).toHaveLength(1);
  },
  LIMIT,
);

it(
  'an engine whose image failed where the next one served is skipped the next time, with the reason',
  async () => {
    const lab = await openLab('engine-fallback', { env: FAST });
    expect(endOf((await lab.run(UP)).events)).toMatchObject({ outcome: 'serving' });
    expect((await lab.run(['down'])).code).toBe(0);
    const next = await lab.run(UP);
    expect(endOf(next.events)).toMatchObject({ outcome: 'serving' });
    expect(of(next.events, 'engine-changed')).toMatchObject([{ from: 'sglang', to: 'vllm' }]);
    expect(of(next.events, 'engine-changed')[0]?.why).toMatch(/skipped untried.*same build in run 1/);
    expect(of(next.events, 'finding')).toEqual([]);
  },
  LIMIT,
);
