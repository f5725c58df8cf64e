import { describe, expect, it } from 'vitest';
import type { StatusReport } from '../../src/domain/report.ts';
import { downAfterEach, liveThrough, of, openLab } from './lab.ts';

downAfterEach();

const GIB = 2 ** 30;

describe('memory eaten by somebody else while a rank comes up', () => {
  it('guarded: the guard stops the rank, the finding has the curve, and a smaller share is proved', async () => {
    const told = await liveThrough('guarded', { env: { FIRSTLIGHT_LAB_SPEED: '8' } });
    expect(told.code).toBe(0);
    expect(of(told.events, 'run-ended')[0]).toMatchObject({ outcome: 'serving' });
    // What follows is the first up's; the story looks at it again with a second one.
    const events = told.events.filter(({ run }) => run === '1');
    const guards = of(events, 'guard').filter(({ attempt, node }) => attempt === 1 && node === 'spark-b');
    expect(guards.map(({ guard }) => guard.state)).toEqual(['guards', 'stopped']);
    expect(guards.at(-1)?.guard).toMatchObject({ by: 'docker', reserveBytes: 3 * GIB });
    const final = of(events, 'finding').filter((one) => one.final);
    expect(final).toMatchObject([{ cause: 'memory-exhausted-rank-stopped', node: 'spark-b', rank: 1 }]);
    expect(final[0]?.values['curve']).toMatch(/^-\d+:\d+ .*0:\d+$/);
    expect(final[0]?.values['holder']).toBe('reindex');
    const cause = { cause: 'memory-exhausted-rank-stopped', remedy: 'less-memory' };
    expect(of(events, 'remedy-applied')).toMatchObject([
      { ...cause, edits: [{ path: 'memory.fraction', from: 0.8, to: 0.75 }] },
    ]);
    expect(of(events, 'remedy-proved')).toMatchObject([cause]);
    // What was eaten is somebody's work, and nobody allowed to stop it.
    expect(
      of(events, 'step-started').filter(
        ({ kind }) => kind !== 'start-rank' && kind !== 'stop-rank' && kind !== 'await-memory',
      ),
    ).toEqual([]);
    const measured = of(events, 'memory-measured').filter(({ measured }) => measured.served);
    expect(measured.map(({ measured: { node, weightsBytes } }) => [node, weightsBytes])).toEqual(
      [
        ['spark-b', 59.2 * GIB],
        ['spark-a', 59.2 * GIB],
      ].map(([node, bytes]) => [node, expect.closeTo(Number(bytes), -8)]),
    );
  }, 240_000);

  it('clean-start: status and the next plan say what was measured', async () => {
    const lab = await openLab('clean-start', { env: { FIRSTLIGHT_LAB_SPEED: '4' } });
    expect((await lab.run(['up', 'recipe.yaml', '--json'])).code).toBe(0);
    const status: StatusReport = JSON.parse((await lab.run(['status', '--json'])).stdout);
    expect(status.services[0]?.ranks.map(({ guard }) => [guard?.state, guard?.alive])).toEqual([
      ['guards', true],
      ['guards', true],
    ]);
    expect((await lab.run(['down', '--json'])).code).toBe(0);
    const plan = (await lab.run(['plan', 'recipe.yaml', '--why'])).stdout;
    expect(plan).toMatch(/measured once on this cluster \(run 1, /);
    const left = await lab.on('spark-a', 'ps -eo args | grep "[g]uard.sh" || true');
    expect(left.stdout).not.toContain(lab.folder);
  }, 240_000);
});
