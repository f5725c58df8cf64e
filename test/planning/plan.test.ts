import { describe, expect, test } from 'vitest';
import { known, type NodeFacts, type ReachedFacts, unknown, valueIf } from '../../src/domain/facts.ts';
import type { Plan, Step } from '../../src/domain/plan.ts';
import type { Recipe } from '../../src/domain/recipe.ts';
import { runningEdits, strayRanks } from '../../src/planning/our-ranks.ts';
import { type PlanInput, plan } from '../../src/planning/plan.ts';
import {
  fullWorker,
  GIB,
  memoryOf,
  rankRecord,
  SGLANG_IMAGE,
  spark,
  sparkNodes,
  sparkRecipe,
  sparks,
  storyFacts,
  storyHolders,
  wholeModel,
} from '../pretend/facts.ts';

const DIGEST = 'aaaabbbbccccdddd';

function planOf(facts: readonly NodeFacts[], differs: Partial<PlanInput> = {}): Plan {
  return plan({
    cluster: sparks,
    nodes: sparkNodes,
    recipe: sparkRecipe(),
    recipeDigest: DIGEST,
    edits: [],
    engine: 'sglang',
    facts,
    sudo: { 'spark-a': true, 'spark-b': true },
    replace: false,
    ...differs,
  });
}

const steps = (made: Plan): readonly Step[] => made.phases.flatMap((phase) => phase.steps);
const kinds = (made: Plan): readonly string[] => steps(made).map((step) => `${step.kind} ${step.node}`);
const causes = (made: Plan): readonly string[] => made.blockers.map((blocker) => blocker.cause);
const clean = (): readonly NodeFacts[] => [spark('a'), spark('b')];
const withRecipe = (written: Readonly<Record<string, unknown>>): { readonly recipe: Recipe } => ({
  recipe: sparkRecipe(written),
});

describe('on clean nodes', () => {
  test('there is nothing to clear, and the worker starts before the head', () => {
    const made = planOf(clean());
    expect(made.state).toBe('work');
    expect(steps(made)).toEqual([]);
    expect(made.phases.flatMap((phase) => phase.services).map(({ name, role }) => `${name} ${role}`)).toEqual(
      ['qwen3.5-122b-r1 worker', 'qwen3.5-122b-r0 head'],
    );
    expect(made.memory.map(({ verdict }) => verdict)).toEqual(['fits', 'fits']);
  });

  test('the digest stays when only figures change', () => {
    const warmer = [
      spark('a', { memory: known(memoryOf({ total: 121.69, free: 110, available: 113, cached: 3 })) }),
      spark('b', { memory: known(memoryOf({ total: 119.7, free: 104, available: 109, cached: 5 })) }),
    ];
    expect(planOf(warmer).digest).toBe(planOf(clean()).digest);
    const differs = withRecipe({ context: 65536 });
    expect(planOf(clean(), differs).digest).not.toBe(planOf(clean()).digest);
  });

  test('a container has the host’s network, IPC and RDMA, and neither --rm nor a restart policy', () => {
    const [worker] = planOf(clean()).phases[0]?.services ?? [];
    const line = worker?.argv.join(' ') ?? '';
    expect(line).toMatch(/^docker run --gpus all --network host --ipc host --ulimit memlock=-1 /);
    expect(line).toContain('--device /dev/infiniband');
    expect(line).toContain('-e GLOO_SOCKET_IFNAME=enp1s0f1np1');
    expect(line).not.toMatch(/--rm|--restart|--name|--env-file/);
  });

  test('podman names GPUs by CDI, raises no limit without root, and keeps its log in a file', () => {
    const facts = clean().map((one) =>
      one.reached
        ? {
            ...one,
            engines: known([
              {
                engine: 'sglang' as const,
                where: { in: 'podman' as const, image: SGLANG_IMAGE, imageId: 'x', arch: 'arm64' },
                version: unknown('not asked'),
              },
            ]),
          }
        : one,
    );
    const recipe = withRecipe({ run: { in: 'podman', image: { sglang: SGLANG_IMAGE } } });
    const [worker] = planOf(facts, recipe).phases[0]?.services ?? [];
    const line = worker?.argv.join(' ') ?? '';
    expect(worker?.in).toBe('podman');
    expect(line).toMatch(
      /^podman run --device nvidia.com\/gpu=all --network host --ipc host --ulimit host --pids-limit -1 --log-driver k8s-file /,
    );
    expect(line).not.toContain('memlock');
    const absent = planOf(clean(), recipe);
    expect(absent.blockers[0]?.advice[0]).toBe(`On spark-a: podman pull ${SGLANG_IMAGE}`);
  });

  test('the model’s folder is not mounted twice when a volume holds it', () => {
    const run = {
      in: 'docker',
      image: { sglang: SGLANG_IMAGE },
      volumes: ['/home/aurora/models:/home/aurora/models:ro'],
    };
    const [worker] = planOf(clean(), withRecipe({ run })).phases[0]?.services ?? [];
    expect(worker?.argv.filter((word) => word === '-v')).toHaveLength(1);
  });

  test('vLLM’s program is named as entry point, but NVIDIA’s images keep theirs', () => {
    const line = (image: string): string => {
      const made = planOf(
        clean().map((facts) =>
          facts.reached
            ? {
                ...facts,
                engines: known([
                  {
                    engine: 'vllm' as const,
                    where: { in: 'docker' as const, image, imageId: 'x', arch: 'arm64' },
                    version: unknown('not asked'),
                  },
                ]),
              }
            : facts,
        ),
        { engine: 'vllm', ...withRecipe({ run: { in: 'docker', image: { vllm: image } } }) },
      );
      return made.phases[0]?.services[0]?.argv.join(' ') ?? '';
    };
    expect(line('vllm/vllm-openai:v0.28.0')).toContain(
      ' --entrypoint vllm vllm/vllm-openai:v0.28.0 serve /home',
    );
    expect(line('nvcr.io/nvidia/vllm:26.09-py3')).toContain(
      ' nvcr.io/nvidia/vllm:26.09-py3 vllm serve /home',
    );
  });
});

describe('when the worker is full', () => {
  test('every stop asks for consent to its own id, and nothing else does', () => {
    const made = planOf(storyFacts());
    expect(kinds(made)).toEqual([
      'stop-unit spark-b',
      'stop-container spark-b',
      'stop-process spark-b',
      'await-memory spark-b',
      'drop-cache spark-a',
      'drop-cache spark-b',
    ]);
    expect(steps(made).map((step) => step.needsConsent)).toEqual([true, true, true, false, false, false]);
    expect(new Set(steps(made).map((step) => step.id)).size).toBe(6);
    expect(made.memory[1]).toMatchObject({ verdict: 'fits', canGetBytes: 36.1 * GIB - 6 * GIB });
  });

  test('ids survive planning again from other figures', () => {
    const later = storyFacts().map((facts) =>
      facts.node === 'spark-b'
        ? fullWorker({
            memory: known(memoryOf({ total: 119.7, free: 5, available: 35, cached: 31 })),
            holders: known(
              [...storyHolders].reverse().map((holder) => ({ ...holder, ageSeconds: known(1) })),
            ),
          })
        : facts,
    );
    const [once, twice] = [planOf(storyFacts()), planOf(later)];
    expect(steps(twice).map((step) => step.id)).toEqual(steps(once).map((step) => step.id));
    expect(twice.digest).toBe(once.digest);
  });

  test('only as many are stopped as it takes, largest first', () => {
    const made = planOf(storyFacts(), withRecipe({ sequences: 1, context: 8192 }));
    expect(kinds(made).filter((kind) => kind.startsWith('stop'))).toEqual([
      'stop-unit spark-b',
      'stop-container spark-b',
    ]);
  });

  test('protected and untouchable holders and our own ranks are never proposed', () => {
    const [first, second, third] = storyHolders;
    if (first === undefined || second === undefined || third === undefined) throw new Error('three');
    const made = planOf([
      spark('a'),
      fullWorker({
        holders: known([
          { ...first, owner: { kind: 'untouchable', what: 'kubernetes pod' } },
          { ...second, owner: { kind: 'rank', name: 'other-r0' } },
          { ...third, protectedWhy: 'it is the display server' },
        ]),
      }),
    ]);
    expect(kinds(made).filter((kind) => kind.startsWith('stop'))).toEqual([]);
    expect(causes(made)).toEqual(['insufficient-free-memory-at-startup']);
    expect(made.blockers[0]?.userError).toBe(false);
    expect(made.blockers[0]?.advice.join(' ')).toMatch(/left alone/);
  });

  test('nobody is stopped in vain: what does not fit even then is a blocker with what would fit', () => {
    const made = planOf(storyFacts(), {
      ...withRecipe({ layout: { nodes: 2, tensor: 1, pipeline: 2 } }),
      facts: storyFacts().map((facts) =>
        facts.reached ? { ...facts, model: known(wholeModel(undefined, 300)) } : facts,
      ),
    });
    expect(kinds(made).filter((kind) => kind.startsWith('stop'))).toEqual([]);
    expect(causes(made)).toContain('insufficient-free-memory-at-startup');
    expect(made.state).toBe('blocked');
  });

  test('sequences that do not fit together are fewer, not a refusal', () => {
    const made = planOf(clean(), withRecipe({ sequences: 64 }));
    expect(made.state).toBe('work');
    expect(made.warnings.map((warning) => warning.title).join(' ')).toMatch(
      /64 sequences of 131,072 tokens do not fit together; there is room for \d+/,
    );
  });

  test('a container that deletes itself, and a process that cannot be read, are told to be irreversible', () => {
    const holders = storyHolders.map((holder) =>
      holder.owner.kind === 'container'
        ? { ...holder, owner: { ...holder.owner, autoRemove: known(true) } }
        : holder,
    );
    const made = planOf([spark('a'), fullWorker({ holders: known(holders) })], {
      sudo: { 'spark-a': false, 'spark-b': false },
    });
    const undo = Object.fromEntries(steps(made).map((step) => [step.kind, step.undo.kind]));
    expect(undo).toMatchObject({
      'stop-unit': 'command',
      'stop-container': 'irreversible',
      'stop-process': 'irreversible',
    });
  });

  test('a process that wrote over its command line cannot be started again', () => {
    const [, , bare] = storyHolders;
    if (bare === undefined) throw new Error('three');
    const orphan = { ...bare, name: 'VLLM::EngineCore', command: 'VLLM::EngineCore', bytes: 74 * GIB };
    const made = planOf([spark('a'), fullWorker({ holders: known([orphan]) })]);
    expect(steps(made)[0]?.undo).toMatchObject({ kind: 'irreversible' });
  });

  test('halves of one job on two nodes name each other', () => {
    const half = (rank: number) => ({
      identity: `${rank}@77`,
      name: 'python train.py',
      owner: { kind: 'process' as const, environmentReadable: true },
      user: 'aurora',
      pid: 900 + rank,
      startTicks: '77',
      ageSeconds: known(100),
      command: `torchrun --nnodes 2 --node-rank ${rank} train.py`,
      gpuBytes: known(70 * GIB),
      residentBytes: known(GIB),
      bytes: 70 * GIB,
      listens: [],
    });
    const busy = (which: 'a' | 'b', rank: number) =>
      spark(which, {
        memory: known(memoryOf({ total: 119.7, free: 30, available: 45, cached: 15 })),
        holders: known([half(rank)]),
      });
    const [a, b] = steps(planOf([busy('a', 0), busy('b', 1)]));
    expect(a?.target?.job).toEqual([b?.id]);
    expect(b?.target?.job).toEqual([a?.id]);
  });
});

describe('without root', () => {
  const rootless = { 'spark-a': false, 'spark-b': false };

  test('the page cache gives way by the model’s own files, and once that is done a warning is left', () => {
    const made = planOf(storyFacts(), { sudo: rootless });
    const drops = steps(made).filter(({ kind }) => kind === 'drop-cache');
    expect(drops.map(({ command }) => command.sudo ?? false)).not.toContain(true);
    expect(drops.find(({ node }) => node === 'spark-b')).toMatchObject({
      title: 'Take the model’s own files out of the page cache',
      optional: true,
    });
    const warned = (plan: typeof made) =>
      plan.warnings.some(({ title }) => /page cache of spark-b .* cannot be dropped/.test(title));
    expect(warned(made)).toBe(false);
    const again = planOf(storyFacts(), { sudo: rootless, evicted: new Set(['spark-a', 'spark-b']) });
    expect(kinds(again)).not.toContain('drop-cache spark-b');
    expect(warned(again)).toBe(true);
  });

  test('steps that need a password are still planned, with a warning', () => {
    const made = planOf(storyFacts(), { sudo: rootless });
    expect(kinds(made)).toContain('stop-unit spark-b');
    expect(made.warnings.map(({ title }) => title).join(' ')).toMatch(/2 steps on spark-b need root/);
  });

  test('where sudo is refused for good, what needs it is not proposed', () => {
    const made = planOf([spark('a'), fullWorker({ sudo: known('none') })], { sudo: rootless });
    expect(kinds(made).filter((kind) => /unit|process/.test(kind))).toEqual([]);
    expect(causes(made)).toEqual(['insufficient-free-memory-at-startup']);
  });

  test('docker that answers root alone is asked as root', () => {
    const made = planOf([spark('a'), fullWorker({ containers: unknown('permission denied') })]);
    const stop = steps(made).find((step) => step.kind === 'stop-container');
    expect(stop?.command.sudo).toBe(true);
  });
});

describe('our own ranks', () => {
  const running = (differs: Parameters<typeof rankRecord>[1] = {}): readonly NodeFacts[] => [
    spark('a', { ranks: known([rankRecord(0, differs)]) }),
    spark('b', { ranks: known([rankRecord(1, differs)]) }),
  ];
  const ours = { recipe: 'qwen3.5-122b', recipeDigest: DIGEST, replace: false };

  test('a second plan is empty, and names the ranks to follow', () => {
    const made = planOf(running());
    expect(made.state).toBe('empty');
    expect(steps(made)).toEqual([]);
    expect(made.blockers).toEqual([]);
    expect(made.phases.flatMap((phase) => phase.services).map((service) => service.running)).toEqual([
      true,
      true,
    ]);
  });

  test('it stays empty when their port is taken by them, and memory by them', () => {
    const [, first] = storyHolders;
    if (first === undefined) throw new Error('three');
    const busy = running().map((facts) =>
      facts.reached
        ? {
            ...facts,
            memory: known(memoryOf({ total: 119.7, free: 5, available: 9, cached: 4 })),
            ports: known([
              { address: '127.0.0.1', port: 30000, pid: unknown('root'), process: unknown('root') },
            ]),
          }
        : facts,
    );
    expect(planOf(busy)).toMatchObject({ state: 'empty', blockers: [] });
  });

  test('edits and engine of a second run come from the node’s record', () => {
    const edits = [{ path: 'network', from: 'engine', to: 'auto' }];
    expect(runningEdits(running({ edits, engine: 'vllm' }), DIGEST)).toEqual({ edits, engine: 'vllm' });
    expect(runningEdits(running(), 'other')).toBeUndefined();
    expect(runningEdits(running({ state: 'ended' }), DIGEST)).toBeUndefined();
  });

  test('a worker whose head was not started yet is kept, and only the head is launched', () => {
    const facts = [spark('a'), spark('b', { ranks: known([rankRecord(1)]) })];
    expect(strayRanks(facts, ours)).toEqual([]);
    const made = planOf(facts);
    expect(made.state).toBe('work');
    expect(
      made.phases.flatMap((phase) => phase.services).map(({ rank, running: runs }) => [rank, runs]),
    ).toEqual([
      [1, true],
      [0, undefined],
    ]);
  });

  test.each([
    ['its head ended in the same attempt', rankRecord(0, { state: 'ended' }), rankRecord(1)],
    ['it served before', undefined, rankRecord(1, { servingSince: '2026-11-29T09:59:30.000Z' })],
    [
      'it has waited longer than a rank waits',
      undefined,
      rankRecord(1, { startedAt: '2026-11-29T09:30:00.000Z' }),
    ],
    [
      'the head ended later than it started',
      rankRecord(0, { state: 'ended', run: '8', startedAt: '2026-11-29T09:59:30.000Z' }),
      rankRecord(1),
    ],
  ])('a worker is half of a dead job when %s', (_, head, worker) => {
    const facts = [
      spark('a', { ranks: known(head === undefined ? [] : [head]) }),
      spark('b', { ranks: known([worker]) }),
    ];
    expect(strayRanks(facts, ours)).toEqual([
      { name: 'qwen3.5-122b-r1', node: 'spark-b', rank: 1, engine: 'sglang' },
    ]);
  });

  test('an earlier attempt’s ended head does not make a stray of the worker', () => {
    const facts = [
      spark('a', {
        ranks: known([rankRecord(0, { state: 'ended', attempt: 1, startedAt: '2026-11-29T09:58:00.000Z' })]),
      }),
      spark('b', { ranks: known([rankRecord(1, { attempt: 2 })]) }),
    ];
    expect(strayRanks(facts, ours)).toEqual([]);
  });

  test('ranks of an older form of the recipe block, unless they may be replaced', () => {
    const old = running({ recipeDigest: '0000000000000000' });
    const made = planOf(old);
    expect(causes(made)).toEqual(['needs-replace']);
    expect(made.blockers[0]?.userError).toBe(true);
    expect(strayRanks(old, ours)).toEqual([]);
    expect(strayRanks(old, { ...ours, replace: true })).toHaveLength(2);
    expect(planOf(old, { replace: true }).blockers).toEqual([]);
  });

  test('what outlives an ended rank is a stray, not a foreign holder', () => {
    const [first] = storyHolders;
    if (first === undefined) throw new Error('three');
    const facts = [
      spark('a'),
      fullWorker({
        ranks: known([rankRecord(1, { state: 'ended' })]),
        holders: known([{ ...first, owner: { kind: 'rank', name: 'qwen3.5-122b-r1' }, bytes: 74 * GIB }]),
      }),
    ];
    expect(strayRanks(facts, ours).map(({ name }) => name)).toEqual(['qwen3.5-122b-r1']);
    expect(planOf(facts).memory[1]?.verdict).toBe('fits');
  });
});

describe('what no step can mend', () => {
  const on = (differs: Partial<ReachedFacts>): readonly NodeFacts[] => [spark('a'), spark('b', differs)];

  test('a missing model comes with the exact copy over the fabric', () => {
    const path = '/home/aurora/models/Qwen3.5-122B-A10B-FP8';
    const made = planOf(on({ model: known({ present: false, path }) }));
    expect(made.blockers).toMatchObject([
      { cause: 'model-path-missing-on-worker', node: 'spark-b', userError: false },
    ]);
    expect(made.blockers[0]?.advice[0]).toBe(
      `On spark-a: rsync -a --info=progress2 --mkpath ${path}/ aurora@192.168.200.13:${path}/`,
    );
  });

  test('weight files that the index names and nobody has', () => {
    const model = wholeModel();
    const made = planOf(
      on({
        model: known(
          model.present ? { ...model, missingFiles: ['model-00003-of-00025.safetensors'] } : model,
        ),
      }),
    );
    expect(causes(made)).toEqual(['weights-truncated']);
  });

  test('an image that is not there is named with two ways to get it; it lies with this engine', () => {
    const made = planOf(on({ engines: known([]) }));
    expect(made.blockers).toMatchObject([{ cause: 'image-missing', node: 'spark-b', engineOnly: true }]);
    expect(made.blockers[0]?.advice).toEqual([
      `On spark-b: docker pull ${SGLANG_IMAGE}`,
      `Or on spark-a: docker save ${SGLANG_IMAGE} | ssh 192.168.200.13 docker load`,
    ]);
  });

  test('an image for another processor is the user’s to mend', () => {
    const where = { in: 'docker', image: SGLANG_IMAGE, imageId: 'x', arch: 'amd64' } as const;
    const made = planOf(on({ engines: known([{ engine: 'sglang', where, version: unknown('x') }]) }));
    expect(made.blockers).toMatchObject([
      { cause: 'image-wrong-architecture', userError: true, title: expect.stringMatching(/amd64.*arm64/) },
    ]);
  });

  test.each([
    [{ nodes: 2, tensor: 6 }, /32 attention heads/, '2, 4, 8'],
    [{ nodes: 2, tensor: 3, pipeline: 2 }, /32 attention heads/, '1, 2, 4, 8'],
  ])('a tensor size that does not divide the heads: %j', (layout, title, sizes) => {
    const made = planOf(clean(), withRecipe({ layout }));
    const [blocker] = made.blockers;
    expect(blocker).toMatchObject({ cause: 'tp-size-not-divisible', userError: true });
    expect(blocker?.title).toMatch(title);
    expect(blocker?.advice[0]).toContain(`: ${sizes}.`);
  });

  test('experts in FP8 blocks are not cut across a block, unless they are dealt out whole', () => {
    const model = known(wholeModel('Qwen3-30B-A3B-FP8', 29));
    const facts = [spark('a', { model, gpus: known([]) }), spark('b', { model, gpus: known([]) })];
    const layout = { nodes: 2, tensor: 4 };
    expect(causes(planOf(facts, withRecipe({ layout })))).toEqual(['tp-breaks-quantization-blocks']);
    expect(causes(planOf(facts, withRecipe({ layout: { ...layout, expert: 4 } })))).toEqual([]);
    expect(causes(planOf(facts, withRecipe({ layout: { nodes: 2, tensor: 2 } })))).toEqual([]);
  });

  test('a host on which our own ranks could not be seen: none is taken for none', () => {
    const made = planOf([
      spark('a'),
      spark('b', { ranks: unknown('reading our own records took too long') }),
    ]);
    expect(made).toMatchObject({
      state: 'blocked',
      blockers: [{ cause: 'unknown', node: 'spark-b', title: expect.stringContaining('took too long') }],
    });
  });

  test('a host that does not answer', () => {
    const failure = {
      kind: 'unreachable',
      why: 'timeout-banner',
      sentence: 'spark-b answers TCP and shows no SSH banner.',
      remedy: 'Look at its console.',
      text: '',
    } as const;
    const made = planOf([spark('a'), { node: 'spark-b', at: '', reached: false, failure }]);
    expect(made).toMatchObject({
      state: 'blocked',
      blockers: [{ cause: 'host-unreachable', node: 'spark-b', title: failure.sentence }],
    });
    expect(made.phases).toEqual([]);
  });

  test('two names for one host', () => {
    const host = valueIf(spark('a').host);
    if (host === undefined) throw new Error('it is known');
    expect(causes(planOf(on({ host: known(host) })))).toEqual(['duplicate-host-ip']);
  });

  test('a fabric address that the node has not', () => {
    const made = planOf(
      on({
        interfaces: known([
          {
            name: 'eth0',
            up: true,
            mtu: 1500,
            speedMbps: known(1000),
            addresses: [{ address: '10.9.9.9', prefix: 24 }],
            reaches: ['spark-a'],
          },
        ]),
      }),
    );
    expect(made.blockers).toMatchObject([{ cause: 'wrong-network-address-advertised', node: 'spark-b' }]);
    expect(made.blockers[0]?.advice[0]).toContain('10.9.9.9 (eth0)');
  });

  test('a fabric link without a carrier, though its route is still there', () => {
    const dark = (letter: 'a' | 'b', more = {}): NodeFacts => {
      const { interfaces } = spark(letter);
      if (!interfaces.known) throw new Error('they are known');
      return spark(letter, {
        interfaces: known(
          interfaces.value.map((one) =>
            one.addresses.some(({ address }) => address.startsWith('192.168.200.'))
              ? { ...one, up: false, ...more }
              : one,
          ),
        ),
      });
    };
    const one = planOf([spark('a'), dark('b')]).blockers;
    expect(one).toMatchObject([{ cause: 'fabric-link-down', node: 'spark-b' }]);
    expect(one[0]?.advice[0]).toContain('on spark-b: ip link show enp1s0f1np1');
    const cable = planOf([dark('a'), dark('b')]).blockers;
    expect(cable).toMatchObject([{ cause: 'fabric-link-down', node: undefined }]);
    expect(cable[0]?.title).toMatch(/between spark-a \(\w+\) and spark-b \(\w+\) is down/);
    const set = planOf([dark('a'), dark('b', { setDown: true })]).blockers;
    expect(set.map(({ node }) => node)).toEqual(['spark-a', 'spark-b']);
  });
});

describe('ports', () => {
  const listening = (port: number, address: string, pid: number): readonly NodeFacts[] => [
    spark('a', {
      ports: known([{ address, port, pid: known(pid), process: known('node') }]),
      holders: known(
        storyHolders
          .filter((holder) => holder.pid === pid)
          .map((holder) => ({ ...holder, bytes: 0.1 * GIB })),
      ),
    }),
    spark('b'),
  ];

  test('somebody unknown on the rendezvous port blocks, with the line that finds them', () => {
    const made = planOf(listening(20000, '0.0.0.0', 1));
    expect(made.blockers).toMatchObject([{ cause: 'port-already-in-use', node: 'spark-a' }]);
    expect(made.blockers[0]?.advice[0]).toContain("sport = :20000'");
  });

  test('a known holder on the rendezvous port blocks as well: nobody is stopped for a port that may be another', () => {
    const made = planOf(listening(20000, '0.0.0.0', 1812));
    expect(made.blockers).toMatchObject([
      { cause: 'port-already-in-use', values: { port: '20000', kind: 'rendezvous' } },
    ]);
    expect(steps(made).filter((step) => step.needsConsent)).toEqual([]);
  });

  test('a known holder on the API port is proposed to be stopped, however little it holds', () => {
    const made = planOf(listening(30000, '0.0.0.0', 1812));
    expect(made.blockers).toEqual([]);
    expect(steps(made)[0]).toMatchObject({
      kind: 'stop-unit',
      needsConsent: true,
      why: 'It listens on port 30000 of spark-a, which the API of this launch needs.',
    });
  });

  test('a listener on another address is in nobody’s way', () => {
    expect(planOf(listening(30000, '10.1.230.180', 1)).blockers).toEqual([]);
  });
});

test('an address that is left out of the cluster file is found in the network that both share', () => {
  const nodes = sparkNodes.map(({ fabric: _, ...node }) => node);
  const made = planOf(clean(), { nodes });
  expect(made.blockers).toEqual([]);
  expect(made.phases[0]?.services[0]?.argv.join(' ')).toContain('--dist-init-addr 192.168.200.12:20000');
});

test('a host that ends what a login has started is warned of where ranks are plain processes', () => {
  const facts = spark('b');
  const strict = facts.host.known
    ? { ...facts, host: known({ ...facts.host.value, killsAtLogout: true as const }) }
    : facts;
  const titles = (run: object) =>
    planOf([spark('a'), strict], withRecipe({ run }))
      .warnings.map(({ title }) => title)
      .join('\n');
  const command = { sglang: ['python3', '-m', 'sglang.launch_server'], vllm: ['vllm', 'serve'] };
  expect(titles({ in: 'process', command })).toMatch(/spark-b ends all .*KillUserProcesses=yes/);
  expect(titles({ in: 'docker', image: { sglang: SGLANG_IMAGE } })).not.toContain('KillUserProcesses');
});

test('what may spoil a launch is a warning with its way out', () => {
  const memory = memoryOf({ total: 119.7, free: 110, available: 114, cached: 2 });
  const made = planOf(
    [
      spark('a', { rdma: known([]), clockOffsetSeconds: known(-9) }),
      spark('b', { memory: known({ ...memory, swapFreeBytes: 0 }) }),
    ],
    withRecipe({ network: 'engine', serve: { listen: 'all' } }),
  );
  const titles = made.warnings.map(({ title }) => title).join('\n');
  expect(titles).not.toContain('KillUserProcesses');
  expect(titles).toMatch(/spark-a resolves its own name to 127.0.1.1/);
  expect(titles).toMatch(/clock of spark-a is 9 s behind/);
  expect(titles).toMatch(/swap of spark-b is used up/);
  expect(titles).toMatch(/all ranks use sockets/);
  expect(titles).toMatch(/API listens on every network/);
  expect(made.warnings.every(({ advice }) => advice.length > 0)).toBe(true);
});
