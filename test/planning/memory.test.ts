import { describe, expect, it } from 'vitest';
import {
  type DriverFacts,
  type Gpu,
  type GpuTrouble,
  type Holder,
  known,
  type MemoryFacts,
  type ReachedFacts,
  unknown,
} from '../../src/domain/facts.ts';
import { parseMeminfo } from '../../src/knowledge/probes/meminfo.ts';
import { chooseHolders } from '../../src/planning/choose-holders.ts';
import { driverHeldBytes } from '../../src/planning/driver-held.ts';
import { memoryTroubles } from '../../src/planning/memory-items.ts';
import { nodeMemory } from '../../src/planning/node-memory.ts';
import { orphanRanks, strayRanks } from '../../src/planning/our-ranks.ts';
import { plan } from '../../src/planning/plan.ts';
import { stillHeld } from '../../src/planning/still-held.ts';
import { stopStep } from '../../src/planning/stop-step.ts';
import { swapUsedUp } from '../../src/planning/warnings.ts';
import {
  GIB,
  memoryOf,
  rankRecord,
  spark,
  sparkNodes,
  sparkRecipe,
  sparks,
  storyHolders,
  wholeModel,
} from '../pretend/facts.ts';

/** /proc/meminfo of a host with these figures, in GiB; the rest as a host has them. */
function meminfo(gib: Readonly<Record<string, number>>): MemoryFacts {
  const lines = {
    MemTotal: 119.7,
    MemFree: 102.4,
    MemAvailable: 112,
    Cached: 12,
    Buffers: 0.2,
    Shmem: 0.1,
    Dirty: 0,
    Writeback: 0,
    AnonPages: 2,
    Slab: 1,
    SReclaimable: 0.4,
    KernelStack: 0.05,
    PageTables: 0.1,
    Hugetlb: 0,
    SwapTotal: 16,
    SwapFree: 16,
    SwapCached: 0,
    ...gib,
  };
  const text = Object.entries(lines)
    .map(([key, value]) => `${key}: ${Math.round(value * 2 ** 20)} kB\n`)
    .join('');
  const memory = parseMeminfo({ code: 0, stdout: text, stderr: '', timedOut: false });
  if (!memory.known) throw new Error(memory.why);
  return memory.value;
}

const DRIVER: DriverFacts = { version: known('580.159.03'), flavour: known('open'), listed: known(1) };

function gpu(differs: Partial<Gpu> = {}): Gpu {
  const none = unknown('this GPU uses the memory of the host');
  return {
    index: 0,
    name: 'NVIDIA GB10',
    uuid: 'GPU-b',
    unified: true,
    totalBytes: none,
    freeBytes: none,
    driver: '580.95.05',
    ...differs,
  };
}

function titles(facts: ReachedFacts): readonly string[] {
  return memoryTroubles(facts, 6 * GIB).map(({ title }) => title);
}

function holder(name: string, gib: number, differs: Partial<Holder> = {}): Holder {
  return {
    identity: `${name}@1`,
    name,
    owner: { kind: 'unit', unit: `${name}.service`, restart: known('no') },
    user: 'aurora',
    pid: 100,
    startTicks: '1',
    ageSeconds: known(10),
    command: name,
    gpuBytes: known(gib * GIB),
    residentBytes: known(0),
    bytes: gib * GIB,
    listens: [],
    ...differs,
  };
}

describe('a Spark whose nvidia-smi prints 0MiB / 95896MiB beside 1.2 GiB available and 99 GiB of page cache', () => {
  const facts = spark('b', {
    memory: known(meminfo({ MemFree: 3.2, MemAvailable: 1.2, Cached: 99, AnonPages: 8, Slab: 3 })),
    gpus: known([gpu({ printed: { totalBytes: 95896 * 2 ** 20, freeBytes: known(95896 * 2 ** 20) } })]),
  });

  it('is warned of, whatever nvidia-smi shows', () => {
    expect(titles(facts)).toEqual([
      '1.2 GiB available, under the reserve of 6.0 GiB, although 99.0 GiB are page cache: so much of it is not given back by itself. Another launch may wedge the host.',
      'nvidia-smi prints 0MiB / 95896MiB for the NVIDIA GB10, which has no memory of its own. The host has 1.2 GiB of 119.7 GiB available, and that is what counts.',
      'The driver holds 6.1 GiB that no process accounts for.',
    ]);
  });

  it('has nothing to give to a launch', () => {
    const told = nodeMemory(facts, 20 * GIB);
    expect(told.unified).toEqual(known(true));
    expect(told.canGetBytes).toEqual(
      known(facts.memory.known ? facts.memory.value.availableBytes - 6 * GIB : 0),
    );
    expect(told.wouldGo).toEqual(known([]));
  });
});

describe('what the kernel does not list', () => {
  it('is neither a cache that is empty nor a swap that is used up', () => {
    const stdout =
      'MemTotal: 127535084 kB\nMemFree: 1234567 kB\nMemAvailable: 14386092 kB\nSwapTotal: 33554428 kB\n';
    const memory = parseMeminfo({ code: 0, stdout, stderr: '', timedOut: false });
    expect(memory.known && memory.value).toMatchObject({ swapFreeBytes: undefined, cachedBytes: undefined });
    expect(memory.known && swapUsedUp(memory.value)).toBe(false);
    expect(titles(spark('b', { memory, driver: DRIVER })).join()).not.toMatch(/[Ss]wap/);
  });
});

describe('troubles of a node’s memory', () => {
  it('are none on a node at rest', () => {
    expect(titles(spark('a', { memory: known(meminfo({})), driver: DRIVER }))).toEqual([]);
  });

  it('are a cache that hides what is free, and only on unified memory', () => {
    const full = known(meminfo({ MemFree: 3, MemAvailable: 110, Cached: 110 }));
    expect(titles(spark('b', { memory: full }))).toEqual([
      'Only 3.0 GiB are free now; 110.0 GiB are page cache, which CUDA counts as used.',
    ]);
    const card = gpu({ unified: false, totalBytes: known(140 * GIB), freeBytes: known(139 * GIB) });
    expect(titles(spark('b', { memory: full, gpus: known([card]) }))).toEqual([]);
  });

  it('are work that stands still, swap that is used up, pages not written, and a kernel that does not count', () => {
    const memory = meminfo({ SwapFree: 0, Dirty: 5, CmaTotal: 0, CmaFree: 0.2 });
    const lines = memory.lines;
    if (lines === undefined) throw new Error('no lines');
    const pressure = known({ some10: 16.2, some60: 4.1, full10: 14.23, full60: 3.6 });
    const said = titles(spark('b', { memory: known({ ...memory, lines: { ...lines, pressure } }) }));
    expect(said).toEqual([
      '5.0 GiB of the page cache are not written yet.',
      'Swap is used up, so it ran out of memory before.',
      'All work stood still for memory 14 % of the last ten seconds.',
      'Its kernel reserves memory that it does not count (CmaTotal 0, CmaFree 0.2 GiB): with it two-node starts fail with NV_ERR_NO_MEMORY.',
    ]);
  });

  it('are a GPU that is missing, with those that are left, and the module that does not drive a GB10', () => {
    const trouble = {
      kind: 'lost-gpu' as const,
      why: 'nvidia-smi shows 1 of 2 GPUs',
      remedy: 'restart the host',
      seen: [gpu()],
    };
    const said = memoryTroubles(
      spark('b', {
        memory: known(meminfo({})),
        gpus: unknown(trouble.why),
        driver: { ...DRIVER, flavour: known('proprietary'), trouble },
      }),
      6 * GIB,
    );
    expect(said.map(({ title }) => title)).toEqual([
      'nvidia-smi shows 1 of 2 GPUs. New work may fail on the others as well.',
      'The proprietary kernel module is loaded; a GB10 works with the open one alone.',
    ]);
    expect(said.every(({ remedy }) => remedy !== undefined)).toBe(true);
  });
});

describe('a launch on a node whose driver has lost a GPU', () => {
  const model = known(wholeModel());
  const launch = (kind: GpuTrouble['kind'], seen: readonly Gpu[] = [], listed = 1) => {
    const trouble = { kind, why: 'nvidia-smi shows 1 of 2 GPUs', remedy: 'restart the host', seen };
    const driver = { ...DRIVER, listed: known(listed), trouble };
    return plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe(),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'sglang',
      facts: [spark('a', { model }), spark('b', { model, gpus: unknown(trouble.why), driver })],
      sudo: {},
      replace: false,
    });
  };

  it('is blocked, with what mends it, since new work may fail on the others too', () => {
    expect(launch('lost-gpu', [gpu()]).blockers).toMatchObject([
      {
        cause: 'gpu-not-visible-in-container',
        node: 'spark-b',
        title:
          'The GPUs of spark-b cannot be used: nvidia-smi shows 1 of 2 GPUs. New work may fail on the others as well.',
        advice: ['On spark-b: restart the host'],
      },
    ]);
    expect(launch('version-mismatch').state).toBe('blocked');
  });

  it('goes on where the host has neither GPU nor tool, by the memory of the host, which a warning says', () => {
    const made = launch('no-tool', [], 0);
    expect(made.state).toBe('work');
    expect(made.memory.map(({ verdict }) => verdict)).toEqual(['fits', 'fits']);
    expect(made.warnings.map(({ title }) => title)).toContain(
      "No GPU was seen on spark-b: nvidia-smi shows 1 of 2 GPUs; its memory is planned as the host's.",
    );
  });

  it('goes on where only nvidia-smi hangs or is missing beside a driver, and whether it fits is not known', () => {
    for (const kind of ['no-tool', 'hangs', 'unreadable'] as const) {
      const made = launch(kind);
      expect(made.state).toBe('work');
      expect(made.memory).toMatchObject([
        { node: 'spark-a', verdict: 'fits' },
        {
          node: 'spark-b',
          verdict: 'unknown',
          rules: ['unknown: the GPUs of spark-b are not known: nvidia-smi shows 1 of 2 GPUs'],
        },
      ]);
      expect(made.warnings.filter(({ node, title }) => node === 'spark-b' && /GPU/.test(title))).toEqual([
        {
          node: 'spark-b',
          title:
            'Whether it fits on spark-b is not known: the GPUs of spark-b are not known: nvidia-smi shows 1 of 2 GPUs.',
          advice: 'On spark-b: restart the host',
        },
      ]);
    }
  });

  it('computes no share of the memory where one node does not tell of its GPUs, so that the engine keeps its own', () => {
    const flag = (made: ReturnType<typeof launch>) =>
      made.phases.flatMap(({ services }) => services.flatMap(({ argv }) => argv)).join(' ');
    expect(flag(launch('no-tool', [], 0))).toContain('--mem-fraction-static');
    expect(flag(launch('hangs'))).not.toContain('--mem-fraction-static');
  });
});

describe('what the driver holds and no process accounts for', () => {
  it('is what the kernel gave away and counts nowhere, less what processes have on the GPU', () => {
    // 119.7 - 40 free - 12.2 cached - 2 anonymous - 1 slab - 0.15 kernel = 64.35, of which 50 are somebody's.
    const memory = known(meminfo({ MemFree: 40 }));
    const held = driverHeldBytes(spark('b', { memory, holders: known([holder('vllm', 50)]) }));
    expect(held.known && Math.round((held.value / GIB) * 100) / 100).toBe(14.35);
  });

  it('is used memory less the same on cards of their own', () => {
    const card = gpu({ unified: false, totalBytes: known(140 * GIB), freeBytes: known(100 * GIB) });
    const facts = spark('b', {
      gpus: known([card, { ...card, index: 1 }]),
      holders: known([holder('vllm', 75)]),
    });
    expect(driverHeldBytes(facts)).toEqual(known(5 * GIB));
  });

  it('is unknown where a part of the sum is, and says which', () => {
    const some = holder('vllm', 0, {
      gpuBytes: unknown('nvidia-smi may not name the processes on this GPU'),
    });
    const cut = parseMeminfo({
      code: 0,
      stdout: 'MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n',
      stderr: '',
      timedOut: false,
    });
    expect(driverHeldBytes(spark('b', { memory: known(meminfo({})), holders: known([some]) }))).toEqual(
      some.gpuBytes,
    );
    expect(driverHeldBytes(spark('b', { memory: cut }))).toEqual(unknown('meminfo lists no Cached'));
    expect(driverHeldBytes(spark('b', { gpus: unknown('it hangs') }))).toEqual(unknown('it hangs'));
  });
});

describe('the holders that have to go', () => {
  const facts = spark('b');
  const choose = (holders: readonly Holder[], gib: number): readonly string[] =>
    chooseHolders({ holders, bytes: gib * GIB, facts, gives: ({ bytes }) => bytes }).map(({ name }) => name);

  it('are nobody where enough is there', () => {
    expect(choose([holder('a', 30)], 0)).toEqual([]);
  });

  it('are no more than it takes: a small one that does, before a large one', () => {
    expect(choose([holder('large', 60), holder('small', 12)], 10)).toEqual(['small']);
    expect(choose([holder('a', 30), holder('b', 20), holder('c', 12)], 31)).toEqual(['b', 'c']);
  });

  it('are those that can be brought back, before work that would be lost', () => {
    const lost = holder('train', 20, {
      owner: { kind: 'process', environmentReadable: true },
      command: 'VLLM::EngineCore',
    });
    expect(choose([lost, holder('ollama', 12), holder('comfyui', 12)], 18)).toEqual(['comfyui', 'ollama']);
    const temporary = holder('once', 20, {
      owner: {
        kind: 'container',
        runtime: 'docker',
        id: 'c',
        name: 'once',
        image: 'i',
        restartPolicy: known('no'),
        autoRemove: known(true),
      },
    });
    expect(choose([temporary, holder('ollama', 12), holder('comfyui', 12)], 18)).toEqual([
      'comfyui',
      'ollama',
    ]);
  });

  it('are those that nobody listens to, and one’s own, before others', () => {
    expect(choose([holder('api', 20, { listens: [8000] }), holder('batch', 20)], 15)).toEqual(['batch']);
    const job = { owner: { kind: 'process' as const, environmentReadable: true } };
    expect(choose([holder('theirs', 20, { ...job, user: 'root' }), holder('mine', 20, job)], 15)).toEqual([
      'mine',
    ]);
  });

  it('are all where all together do not do, and many are weighed in no time', () => {
    expect(choose([holder('a', 5), holder('b', 5)], 50)).toEqual(['a', 'b']);
    const many = Array.from({ length: 60 }, (_, at) => holder(`h${at}`, 1 + (at % 7)));
    const chosen = choose(many, 40);
    const sum = chosen.reduce((all, name) => all + 1 + (Number(name.slice(1)) % 7), 0);
    expect(sum).toBeGreaterThanOrEqual(40);
    expect(sum).toBeLessThan(47);
  });
});

describe('what earlier ranks of ours left', () => {
  const orphan = (name: string, pid: number): Holder =>
    holder(name, 30, {
      identity: `orphan ${name} ${pid}:7`,
      owner: {
        kind: 'rank',
        name,
        orphan: { why: 'its rank has ended and left it behind', processes: [{ pid, startTicks: '7' }] },
      },
      pid,
    });
  const planned = (facts: ReachedFacts) =>
    plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe(),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'sglang',
      facts: [spark('a'), facts],
      sudo: {},
      replace: false,
    });
  const input = { recipe: 'qwen3.5-122b', recipeDigest: 'aaaabbbbccccdddd', replace: false };

  it('goes with its ended rank, of whatever recipe it was', () => {
    const ended = rankRecord(1, { name: 'other-r1', recipe: 'other', state: 'ended' });
    const facts = spark('b', { ranks: known([ended]), holders: known([orphan('other-r1', 55)]) });
    expect(strayRanks([spark('a'), facts], input)).toEqual([
      { name: 'other-r1', node: 'spark-b', rank: 1, engine: 'sglang' },
    ]);
    expect(planned(facts).phases.flatMap((phase) => phase.steps)).toEqual([]);
  });

  it('stays where it is another recipe’s and its server still listens: only its runner is gone', () => {
    const ended = rankRecord(0, {
      name: 'other-r0',
      recipe: 'other',
      state: 'ended',
      health: { address: '127.0.0.1', port: 30001 },
    });
    const serving = { ...orphan('other-r0', 55), listens: [30001] };
    const facts = spark('b', { ranks: known([ended]), holders: known([serving]) });
    expect(strayRanks([spark('a'), facts], input)).toEqual([]);
    expect(orphanRanks([facts]).map(({ record }) => record.name)).toEqual(['other-r0']);
  });

  it('goes by a step of its own where no record stands for it, and nobody is asked', () => {
    const memory = known(meminfo({ MemFree: 30, MemAvailable: 40 }));
    const made = planned(spark('b', { memory, holders: known([orphan('gone-r1', 55)]) }));
    const [step, wait] = made.phases.flatMap((phase) => phase.steps);
    expect(step).toMatchObject({
      kind: 'stop-process',
      needsConsent: false,
      title: 'End what our rank gone-r1 left: 1 process',
      undo: { kind: 'nothing' },
    });
    expect(step?.command.argv.slice(-2)).toEqual(['55', '7']);
    expect(wait?.kind).toBe('await-memory');
    const [, share] = made.memory;
    expect(share?.canGetBytes).toBe(64 * GIB);
  });

  it('is told as ours to end, not as a rank that serves', () => {
    const told = nodeMemory(
      spark('b', { memory: known(meminfo({})), holders: known([orphan('gone-r1', 55)]) }),
      undefined,
    );
    expect(told.holders).toMatchObject({
      value: [{ stop: 'ours', how: 'firstlight down; up removes it too' }],
    });
  });
});

describe('what firstlight memory tells of a node', () => {
  it('is how each holder is stopped and comes back, or why it is left alone', () => {
    const pod = holder('triton', 3, { owner: { kind: 'untouchable', what: 'Kubernetes pod 0f1e' } });
    const xorg = holder('Xorg', 0.6, {
      owner: { kind: 'process', environmentReadable: true },
      protectedWhy: 'it draws the desktop',
    });
    const facts = spark('b', { memory: known(meminfo({})), holders: known([...storyHolders, pod, xorg]) });
    const told = nodeMemory(facts, 150 * GIB);
    expect(told.holders.known && told.holders.value.map(({ stop, how, back }) => [stop, how, back])).toEqual([
      ['ask', 'systemctl stop, with sudo', 'Start service ollama.service again'],
      [
        'ask',
        'restart policy to no, docker stop',
        'Start container comfyui again, with its restart policy always',
      ],
      ['ask', 'TERM, after 20 s KILL, with sudo', 'Start python train.py again, as root'],
      ['leave', 'Kubernetes pod 0f1e', undefined],
      ['leave', 'it draws the desktop', undefined],
    ]);
    expect(told.wouldGo?.known && told.wouldGo.value.map(({ name }) => name)).toEqual([
      'ollama.service',
      'comfyui',
    ]);
  });

  it('is what is not known, with why', () => {
    const told = nodeMemory(
      spark('b', {
        memory: known(meminfo({})),
        containers: unknown('docker refuses this user'),
        gpus: unknown('nvidia-smi gave no answer in 5 s'),
      }),
      undefined,
    );
    expect(told.unknown).toEqual([
      'GPUs: nvidia-smi gave no answer in 5 s',
      'containers: docker refuses this user',
      'pressure: the kernel keeps no pressure figures',
    ]);
    expect(told.unified.known).toBe(false);
    expect(told.canGetBytes).toEqual(
      unknown('the GPUs of spark-b are not known: nvidia-smi gave no answer in 5 s'),
    );
  });

  it('is free memory over all cards where they have their own', () => {
    const card = gpu({ unified: false, totalBytes: known(140 * GIB), freeBytes: known(100 * GIB) });
    const told = nodeMemory(spark('b', { gpus: known([card, { ...card, index: 1 }]) }), undefined);
    expect([told.unified, told.canGetBytes]).toEqual([known(false), known(200 * GIB)]);
  });
});

describe('memory that did not come back', () => {
  it('is put down to what holds it now: the driver, files in memory, cache that stays, or somebody', () => {
    const memory = known(meminfo({ MemFree: 20, MemAvailable: 22, Cached: 40, Shmem: 18, AnonPages: 3 }));
    const held = stillHeld(spark('b', { memory, holders: known([holder('late', 12)]) }));
    expect(held).toEqual([
      '43.3 GiB are held by the GPU driver for no process that it names',
      '20.0 GiB of page cache are dirty, locked or in use, and are not given back',
      '18.0 GiB are shared memory or files in /dev/shm and other tmpfs (df -h -t tmpfs; ipcs -m)',
      'late of aurora, pid 100, holds 12.0 GiB',
    ]);
  });

  it('is said in the finding of a launch that does not fit', () => {
    const memory = known(meminfo({ MemFree: 20, MemAvailable: 22 }));
    const made = plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe(),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'sglang',
      facts: [spark('a'), spark('b', { memory })],
      sudo: {},
      replace: false,
    });
    expect(made.blockers.find(({ node }) => node === 'spark-b')?.why).toBe(
      'What holds it now: 84.3 GiB are held by the GPU driver for no process that it names and 9.9 GiB of page cache are dirty, locked or in use, and are not given back.',
    );
  });
});

describe('a page cache whose parts are not all known', () => {
  const model = known(wholeModel());
  /** spark-b with 110 GiB in its page cache, of which the driver gets none; without some lines of its meminfo. */
  const launch = (without: readonly ('cachedBytes' | 'sharedBytes' | 'dirtyBytes')[], gib = {}) => {
    const memory = meminfo({ MemFree: 3, MemAvailable: 112, Cached: 110, AnonPages: 1, ...gib });
    const cut = Object.fromEntries(without.map((line) => [line, undefined]));
    return plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe(),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'sglang',
      facts: [spark('a', { model }), spark('b', { model, memory: known({ ...memory, ...cut }) })],
      sudo: { 'spark-a': true, 'spark-b': true },
      replace: false,
    });
  };
  const drops = (made: ReturnType<typeof launch>) =>
    made.phases.flatMap(({ steps }) => steps.filter(({ kind }) => kind === 'drop-cache')).length;
  const said = (made: ReturnType<typeof launch>) =>
    made.warnings.filter(({ title }) => title.includes('page cache'));

  it('is dropped where all are known, and left where much of it is shared memory', () => {
    expect([drops(launch([])), said(launch([]))]).toEqual([1, []]);
    const shared = launch([], { Shmem: 105 });
    expect([drops(shared), said(shared)]).toEqual([0, []]);
  });

  it('is left as it is where one is not known, which is said with the line that is missing', () => {
    for (const [line, name] of [
      ['cachedBytes', 'Cached'],
      ['sharedBytes', 'Shmem'],
      ['dirtyBytes', 'Dirty'],
    ] as const) {
      const made = launch([line]);
      expect(drops(made)).toBe(0);
      expect(said(made)).toEqual([
        {
          node: 'spark-b',
          title: `Whether the page cache of spark-b hides free memory is not known: meminfo lists no ${name}.`,
          advice:
            'It is left as it is; to drop it, on spark-b: sync; echo 1 | sudo tee /proc/sys/vm/drop_caches',
        },
      ]);
    }
  });

  it('is no matter where all of it is little, or enough is free beside it', () => {
    const little = launch(['sharedBytes', 'dirtyBytes'], { Cached: 7 });
    expect([drops(little), said(little)]).toEqual([0, []]);
    const free = launch(['sharedBytes', 'dirtyBytes'], { MemFree: 105, Cached: 10 });
    expect([drops(free), said(free)]).toEqual([0, []]);
  });

  it('is not put down as held by nobody’s leave where its shared memory is not known', () => {
    const whole = meminfo({ MemFree: 20, MemAvailable: 22, Cached: 40, Shmem: 18 });
    const { lines } = whole;
    if (lines === undefined) throw new Error('no lines');
    const cut = known({
      ...whole,
      sharedBytes: undefined,
      lines: { ...lines, sharedBytes: unknown('meminfo lists no Shmem') },
    });
    expect(stillHeld(spark('b', { memory: known(whole) })).join()).toContain('of page cache are dirty');
    expect(stillHeld(spark('b', { memory: cut })).join()).not.toContain('of page cache are dirty');
  });
});

describe('a reserve that the recipe sets', () => {
  const model = known(wholeModel());
  const launch = (
    memory: Readonly<Record<string, unknown>>,
    available: number,
    differs: Partial<ReachedFacts> = {},
  ) =>
    plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe({ memory }),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'vllm',
      facts: [
        spark('a', { model }),
        spark('b', {
          model,
          memory: known(memoryOf({ total: 119.7, free: available, available, cached: 3 })),
          ...differs,
        }),
      ],
      sudo: {},
      replace: false,
    });
  const blocker = (...of: Parameters<typeof launch>) =>
    launch(...of).blockers.find(({ node }) => node === 'spark-b');

  it('is no reason where a fraction that the recipe fixes asks for as much without it', () => {
    const told = blocker({ reserve: '20GiB', fraction: 0.95 }, 95);
    expect(told?.why ?? '').not.toContain('reserve');
    expect(told?.advice).toEqual([
      'The fraction that the recipe fixes asks for more than can be had: memory.fraction: auto, or at most 0.79',
    ]);
    // Here not even the weights have room beside it, so both are named.
    expect(blocker({ reserve: '40GiB', fraction: 0.95 }, 90)?.advice).toEqual([
      expect.stringContaining('The weights and the reserve leave no room'),
    ]);
  });

  it('past all memory is told as the reason, with the largest that does, which then does', () => {
    const memory = { reserve: '6000GiB' };
    expect(blocker(memory, 115)).toEqual({
      cause: 'insufficient-free-memory-at-startup',
      node: 'spark-b',
      title:
        'It does not fit on spark-b: the plan needs 66.8 GiB, give or take 3.7 GiB, and nothing can be had beside the reserve of 6000.0 GiB.',
      why: 'memory.reserve of the recipe keeps 6000.0 GiB free, and spark-b has 119.7 GiB in all.',
      advice: ['It fits with a reserve of at most 44.0 GiB: memory.reserve: 44GiB'],
      userError: true,
    });
    expect(launch(memory, 115).warnings.filter(({ title }) => title.includes('room for'))).toEqual([]);
    expect(launch({ reserve: '44GiB' }, 115).memory.map(({ verdict }) => verdict)).toEqual(['fits', 'fits']);
    expect(launch({ reserve: '45GiB' }, 115).memory[1]?.verdict).not.toBe('fits');
  });

  it('is not asked to go under the default, and is only part of it where that does not do either', () => {
    expect(blocker({ reserve: '40GiB' }, 75)).toMatchObject({
      why: 'memory.reserve of the recipe keeps 40.0 GiB free.',
      advice: ['It may boot with the reserve that is the default: memory.reserve: 6GiB'],
      userError: true,
    });
    expect(launch({ reserve: '6GiB' }, 75).memory[1]?.verdict).toBe('may-boot');
    expect(blocker({ reserve: '40GiB' }, 50)).toMatchObject({
      advice: [
        'With the default reserve of 6.0 GiB it would still be 22.8 GiB short.',
        'The weights and the reserve leave no room: use more nodes, a larger tensor size, or a smaller model.',
      ],
      userError: false,
    });
    const { advice, userError } = blocker({ reserve: '6GiB' }, 50) ?? {};
    expect([advice, userError]).toEqual([
      ['The weights alone leave no room: use more nodes, a larger tensor size, or a smaller model.'],
      false,
    ]);
  });

  it('counts what would come back from those that may be stopped', () => {
    const differs = { holders: known([holder('ollama', 50)]) };
    expect(blocker({ reserve: '6000GiB' }, 65, differs)?.advice).toEqual([
      'It fits with a reserve of at most 44.0 GiB: memory.reserve: 44GiB',
    ]);
    expect(launch({ reserve: '44GiB' }, 65, differs).memory[1]?.verdict).toBe('fits');
  });

  it('is not promised to do where the recipe’s fraction asks for more than there is', () => {
    expect(blocker({ reserve: '6000GiB', fraction: 0.8 }, 75)?.advice[0]).toBe(
      'With the default reserve of 6.0 GiB it would still be 20.8 GiB short.',
    );
    const of = { reserve: '6GiB', fraction: 0.8 };
    expect(blocker(of, 75)?.advice).toEqual([
      'The fraction that the recipe fixes asks for more than can be had: memory.fraction: auto, or at most 0.62',
    ]);
    expect(launch({ ...of, fraction: 0.62 }, 75).memory[1]?.verdict).not.toBe('does-not-fit');
  });

  it('is told apart from a host that has little, when a node is looked at with a recipe', () => {
    const facts = spark('b', { memory: known(meminfo({})), driver: DRIVER });
    const said = (reserve: number) => memoryTroubles(facts, reserve).map(({ title }) => title);
    expect(said(6000 * GIB)).toEqual([
      "112.0 GiB available, under the recipe's reserve of 6000.0 GiB, which is more than its 119.7 GiB in all.",
    ]);
    expect(said(115 * GIB)).toEqual(["112.0 GiB available, under the recipe's reserve of 115.0 GiB."]);
  });
});

describe('a holder that comes back', () => {
  it('by compose is said to with its step, and what keeps it away; a restart policy the step sees to itself', () => {
    const owner: Holder['owner'] = {
      kind: 'container',
      runtime: 'docker',
      id: 'c0'.repeat(32),
      name: 'pictures-studio-1',
      image: 'tiny',
      restartPolicy: known('unless-stopped'),
      autoRemove: known(false),
      composeProject: 'pictures',
    };
    const returns: Holder['returns'] = [
      { by: 'restart-policy', what: 'its restart policy', keepAway: 'docker update', handled: true },
      {
        by: 'compose',
        what: 'the next compose up',
        keepAway: 'docker compose -p pictures stop',
        handled: false,
      },
    ];
    const step = stopStep({
      holder: holder('pictures-studio-1', 20, { owner, returns }),
      facts: spark('b'),
      why: '',
      rootAtHand: false,
    });
    expect(step.target?.returns).toEqual([
      { what: 'the next compose up', keepAway: 'docker compose -p pictures stop' },
    ]);
    expect(step.command.argv).toContain('hold');
  });
});
