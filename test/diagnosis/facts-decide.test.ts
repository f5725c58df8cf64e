import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { treat } from '../../src/diagnosis/treat.ts';
import type { UnreachableWhy } from '../../src/domain/command.ts';
import { known, type NodeFacts } from '../../src/domain/facts.ts';
import type { Service } from '../../src/domain/plan.ts';
import { evidenceOf, readCase } from './cases.ts';
import { holderOf, sparkFacts } from './facts.ts';

const GIB = 2 ** 30;
const SET_DEVICE = [
  '[2026-11-29 10:00:09 TP1] Init torch distributed begin.',
  'Traceback (most recent call last):',
  '    torch.cuda.set_device(0)',
  'torch.AcceleratorError: CUDA error: out of memory',
];
const START_CHECK = [
  'ValueError: Free memory on device cuda:0 (14.02/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.',
];

function onWorker(
  lines: readonly string[],
  facts: { before?: readonly NodeFacts[]; after?: readonly NodeFacts[] },
) {
  return diagnose(
    evidenceOf({
      engine: lines === START_CHECK ? 'vllm' : 'sglang',
      logs: { head: [], worker: lines },
      ...facts,
    }),
    { final: facts.after !== undefined },
  );
}

describe('memory that is missing before any weight is read', () => {
  const held = sparkFacts({ node: 'spark-b', holders: [holderOf(88)], memory: { freeBytes: 20 * GIB } });
  const cached = sparkFacts({
    node: 'spark-b',
    memory: { freeBytes: 14 * GIB, availableBytes: 110 * GIB, cachedBytes: 96 * GIB },
  });
  const own = sparkFacts({
    node: 'spark-b',
    holders: [holderOf(88, { owner: { kind: 'rank', name: 'model-x-r1' } })],
    memory: { freeBytes: 100 * GIB },
  });

  it.each([
    ['set_device', SET_DEVICE],
    ["vLLM's start check", START_CHECK],
  ])('at %s is a holder that the look after it names', (_at, lines) => {
    const finding = onWorker(lines, { before: [sparkFacts({ node: 'spark-b' })], after: [held] });
    expect(finding).toMatchObject({
      cause: 'leftover-process-holds-gpu-memory',
      node: 'spark-b',
      rank: 1,
      role: 'worker',
      final: true,
      values: { holder: 'python3', pid: '4242' },
    });
    expect(finding.title).toBe('python3 holds 88.0 GiB on spark-b, and the engine found too little left');
    expect(finding.advice[0]).toBe('On spark-b: sudo kill 4242');
  });

  it('is called a holder in the provisional finding, when nothing was looked at yet', () => {
    const finding = onWorker(SET_DEVICE, { before: [sparkFacts({ node: 'spark-b' })] });
    expect(finding).toMatchObject({
      cause: 'leftover-process-holds-gpu-memory',
      node: 'spark-b',
      final: false,
    });
  });

  it('is page cache where memory is full of it and nobody holds any', () => {
    expect(onWorker(START_CHECK, { after: [cached] })).toMatchObject({
      cause: 'page-cache-hides-unified-memory',
      node: 'spark-b',
    });
    expect(onWorker(SET_DEVICE, { after: [cached] }).cause).toBe('page-cache-hides-unified-memory');
  });

  it('is too large a wish where the engine saw all that is available, cache and all', () => {
    const seen = sparkFacts({
      node: 'spark-b',
      memory: { freeBytes: 90 * GIB, availableBytes: 115 * GIB, cachedBytes: 25 * GIB },
    });
    const check =
      'ValueError: Free memory on device cuda:0 (112.82/119.7 GiB) on startup is less than desired GPU memory utilization (0.95, 113.72 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.';
    expect(onWorker([check], { after: [seen] })).toMatchObject({
      cause: 'insufficient-free-memory-at-startup',
      node: 'spark-b',
    });
  });

  it('is not the memory of our own ranks', () => {
    expect(onWorker(START_CHECK, { after: [own] }).cause).toBe('insufficient-free-memory-at-startup');
  });

  it('lies with the node that has too little, not with the one that says so', () => {
    const line =
      'ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=15.90, local_gpu_memory=108.52, local_gpu_memory * 0.9=97.67';
    const evidence = evidenceOf({ engine: 'sglang', logs: { head: [line], worker: [] }, after: [held] });
    expect(diagnose(evidence, { final: true })).toMatchObject({
      cause: 'leftover-process-holds-gpu-memory',
      node: 'spark-b',
    });
  });
});

describe('a value that a flag does not take', () => {
  const head = [
    "sglang: error: argument --reasoning-parser: invalid choice: 'nosuch' (choose from 'qwen3', 'glm45')",
  ];
  const adviceFor = (recipe: object) =>
    diagnose(evidenceOf({ engine: 'sglang', logs: { head }, recipe }), { final: true }).advice[0];

  it('is corrected where the recipe says it', () => {
    expect(adviceFor({ serve: { reasoning: 'nosuch' } })).toBe(
      'Correct serve.reasoning in the recipe, which gives --reasoning-parser; the line above names what it takes.',
    );
    expect(adviceFor({ args: { sglang: ['--reasoning-parser=nosuch'] } })).toContain('in args.sglang');
  });
});

describe('memory that runs out later', () => {
  const oom =
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB. GPU 0 has a total capacity of 121.69 GiB of which 1.10 GiB is free.';

  it.each([
    ['[2026-11-29 10:00:18 TP0] Load weight begin. avail mem=107.40 GB', 'unknown', 'weights'],
    [
      '[2026-11-29 10:01:05 TP0] Load weight end. elapsed=46.90 s, avail mem=9.10 GB, mem usage=98.30 GB.',
      'too-many-sequences-for-memory',
      'kv',
    ],
    [
      '[2026-11-29 10:01:07 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=2.10 GB',
      'cuda-graph-capture-oom',
      'graphs',
    ],
  ])('after "%s" is %s', (before, cause, stage) => {
    const finding = diagnose(evidenceOf({ engine: 'sglang', logs: { head: [before, oom] } }), {
      final: true,
    });
    expect(finding).toMatchObject({ cause, stage, node: 'spark-a' });
  });
});

describe('an address', () => {
  const fabric = (node: string, address: string) =>
    sparkFacts({
      node,
      more: {
        interfaces: known([
          {
            name: 'enp1s0f0np0',
            up: true,
            mtu: 9000,
            speedMbps: known(200_000),
            addresses: [{ address, prefix: 24 }],
            reaches: ['other'],
          },
          {
            name: 'wlan0',
            up: true,
            mtu: 1500,
            speedMbps: known(1000),
            addresses: [{ address: '10.1.230.181', prefix: 24 }],
            reaches: [],
          },
        ]),
      },
    });
  const before = [fabric('spark-a', '192.168.200.12'), fabric('spark-b', '192.168.200.13')];
  const gloo = (remote: string, words: string) =>
    `RuntimeError: Gloo connectFullMesh failed with [/x/pair.cc:152] timed out connecting: SO_ERROR: ${words}, remote=[${remote}]:15285$0`;

  it('of the fabric that refuses is no fault of the address', () => {
    const evidence = evidenceOf({
      engine: 'vllm',
      logs: { head: [gloo('192.168.200.13', 'Connection refused')], worker: [] },
      before,
    });
    expect(diagnose(evidence, { final: true }).cause).toBe('unknown');
  });

  it('of another network is named with the right one', () => {
    const evidence = evidenceOf({
      engine: 'vllm',
      logs: { head: [gloo('10.1.230.181', 'Connection timed out')], worker: [] },
      before,
    });
    const finding = diagnose(evidence, { final: true });
    expect(finding.cause).toBe('wrong-network-address-advertised');
    expect(finding.why).toContain('192.168.200');
  });

  it('that SGLang gives its queue is told from the silence after the line', () => {
    const waits = (rank: number) => [
      `[2026-11-29 10:00:09 TP${rank}] Init torch distributed begin.`,
      `[2026-11-29 10:00:17 TP${rank}] CustomAllreduce is disabled because this process group spans across nodes.`,
    ];
    const input = {
      engine: 'sglang' as const,
      logs: { head: waits(0), worker: waits(1) },
      recipe: { network: 'engine' },
      before,
    };
    expect(diagnose(evidenceOf(input), { final: false })).toMatchObject({
      cause: 'wrong-network-address-advertised',
      node: 'spark-a',
      stage: 'rendezvous',
    });
    expect(diagnose(evidenceOf({ ...input, silence: 1000 }), { final: false }).cause).toBe('unknown');
  });
});

describe('other nodes', () => {
  it('are told as consequences, never as the cause', () => {
    const finding = diagnose(evidenceOf(readCase('no-gpu-visible')), { final: true });
    expect(finding.node).toBe('spark-b');
    expect(finding.consequences).toEqual(['spark-a waited in vain for the other ranks to join.']);
  });

  it('get the exact command that copies the model', () => {
    const has = (node: string, present: boolean) =>
      sparkFacts({
        node,
        more: {
          model: known(
            present
              ? {
                  present,
                  path: '/models/model-x',
                  config: known({}),
                  indexBytes: known(1),
                  missingFiles: [],
                  files: [],
                }
              : { present, path: '/models/model-x' },
          ),
        },
      });
    const lines = [
      "OSError: Can't load the configuration of '/models/model-x'. If you were trying to load it",
    ];
    const evidence = evidenceOf({
      engine: 'vllm',
      logs: { head: [], worker: lines },
      after: [has('spark-a', true), has('spark-b', false)],
    });
    expect(diagnose(evidence, { final: true }).advice).toEqual([
      'On spark-b: mkdir -p /models/model-x',
      'On spark-a: rsync -a --partial --info=progress2 /models/model-x/ aurora@spark-b:/models/model-x/',
    ]);
  });
});

describe('an unknown cause', () => {
  it('names the rank that ended, its exit code and its last words', () => {
    const evidence = evidenceOf({
      engine: 'vllm',
      logs: { head: ['quiet'], worker: ['one', 'two', 'Segmentation fault (core dumped)'] },
      ended: { worker: 139 },
    });
    const finding = diagnose(evidence, { final: true });
    expect(finding).toMatchObject({ cause: 'unknown', node: 'spark-b', rank: 1, role: 'worker' });
    expect(finding.title).toBe(
      'Rank 1 on spark-b ended with exit code 139 at the start; the cause is not known',
    );
    expect(finding.quotes.map((quote) => quote.text)).toContain('Segmentation fault (core dumped)');
    expect(finding.confidence).toBeLessThan(0.5);
  });

  it('says how long all stood still', () => {
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: { head: ['[2026-11-29 10:00:09 TP0] Init torch distributed begin.'], worker: [] },
      silence: 1_000_000,
    });
    expect(diagnose(evidence, { final: true }).title).toContain('have stood still for 1000 s');
  });
});

describe('a host that was restarted while its rank ran', () => {
  const booted = (bootId: string) => {
    const facts = sparkFacts({ node: 'spark-b' });
    return facts.host.known ? { ...facts, host: known({ ...facts.host.value, bootId }) } : facts;
  };

  it('is the cause, whatever the lines say, and all is launched anew', () => {
    const finding = onWorker(SET_DEVICE, { before: [booted('1')], after: [booted('2')] });
    expect(finding).toMatchObject({
      cause: 'host-restarted',
      family: 'L',
      node: 'spark-b',
      rank: 1,
      confidence: 1,
    });
    const evidence = evidenceOf({ engine: 'sglang', logs: { head: [], worker: SET_DEVICE } });
    const treated = { recipe: evidence.recipe, engine: evidence.engine, finding, facts: [], evidence };
    expect(treat({ ...treated, tried: [] })).toMatchObject({ remedy: 'launch-anew', edits: [] });
    const tried = [{ engine: evidence.engine, remedy: 'launch-anew', cause: 'host-restarted' }];
    expect(treat({ ...treated, tried })).toBeUndefined();
  });

  it('is none while its boot id is the same, or not known', () => {
    for (const after of [booted('1'), booted('')])
      expect(onWorker(SET_DEVICE, { before: [booted('1')], after: [after] }).cause).not.toBe(
        'host-restarted',
      );
  });
});

describe('a host that is away after the attempt', () => {
  const away = (node: string, why: UnreachableWhy = 'no-route') =>
    ({
      node,
      at: '2026-11-29T10:00:00Z',
      reached: false,
      failure: {
        kind: 'unreachable',
        why,
        sentence: `No network route leads to ${node}.`,
        remedy: '',
        text: '',
      },
    }) as const;

  it('is named with where it was lost, whatever its peers say of it', () => {
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: {
        head: SET_DEVICE,
        worker: ['[2026-11-29 10:00:09 TP1] Load weight begin. avail mem=100.00 GB'],
      },
      ended: { head: 1 },
      after: [away('spark-b')],
    });
    const finding = diagnose(evidence, { final: true });
    expect(finding).toMatchObject({ cause: 'host-unreachable', node: 'spark-b', rank: 1, role: 'worker' });
    expect(finding.title).toBe('spark-b was lost while loading weights');
    expect(finding.why).toContain('No network route');
    expect(finding.consequences).toEqual(['Rank 0 on spark-a ended.']);
  });

  it('that lets nobody in any more is told by what it does', () => {
    const full = away('spark-b', 'too-many-connections');
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: { head: [], worker: [] },
      after: [{ ...full, failure: { ...full.failure, remedy: 'raise MaxStartups' } }],
    });
    expect(diagnose(evidence, { final: true })).toMatchObject({
      cause: 'ssh-server-limits-connections',
      node: 'spark-b',
      advice: ['raise MaxStartups', expect.stringContaining('goes on')],
    });
  });

  it('is the one that others are reached through, where both are away', () => {
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: { head: [], worker: [] },
      after: [away('spark-b', 'jump-unreachable'), away('spark-a')],
    });
    expect(diagnose(evidence, { final: true })).toMatchObject({ cause: 'host-unreachable', node: 'spark-a' });
  });

  it('does not hide what it said itself before it went', () => {
    const finding = onWorker(SET_DEVICE, { after: [away('spark-b')] });
    expect(finding.node).toBe('spark-b');
    expect(finding.cause).not.toBe('host-unreachable');
  });
});

describe('a fabric link that went down after the launch', () => {
  const linked = (up: boolean) =>
    sparkFacts({
      node: 'spark-b',
      more: {
        interfaces: known([
          {
            name: 'enp1s0f0np0',
            up,
            mtu: 9000,
            speedMbps: known(200_000),
            addresses: [{ address: '192.168.200.13', prefix: 24 }],
            reaches: ['spark-a'],
          },
        ]),
      },
    });
  const service: Service = {
    name: 'model-x-r1',
    node: 'spark-b',
    rank: 1,
    role: 'worker',
    engine: 'sglang',
    in: 'process',
    argv: ['python3'],
    env: {},
    secretEnv: {},
    recipe: 'model-x',
    recipeDigest: 'a',
    effectiveDigest: 'a',
    edits: [],
    servedName: 'model-x',
    address: '192.168.200.13',
  };
  const found = (before: boolean, after: boolean) => {
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: {
        head: [
          '[2026-11-29 10:00:09 TP0] Prefill batch, #new-seq: 1, #new-token: 22, #cached-token: 0',
          "[2026-11-29 10:00:40] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.",
        ],
        worker: [],
      },
      ended: { head: 137 },
      before: [linked(before)],
      after: [linked(after)],
    });
    return diagnose({ ...evidence, services: [service] }, { final: true });
  };

  it('is the cause, with the interface to see to', () => {
    const finding = found(true, false);
    expect(finding).toMatchObject({
      cause: 'fabric-link-down',
      family: 'E',
      node: 'spark-b',
      rank: 1,
      values: { interface: 'enp1s0f0np0', address: '192.168.200.13' },
    });
    expect(finding.title).toContain('The fabric link of spark-b (enp1s0f0np0) went down');
    expect(finding.consequences).toEqual(['Rank 0 on spark-a ended.']);
  });

  it('is none while it is up; and a rank that ended by itself was not just slow to answer', () => {
    const { cause } = found(true, true);
    expect(cause).not.toBe('fabric-link-down');
    expect(cause).not.toBe('health-timeout-shorter-than-prefill');
  });

  it('is the cause where ranks that ran already had lost it before they were looked at', () => {
    const finding = found(false, false);
    expect(finding.cause).toBe('fabric-link-down');
    expect(finding.title).toBe('The fabric link of spark-b (enp1s0f0np0) is down');
  });

  describe('at both ends of a cable', () => {
    const head: Service = {
      ...service,
      name: 'model-x-r0',
      node: 'spark-a',
      rank: 0,
      role: 'head',
      address: '192.168.200.12',
    };
    const end = (node: string, address: string, more: object) =>
      sparkFacts({
        node,
        more: {
          interfaces: known([
            {
              name: 'enp1s0f0np0',
              up: false,
              mtu: 9000,
              speedMbps: known(200_000),
              addresses: [{ address, prefix: 24 }],
              reaches: [],
              ...more,
            },
          ]),
        },
      });
    const cut = (more: object) => {
      const evidence = evidenceOf({
        engine: 'sglang',
        logs: { head: ['[2026-11-29 10:00:09 TP0] Load weight begin.'], worker: [] },
        ended: { head: 1 },
        before: [end('spark-a', '192.168.200.12', { up: true }), linked(true)],
        after: [end('spark-a', '192.168.200.12', {}), end('spark-b', '192.168.200.13', more)],
      });
      return diagnose({ ...evidence, services: [head, service] }, { final: true });
    };

    it('is the link, and neither node, where both lack their carrier', () => {
      const finding = cut({});
      expect(finding).toMatchObject({
        cause: 'fabric-link-down',
        node: undefined,
        atFault: 'network',
        family: 'E',
      });
      expect(finding.title).toContain('between spark-a (enp1s0f0np0) and spark-b (enp1s0f0np0) went down');
    });

    it('is of the node that has set its own down', () => {
      const finding = cut({ setDown: true });
      expect(finding).toMatchObject({ cause: 'fabric-link-down', node: 'spark-b', role: 'worker' });
      expect(finding.why).toContain('Somebody has set it down');
    });
  });
});
