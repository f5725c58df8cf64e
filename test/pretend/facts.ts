import { readFileSync } from 'node:fs';
import type { Cluster, Node } from '../../src/domain/cluster.ts';
import {
  type Holder,
  known,
  type MemoryFacts,
  type ModelFacts,
  type NodeFacts,
  type RankRecord,
  type ReachedFacts,
  unknown,
} from '../../src/domain/facts.ts';
import { type Recipe, recipeSchema } from '../../src/domain/recipe.ts';

export const GIB = 2 ** 30;
export const MODEL_PATH = '/home/aurora/models/Qwen3.5-122B-A10B-FP8';
export const SGLANG_IMAGE = 'lmsysorg/sglang:v0.5.18-spark';
const VLLM_IMAGE = 'nvcr.io/nvidia/vllm:26.09-py3';

/** A model's config.json from the samples, as a probe would have parsed it. */
export function configOf(name: string): Readonly<Record<string, unknown>> {
  const parsed: unknown = JSON.parse(
    readFileSync(new URL(`../samples/models/${name}.json`, import.meta.url), 'utf8'),
  );
  if (typeof parsed !== 'object' || parsed === null) throw new Error(`${name} is no object`);
  return Object.fromEntries(Object.entries(parsed));
}

export const sparkNodes: readonly Node[] = [
  { name: 'spark-a', ssh: '10.1.230.180', user: 'aurora', fabric: '192.168.200.12' },
  { name: 'spark-b', ssh: '192.168.200.13', user: 'aurora', jump: 'spark-a', fabric: '192.168.200.13' },
];

export const sparks: Cluster = { name: 'sparks', file: '/tmp/cluster.yaml', nodes: sparkNodes };

/** The recipe of the two-sparks story; `differs` is in the form people write. */
export function sparkRecipe(differs: Readonly<Record<string, unknown>> = {}): Recipe {
  return recipeSchema.parse({
    recipe: 'qwen3.5-122b',
    model: 'Qwen/Qwen3.5-122B-A10B-FP8',
    path: MODEL_PATH,
    engines: ['sglang', 'vllm'],
    layout: { nodes: 2, tensor: 2 },
    context: 131072,
    sequences: 16,
    run: { in: 'docker', image: { sglang: SGLANG_IMAGE, vllm: VLLM_IMAGE } },
    ...differs,
  });
}

/** Qwen3.5-122B FP8 on disk: 119.2 GiB by its index. */
export function wholeModel(name = 'Qwen3.5-122B-A10B-FP8', gib = 119.2): ModelFacts {
  return {
    present: true,
    path: MODEL_PATH,
    config: known(configOf(name)),
    indexBytes: known(gib * GIB),
    missingFiles: [],
    files: [],
  };
}

export function memoryOf(gib: {
  readonly total: number;
  readonly free: number;
  readonly available: number;
  readonly cached: number;
}): MemoryFacts {
  return {
    totalBytes: gib.total * GIB,
    freeBytes: gib.free * GIB,
    availableBytes: gib.available * GIB,
    cachedBytes: gib.cached * GIB,
    dirtyBytes: 0,
    sharedBytes: 0,
    slabBytes: 0.5 * GIB,
    swapTotalBytes: 16 * GIB,
    swapFreeBytes: 16 * GIB,
  };
}

/** One Spark that holds nothing but the system; `differs` replaces whole facts. */
export function spark(which: 'a' | 'b', differs: Partial<ReachedFacts> = {}): ReachedFacts {
  const a = which === 'a';
  const own = a ? '192.168.200.12' : '192.168.200.13';
  const port = a ? 0 : 1;
  const other = a ? 'spark-b' : 'spark-a';
  const total = a ? 121.69 : 119.7;
  return {
    node: `spark-${which}`,
    at: '2026-11-29T10:00:00.000Z',
    reached: true,
    milliseconds: 340,
    host: known({
      hostname: `spark-${which}`,
      machineId: `${which}0000000000000000000000000000000`,
      bootId: `boot-${which}`,
      os: 'Ubuntu 24.04.3 LTS',
      kernel: '6.17.0-1008-nvidia',
      arch: 'aarch64',
      user: 'aurora',
      uid: 1000,
      home: '/home/aurora',
      ownAddresses: known(['127.0.1.1']),
      pageBytes: 4096,
    }),
    clockOffsetSeconds: known(0.02),
    memory: known(memoryOf({ total, free: total - 6, available: total - 5, cached: 1.5 })),
    gpus: known([
      {
        index: 0,
        name: 'NVIDIA GB10',
        uuid: `GPU-${which}`,
        unified: true,
        totalBytes: unknown('nvidia-smi prints [N/A] on unified memory'),
        freeBytes: unknown('nvidia-smi prints [N/A] on unified memory'),
        driver: '580.142',
      },
    ]),
    holders: known([]),
    containers: known([]),
    ports: known([]),
    interfaces: known([
      {
        name: `enp1s0f${port}np${port}`,
        up: true,
        mtu: 9000,
        speedMbps: known(200000),
        addresses: [{ address: own, prefix: 24 }],
        reaches: [other],
      },
      {
        name: 'enP7s7',
        up: true,
        mtu: 1500,
        speedMbps: known(10000),
        addresses: [{ address: a ? '10.1.230.180' : '10.1.231.181', prefix: 24 }],
        reaches: [],
      },
    ]),
    rdma: known([
      {
        device: `rocep1s0f${port}`,
        interfaceName: known(`enp1s0f${port}np${port}`),
        active: true,
        rateGbps: known(200),
      },
      {
        device: `rocep1s0f${1 - port}`,
        interfaceName: known(`enp1s0f${1 - port}np${1 - port}`),
        active: false,
        rateGbps: unknown('the port is down'),
      },
    ]),
    disks: known([{ path: '/', totalBytes: 916 * GIB, freeBytes: 400 * GIB }]),
    model: known(wholeModel()),
    engines: known([
      {
        engine: 'sglang',
        where: { in: 'docker', image: SGLANG_IMAGE, imageId: 'sha256:1', arch: 'arm64' },
        version: known('0.5.18'),
      },
      {
        engine: 'vllm',
        where: { in: 'docker', image: VLLM_IMAGE, imageId: 'sha256:2', arch: 'arm64' },
        version: known('0.28.1'),
      },
    ]),
    sudo: known('password'),
    ranks: known([]),
    owed: known([]),
    lock: known(null),
    ...differs,
  };
}

/** The three holders of the story's worker: a service, a container with a restart policy, root's bare process. */
export const storyHolders: readonly Holder[] = [
  {
    identity: 'ollama.service@4242',
    name: 'ollama.service',
    owner: { kind: 'unit', unit: 'ollama.service', restart: known('always') },
    user: 'ollama',
    pid: 1812,
    startTicks: '4242',
    ageSeconds: known(33_120),
    command: 'ollama runner --model llama3.3-70b --port 11434',
    gpuBytes: known(31.2 * GIB),
    residentBytes: known(0.9 * GIB),
    bytes: 31.2 * GIB,
    listens: [11434],
  },
  {
    identity: 'c0ffee'.repeat(10).slice(0, 64),
    name: 'comfyui',
    owner: {
      kind: 'container',
      runtime: 'docker',
      id: 'c0ffee'.repeat(10).slice(0, 64),
      name: 'comfyui',
      image: 'ghcr.io/ai-dock/comfyui:v2-cuda-13.0',
      restartPolicy: known('always'),
      autoRemove: known(false),
    },
    user: 'root',
    pid: 2201,
    startTicks: '5151',
    ageSeconds: known(600),
    command: 'python3 main.py --listen 0.0.0.0 --port 8188',
    gpuBytes: known(22.6 * GIB),
    residentBytes: known(1.2 * GIB),
    bytes: 22.6 * GIB,
    listens: [8188],
  },
  {
    identity: '3307@6161',
    name: 'python train.py',
    owner: { kind: 'process', environmentReadable: false },
    user: 'root',
    pid: 3307,
    startTicks: '6161',
    ageSeconds: known(7200),
    command: 'python train.py --resume',
    gpuBytes: known(20.9 * GIB),
    residentBytes: known(0.6 * GIB),
    bytes: 20.9 * GIB,
    listens: [],
  },
];

/** The worker of the story, full: three holders, a warm page cache. */
export function fullWorker(differs: Partial<ReachedFacts> = {}): ReachedFacts {
  return spark('b', {
    memory: known(memoryOf({ total: 119.7, free: 7.8, available: 36.1, cached: 30.4 })),
    holders: known(storyHolders),
    ...differs,
  });
}

/** Both nodes as the story finds them. */
export function storyFacts(): readonly NodeFacts[] {
  return [
    spark('a', { memory: known(memoryOf({ total: 121.69, free: 4.2, available: 115.4, cached: 112.6 })) }),
    fullWorker(),
  ];
}

/** A rank of the story's recipe as the node's own record tells it. */
export function rankRecord(rank: number, differs: Partial<RankRecord> = {}): RankRecord {
  return {
    name: `qwen3.5-122b-r${rank}`,
    recipe: 'qwen3.5-122b',
    engine: 'sglang',
    rank,
    run: '7',
    attempt: 1,
    in: 'docker',
    recipeDigest: 'aaaabbbbccccdddd',
    effectiveDigest: 'eeeeffff00001111',
    edits: [],
    startedAt: '2026-11-29T09:59:00.000Z',
    state: 'running',
    exitCode: unknown('it has not ended'),
    folder: `/home/aurora/.firstlight/x/ranks/qwen3.5-122b-r${rank}`,
    logBytes: 1000,
    ...differs,
  };
}
