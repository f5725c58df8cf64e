import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { treat } from '../../src/diagnosis/treat.ts';
import { argsOf, editRecipe } from '../../src/domain/recipe.ts';
import { readSglang } from '../../src/lab/engine/command-line.ts';
import { compileInCache } from '../../src/lab/engine/kernel-builds.ts';
import { compileKernels, loadKernels } from '../../src/lab/engine/kernels.ts';
import { PythonError } from '../../src/lab/engine/python-error.ts';
import { schedulerException } from '../../src/lab/engine/sglang-frames.ts';
import { evidenceOf } from '../diagnosis/cases.ts';

function raised(work: () => void): PythonError {
  try {
    work();
  } catch (error) {
    if (error instanceof PythonError) return error;
    throw error;
  }
  throw new Error('nothing was raised');
}

/** What is found in this log of the head, and the recipe that comes out of its cure. */
function cure(log: string, recipe: object = {}) {
  const head = log.split('\n').map((line, at) => (at === 0 ? `[2026-11-29 10:00:00 TP0] ${line}` : line));
  const evidence = evidenceOf({ engine: 'sglang', logs: { head, worker: [] }, recipe, ended: { head: 1 } });
  const finding = diagnose(evidence, { final: true });
  const treatment = treat({
    recipe: evidence.recipe,
    engine: 'sglang',
    finding,
    facts: [],
    evidence,
    tried: [],
  });
  return { finding, after: editRecipe(evidence.recipe, treatment?.edits ?? []) };
}

describe('an image of the lab whose compilers and kernels lack something', () => {
  it('compiles once Triton is pointed to the ptxas of the toolkit, as the remedy does', () => {
    const env = { FIRSTLIGHT_LAB_LACKS: 'ptxas-sm_121a' };
    const { finding, after } = cure(schedulerException(raised(() => compileKernels(env))));
    expect(finding).toMatchObject({ cause: 'bundled-ptxas-too-old', node: 'spark-a' });
    expect(() => compileKernels({ ...env, ...after.env })).not.toThrow();
    expect(() => compileKernels({})).not.toThrow();
  });

  it('loads experts with the kernels of Marlin, as the remedy asks', () => {
    const env = { FIRSTLIGHT_LAB_LACKS: 'expert-kernels-sm_121' };
    const { finding, after } = cure(schedulerException(raised(() => loadKernels(env, undefined))));
    expect(finding).toMatchObject({ cause: 'kernels-not-built-for-sm121', node: 'spark-a' });
    const args = argsOf(after, 'sglang');
    expect(() => loadKernels(env, args[args.indexOf('--moe-runner-backend') + 1])).not.toThrow();
  });

  it.each([
    [['--enable_metrics'], 'flag-misspelled', ['--enable-metrics']],
    [['--max-num-batched-tokens', '8192'], 'flag-of-other-engine', []],
  ])('refuses %j, and takes what the remedy makes of it', (wrong, cause, right) => {
    const words = (args: readonly string[]) => ['--model-path', '/m', ...args];
    const refused = readSglang('sglang serve', words(wrong));
    if (refused.ok) throw new Error('it was not refused');
    const { finding, after } = cure(refused.text, { args: { sglang: wrong } });
    expect(finding.cause).toBe(cause);
    expect(argsOf(after, 'sglang')).toEqual(right);
    expect(readSglang('sglang serve', words(right)).ok).toBe(true);
  });

  it('leaves one of two nodes without its kernel where both compile into one folder, and neither where each has its own', () => {
    const folder = mkdtempSync(join(tmpdir(), 'fl-cache-'));
    const at = (cache: string) => ({
      TRITON_CACHE_DIR: `/srv/cache/${cache}`,
      FIRSTLIGHT_LAB_MOUNTS: `/srv/cache=${folder}`,
    });
    const both = (caches: readonly string[]) =>
      caches
        .map((cache, index) => compileInCache(at(cache), `spark-${index}`))
        .map((one) => {
          try {
            one.check();
            return 'kept';
          } catch (error) {
            return error instanceof Error ? error.message : 'strange';
          }
        });
    expect(both(['triton', 'triton'])).toEqual([expect.stringContaining('Stale file handle'), 'kept']);
    expect(both(['triton', 'triton'])).toEqual([expect.stringContaining('Stale file handle'), 'kept']);
    expect(both(['own-a', 'own-b'])).toEqual(['kept', 'kept']);
    rmSync(folder, { recursive: true, force: true });
  });
});
