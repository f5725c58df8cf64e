import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { proved, type Tried, treat } from '../../src/diagnosis/treat.ts';
import type { Evidence } from '../../src/domain/evidence.ts';
import { known, type NodeFacts } from '../../src/domain/facts.ts';
import type { Treatment } from '../../src/domain/finding.ts';
import { editRecipe } from '../../src/domain/recipe.ts';
import { remedies } from '../../src/knowledge/remedies/index.ts';
import { evidenceOf, readCase } from './cases.ts';
import { sparkFacts } from './facts.ts';

function cure(
  evidence: Evidence,
  tried: readonly Tried[] = [],
  facts: readonly NodeFacts[] = [],
): Treatment | undefined {
  const finding = diagnose(evidence, { final: true });
  const treatment = treat({
    recipe: evidence.recipe,
    engine: evidence.engine,
    finding,
    facts,
    evidence,
    tried,
  });
  // Whatever a remedy edits, what comes out is a recipe.
  if (treatment !== undefined) editRecipe(evidence.recipe, treatment.edits);
  return treatment;
}

const logOf = (name: string) => {
  const { engine, logs } = readCase(name);
  return { engine, logs };
};

describe('a remedy', () => {
  const loopback = logOf('gloo-hostname-resolves-to-loopback');

  it('against loopback gives each rank its own addresses', () => {
    expect(cure(evidenceOf({ ...loopback, recipe: { network: 'engine' } }))).toMatchObject({
      remedy: 'use-node-addresses',
      cause: 'loopback-address-advertised',
      node: 'spark-b',
      edits: [{ path: 'network', from: 'engine', to: 'auto' }],
    });
  });

  it('is not tried where what it does is done already', () => {
    expect(cure(evidenceOf({ ...loopback, recipe: { network: 'auto' } }))).toBeUndefined();
  });

  it('takes away one value that was meant for all nodes', () => {
    const recipe = { network: 'auto', env: { GLOO_SOCKET_IFNAME: '^lo', OMP_NUM_THREADS: 4 } };
    const evidence = evidenceOf({ ...logOf('034-gloo-ifname-does-not-take-negation'), recipe });
    const treatment = cure(evidence);
    expect(treatment?.edits).toEqual([{ path: 'env.GLOO_SOCKET_IFNAME', from: '^lo', to: undefined }]);
    expect(editRecipe(evidence.recipe, treatment?.edits ?? []).env).toEqual({ OMP_NUM_THREADS: '4' });
  });

  it('that the next plan carries out edits nothing', () => {
    expect(cure(evidenceOf(logOf('cuda-oom-at-set-device')))).toMatchObject({
      remedy: 'look-again',
      edits: [],
    });
  });

  it('is tried once per engine', () => {
    const evidence = evidenceOf({ ...loopback, recipe: { network: 'engine' } });
    const once = {
      engine: 'vllm' as const,
      remedy: 'use-node-addresses',
      cause: 'loopback-address-advertised',
    };
    expect(cure(evidence, [once])).toBeUndefined();
    expect(cure(evidence, [{ ...once, engine: 'sglang' }])).toBeDefined();
  });

  it.each([
    [
      'sglang' as const,
      'ValueError: User-specified context_length (1000000) is greater than the derived context_length (262144). This may lead to incorrect model outputs or CUDA errors.',
    ],
    [
      'vllm' as const,
      "  Value error, User-specified max_model_len (1000000) is greater than the derived max_model_len (max_position_embeddings=262144 or model_max_length=None in model's config.json).",
    ],
  ])('shortens a context that %s does not find in the model', (engine, line) => {
    const logs = { head: [line], worker: [line] };
    const evidence = evidenceOf({
      engine,
      logs,
      recipe: { context: 1000000 },
      ended: { head: 1, worker: 1 },
    });
    expect(cure(evidence)).toMatchObject({
      cause: 'context-longer-than-model',
      edits: [{ path: 'context', from: 1000000, to: 262144 }],
    });
  });

  it('asks for less where nobody holds what the engine misses', () => {
    const check =
      'ValueError: Free memory on device cuda:0 (112.82/119.7 GiB) on startup is less than desired GPU memory utilization (0.95, 113.72 GiB).';
    const memory = { freeBytes: 90 * 2 ** 30, availableBytes: 115 * 2 ** 30, cachedBytes: 25 * 2 ** 30 };
    const after = [sparkFacts({ node: 'spark-a', memory })];
    const recipe = { memory: { fraction: 0.95 } };
    const evidence = evidenceOf({
      engine: 'vllm',
      logs: { head: [check] },
      recipe,
      after,
      ended: { head: 1 },
    });
    const looked = {
      engine: 'vllm' as const,
      cause: 'insufficient-free-memory-at-startup',
      remedy: 'look-again',
    };
    expect(cure(evidence, [], after)?.remedy).toBe('look-again');
    expect(cure(evidence, [looked], after)).toMatchObject({
      title: 'Give the engine 87 % of the memory',
      edits: [{ path: 'memory.fraction', from: 0.95, to: 0.87 }],
    });
  });

  it('moves the rendezvous to ports that are free, never the API', () => {
    const log = (port: number) => ({
      head: [
        `torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: ${port}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use`,
      ],
    });
    const ports = [20_105, 20_200].map((port) => ({
      address: '0.0.0.0',
      port,
      pid: known(1),
      process: known('x'),
    }));
    const facts = [sparkFacts({ node: 'spark-a', more: { ports: known(ports) } })];
    expect(cure(evidenceOf({ engine: 'sglang', logs: log(20_000) }), [], facts)?.edits).toEqual([
      { path: 'rendezvousPort', from: 20_000, to: 20_300 },
    ]);
    expect(cure(evidenceOf({ engine: 'sglang', logs: log(30_000) }), [], facts)).toMatchObject({
      remedy: 'look-again',
      title: 'Look at spark-a again and clear what holds port 30000',
      edits: [],
    });
  });

  it.each([
    ['--enable-reasoning', ['--enable-reasoning', '--x', '1'], ['--x', '1']],
    ['--swap-space', ['--a', '--swap-space', '4', '--x'], ['--a', '--x']],
    ['--swap-space=4', ['--swap-space=4', '--x'], ['--x']],
    ['--enable_metrics', ['--enable_metrics', '--x'], ['--enable-metrics', '--x']],
  ])('leaves out or corrects the flag %s', (written, before, after) => {
    const head = [`launch_server.py: error: unrecognized arguments: ${written}`];
    const recipe = { args: { sglang: before } };
    expect(cure(evidenceOf({ engine: 'sglang', logs: { head }, recipe }))?.edits).toEqual([
      { path: 'args.sglang', from: before, to: after },
    ]);
  });

  it('does not touch a flag that the recipe did not give', () => {
    const head = ['vllm: error: unrecognized arguments: --headless'];
    expect(cure(evidenceOf({ engine: 'vllm', logs: { head } }))).toBeUndefined();
  });

  it("takes the engine's own estimate for a context, rounded down", () => {
    const head = [
      "ValueError: To serve at least one request with the model's max seq len (196608), 23.25 GiB KV cache is needed, which is larger than the available KV cache memory (22.5 GiB). Based on the available memory, the estimated maximum model length is 190160. Try increasing `gpu_memory_utilization`.",
    ];
    const treatment = cure(evidenceOf({ engine: 'vllm', logs: { head }, recipe: { context: 196_608 } }));
    expect(treatment).toMatchObject({
      remedy: 'shorter-context',
      edits: [{ path: 'context', from: 196_608, to: 189_440 }],
    });
    expect(treatment?.cost).toContain('196,608');
  });

  it('gives the engine more memory, but not so much that a Spark locks up', () => {
    const head = [
      'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`',
    ];
    const facts = [sparkFacts({ node: 'spark-a' })];
    const at = (fraction: number) =>
      evidenceOf({ engine: 'vllm', logs: { head }, recipe: { memory: { fraction } } });
    expect(cure(at(0.8), [], facts)?.edits).toEqual([{ path: 'memory.fraction', from: 0.8, to: 0.85 }]);
    expect(cure(at(0.85), [], facts)).toBeUndefined();
  });

  it('never trusts code of a model for the user, and never treats what is unknown', () => {
    expect(cure(evidenceOf(logOf('121-trust-remote-code-missing')))).toBeUndefined();
    expect(
      cure(evidenceOf({ engine: 'vllm', logs: { head: ['Killed'] }, ended: { head: 1 } })),
    ).toBeUndefined();
  });

  it('has a name of its own', () => {
    expect(new Set(remedies.map((one) => one.name)).size).toBe(remedies.length);
  });
});

describe('a treatment', () => {
  const captured = readCase('gloo-hostname-resolves-to-loopback').logs;
  const begun = (rank: number, log: Buffer | undefined) =>
    `[2026-11-29 10:00:09 TP${rank}] Init torch distributed begin.\n${log?.toString('utf8')}`;
  const failedOnce = evidenceOf({
    engine: 'sglang',
    logs: { head: begun(0, captured['head']), worker: begun(1, captured['worker']) },
    recipe: { network: 'engine' },
  });
  const finding = diagnose(failedOnce, { final: true });
  const treatment = treat({
    recipe: failedOnce.recipe,
    engine: 'sglang',
    finding,
    facts: [],
    evidence: failedOnce,
    tried: [],
  });
  if (treatment === undefined) throw new Error('no treatment');
  const before = { finding, treatment };
  const log = (rank: number, more: readonly string[]) => [
    `[2026-11-29 10:00:09 TP${rank}] Init torch distributed begin.`,
    ...more,
  ];
  const begins = (rank: number) => `[2026-11-29 10:00:18 TP${rank}] Load weight begin. avail mem=107.40 GB`;

  it('is open while the ranks stand where it failed before', () => {
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: { head: log(0, []), worker: log(1, []) },
      silence: 1000,
    });
    expect(proved(before, evidence)).toBe('open');
  });

  it('is proved when they get past that stage', () => {
    const logs = { head: log(0, [begins(0)]), worker: log(1, [begins(1)]) };
    expect(proved(before, evidenceOf({ engine: 'sglang', logs, silence: 1000 }))).toBe('proved');
  });

  it('is proved even if the attempt then fails of something else', () => {
    const oom = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB.';
    const logs = { head: log(0, [begins(0), oom]), worker: log(1, [begins(1)]) };
    expect(proved(before, evidenceOf({ engine: 'sglang', logs, silence: 1000 }))).toBe('proved');
  });

  it('waits for an answer where it failed while it served', () => {
    const ready = '[2026-11-29 10:00:30] The server is fired up and ready to roll!';
    const dummy =
      '[2026-11-29 10:00:30] Dummy health check server started in background thread at 127.0.0.1:30000';
    const logs = { head: log(0, [begins(0), ready]), worker: log(1, [begins(1), dummy]) };
    const seen = evidenceOf({ engine: 'sglang', logs, silence: 1000 });
    expect(proved(before, seen)).toBe('proved');
    expect(proved({ ...before, finding: { ...finding, stage: 'serving' } }, seen)).toBe('open');
  });

  it('failed when the same cause is found on the same node', () => {
    expect(proved(before, failedOnce)).toBe('failed');
  });
});
