import { expect, test } from 'vitest';
import { fitOf } from '../../src/planning/fit/fit.ts';
import { fitting, GIB, inputFor, model, weights } from './ask.ts';

const spark = { unified: true, total: 121.69 };

test('a start that asks for more than is free is refused, whatever the model', () => {
  const found = fitting('GLM-5.3-Flash', {
    ...spark,
    available: 102.2,
    layout: { nodes: 2, tensor: 2 },
    settings: { fraction: 0.87 },
  });
  expect(found.verdict).toBe('does not fit');
  expect(found.startCheck).toMatchObject({ passes: false });
  expect((found.startCheck.needsBytes ?? 0) / GIB).toBeCloseTo(105.87, 1);
});

test('a cache too small for one request does not fit, and a smaller quantisation is told', () => {
  const found = fitting('Qwen3-Coder-480B-A35B', {
    total: 139.8,
    layout: { tensor: 1, data: 8, expert: 8 },
    context: 262_144,
    settings: { fraction: 0.9 },
  });
  expect(found.verdict).toBe('does not fit');
  expect(found.why).toMatch(/one request of 262,144 tokens/);
  expect(found.changes.map(({ change }) => change)).toContain('quantization');
});

test('the largest context is one that fits, and the next step does not', () => {
  const asked = {
    total: 79.1,
    layout: { tensor: 2 },
    context: 131_072,
    settings: { fraction: 0.9 },
    sequences: 16,
  };
  const found = fitting('Llama-3.3-70B', asked);
  const change = found.changes.find((one) => one.change === 'context');
  if (change === undefined || typeof change.to !== 'number') {
    expect(found.verdict).not.toBe('fits');
    return;
  }
  expect(fitting('Llama-3.3-70B', { ...asked, context: change.to }).verdict).toBe(change.verdict);
  expect(fitting('Llama-3.3-70B', { ...asked, context: change.to + 1024 }).verdict).not.toBe('fits');
});

test('a context past the model’s own limit is told, and that limit is the change', () => {
  const found = fitting('Qwen3-8B', { total: 79.1, context: 100_000 });
  expect(found.verdict).toBe('may boot');
  expect(found.changes).toContainEqual(
    expect.objectContaining({ change: 'context', to: 40_960, verdict: 'fits' }),
  );
});

test('sizes that do not divide do not fit, with the sentence', () => {
  expect(fitting('Qwen3-8B', { layout: { tensor: 3 }, total: 79.1 })).toMatchObject({
    verdict: 'does not fit',
    why: 'The model has 32 attention heads, which tensor 3 does not divide.',
  });
  expect(fitting('Qwen3-30B-A3B-FP8', { layout: { tensor: 4 }, total: 79.1 }).why).toMatch(
    /blocks of 128; tensor 4 leaves 192/,
  );
  expect(fitting('Qwen3-30B-A3B-FP8', { layout: { tensor: 2 }, total: 79.1 }).verdict).toBe('fits');
  expect(fitting('Qwen3-235B-A22B-FP8', { layout: { tensor: 8, expert: 8 }, total: 79.1 }).verdict).toBe(
    'fits',
  );
  expect(fitting('Qwen3-235B-A22B-FP8', { layout: { tensor: 8 }, total: 79.1 }).why).toMatch(/blocks of 128/);
  expect(
    fitting('Qwen3-235B-A22B', { engine: 'sglang', layout: { tensor: 4, expert: 3 }, total: 139 }).why,
  ).toMatch(/Expert 3/);
  expect(fitting('Qwen3-8B', { layout: { nodes: 3, tensor: 2 }, total: 79.1 }).why).toMatch(
    /2 ranks cannot be shared evenly by 3 nodes/,
  );
});

test('a hybrid with more sequences than pages of state is refused before its graphs, not without them', () => {
  const asked = { total: 31.4, context: 32_768, settings: { kvCacheDtype: 'fp8' } };
  expect(fitting('Qwen3.6-27B-NVFP4', asked)).toMatchObject({
    verdict: 'does not fit',
    why: expect.stringContaining('pages of state'),
  });
  expect(
    fitting('Qwen3.6-27B-NVFP4', { ...asked, settings: { ...asked.settings, eager: true } }).verdict,
  ).toBe('fits');
});

test('without the memory the numbers stand and the verdict is unknown', () => {
  const found = fitting('Llama-3.1-8B');
  expect(found.verdict).toBe('unknown');
  expect(weights('Llama-3.1-8B')).toBeCloseTo(15, 0);
  expect(found.startCheck).toEqual({ needsBytes: null, hasBytes: null, passes: null });
});

test('an unknown method or cache type is a rule, never an error', () => {
  const found = fitting('Llama-3.1-8B', {
    total: 79.1,
    settings: { kvCacheDtype: 'int3_odd', speculative: { method: 'oracle', tokens: 2 } },
  });
  expect(found.rules.map(({ rule }) => rule).join('\n')).toMatch(/"int3_odd" is no cache type known here/);
  expect(found.rules.map(({ rule }) => rule).join('\n')).toMatch(/oracle, a method not known here/);
  // Both have a wide bar, and the check of the cache is as unsure as its type.
  const bar = (words: RegExp): number => found.rules.find(({ rule }) => words.test(rule))?.errorBytes ?? 0;
  expect(bar(/int3_odd/)).toBeGreaterThan(10 * GIB);
  expect(bar(/oracle/)).toBe(2 * GIB);
  const unsure = (kvCacheDtype: string): number =>
    fitting('Llama-3.1-8B', { total: 79.1, settings: { kvCacheDtype } }).checks.find(
      ({ name }) => name === 'cache',
    )?.errorBytes ?? 0;
  expect(unsure('int3_odd') - unsure('bfloat16')).toBeCloseTo(131_072 * 131_072, -6);
});

test('every figure of a rank has a rule, and every rule of a figure a bar', () => {
  for (const engine of ['vllm', 'sglang'] as const) {
    const { rules } = fitting('Qwen3.6-35B-A3B', { ...spark, engine, available: 112, context: 65_536 });
    for (const about of [
      'weights',
      'overhead',
      'cache',
      'block',
      'pool',
      'concurrency',
      'peak',
      'load',
      'start check',
    ])
      expect(rules.find((one) => one.about === about)?.errorBytes, `${engine} ${about}`).toEqual(
        expect.any(Number),
      );
  }
});

test('what an earlier run measured goes before the prediction, and is said to', () => {
  const seen = { bytes: 70 * GIB, times: 3, spreadBytes: GIB, from: 'run 42' };
  const found = fitting('Qwen3.6-35B-A3B', {
    ...spark,
    settings: { fraction: 0.8 },
    learned: [
      { ...seen, what: 'weightsBytes' },
      { ...seen, what: 'overheadBytes', bytes: 5 * GIB },
    ],
  });
  expect(found.rules.find(({ about }) => about === 'overhead')?.rule).toMatch(/measured 3 times/);
  expect(found.ranks[0]?.weightsBytes).toBe(70 * GIB);
  expect(found.rules).toContainEqual({
    about: 'weights',
    rule: expect.stringContaining('measured 3 times on this cluster (run 42)'),
    errorBytes: GIB,
  });
});

test('SGLang’s share of what is free is only told where that is said', () => {
  const asked = { ...spark, engine: 'sglang' as const, settings: { fraction: 0.8 } };
  expect(fitting('Qwen3.6-27B-FP8', asked).verdict).toBe('may boot');
  expect(fitting('Qwen3.6-27B-FP8', { ...asked, available: 112 }).verdict).toBe('fits');
  // Much of the host is taken already: the same fraction leaves nothing.
  expect(fitting('Qwen3.6-27B-FP8', { ...asked, available: 30 }).verdict).toBe('does not fit');
});

test('a smaller quantisation keeps what it does not touch', () => {
  const whole = model('Qwen3.6-35B-A3B');
  const found = fitting(whole, { total: 79.1, context: 65_536, sequences: 64, settings: { fraction: 0.7 } });
  const smaller = found.changes.find(({ change }) => change === 'quantization');
  expect(smaller?.to).toMatch(/FP8/);
});

test('where no change does alone, a fraction that starts and one more beside it do', () => {
  const asked = { ...spark, available: 100, layout: { nodes: 4, tensor: 4 } };
  const found = fitting('Qwen3-235B-A22B', asked);
  expect(found.verdict).toBe('does not fit');
  expect(found.changes.map(({ change }) => change)).toContain('together');
  expect(found.changes.map(({ to }) => to)).toContainEqual(
    expect.stringMatching(
      /^fraction 0\.8\d, 8 nodes, tensor 4, pipeline 2$|^fraction 0\.8\d, 8 nodes, tensor 8/,
    ),
  );
});

test('a tensor size that does not divide is mended by another share of the same ranks, or by fewer', () => {
  const layout = (name: string, tensor: number, total = 79.1): unknown =>
    fitting(name, { total, context: 8192, layout: { tensor } }).changes.find(
      ({ change }) => change === 'layout',
    )?.to;
  // 20 heads.
  expect(layout('GLM-4.7-Flash', 8)).toBe('1 node, tensor 4, pipeline 2');
  // Experts of 768 in blocks of 128.
  expect(layout('Qwen3-30B-A3B-FP8', 4)).toBe('1 node, tensor 4, pipeline 1, expert 4');
  expect(layout('Qwen3-8B', 7)).toBe('1 node, tensor 1, pipeline 7');
});

test('what is offloaded to the host leaves a card, and stays on unified memory', () => {
  const peak = (unified: boolean, cpuOffloadBytes: number): number =>
    fitting('Qwen3-8B', { unified, total: 121.69, settings: { kvCacheBytes: 4 * GIB, cpuOffloadBytes } })
      .ranks[0]?.peakBytes ?? 0;
  expect(peak(false, 0) - peak(false, 4 * GIB)).toBe(4 * GIB);
  expect(peak(true, 4 * GIB)).toBe(peak(true, 0));
  const pool = (cpuOffloadBytes: number): number =>
    fitting('Qwen3-8B', { engine: 'sglang', total: 24, settings: { cpuOffloadBytes } }).ranks[0]
      ?.poolTokens ?? 0;
  expect(pool(4 * GIB) - pool(0)).toBeCloseTo((4 * GIB) / 147_456, -1);
});

test('a fraction that nobody set is told with where it comes from', () => {
  const input = inputFor('Qwen3-8B', { ...spark, settings: { fraction: 0.77 } });
  const said = (fractionFrom?: string): string | undefined =>
    fitOf({ ...input, fractionFrom }).rules.find(({ about }) => about === 'fraction')?.rule;
  expect(said()).toBeUndefined();
  expect(said('which up would launch with')).toBe('0.77, which up would launch with');
});
