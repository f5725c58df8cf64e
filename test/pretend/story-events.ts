import type { Event, EventBody } from '../../src/domain/event.ts';
import { known, type NodeFacts, unknown } from '../../src/domain/facts.ts';
import type { Finding, Stage } from '../../src/domain/finding.ts';
import type { NodeMemoryPlan, Plan, Service, Step } from '../../src/domain/plan.ts';
import { type Recipe, recipeSchema } from '../../src/domain/recipe.ts';
import { guarding } from './guard-records.ts';

/** The two-sparks story as a hand-made list of events, for tests of what faces make of them. Numbers add up. */

const GIB = 2 ** 30;
const START = Date.parse('2026-11-12T10:02:41.000Z');

const storyRecipe: Recipe = recipeSchema.parse({
  recipe: 'qwen3.5-122b',
  model: 'Qwen/Qwen3.5-122B-A10B-FP8',
  path: '/home/aurora/models/Qwen3.5-122B-A10B-FP8',
  engines: ['sglang', 'vllm'],
  layout: { nodes: 2, tensor: 2 },
  context: 131072,
  run: { in: 'docker', image: { sglang: 'lmsysorg/sglang:spark', vllm: 'vllm/vllm-openai:v0.23.0' } },
  network: 'engine',
});

type Held = { readonly others: boolean; readonly cacheGib: number };

/** What one look sees on a node: 121.6 GiB on spark-a, 119.7 on spark-b. */
export function storyFacts(node: 'spark-a' | 'spark-b', at: string, held: Held): NodeFacts {
  const total = node === 'spark-a' ? 121.6 : 119.7;
  const others = held.others && node === 'spark-b' ? 31.2 + 22.6 + 20.9 : 0;
  const system = 3.8;
  const driver = 3;
  const free = total - system - driver - others - held.cacheGib;
  return {
    node,
    at,
    reached: true,
    milliseconds: node === 'spark-a' ? 1900 : 2800,
    host: known({
      hostname: node,
      machineId: `${node}-machine`,
      bootId: `${node}-boot`,
      os: 'DGX OS 7.5.0',
      kernel: '6.17.0-1014-nvidia',
      arch: 'aarch64',
      user: 'aurora',
      uid: 1000,
      home: '/home/aurora',
      ownAddresses: known(['127.0.1.1']),
      pageBytes: 4096,
    }),
    clockOffsetSeconds: known(0.2),
    memory: known({
      totalBytes: total * GIB,
      freeBytes: free * GIB,
      availableBytes: (free + held.cacheGib - 2.1) * GIB,
      cachedBytes: (held.cacheGib + 0.4) * GIB,
      dirtyBytes: 0.1 * GIB,
      sharedBytes: 0.4 * GIB,
      slabBytes: 3.4 * GIB,
      swapTotalBytes: 16 * GIB,
      swapFreeBytes: 16 * GIB,
    }),
    gpus: known([
      {
        index: 0,
        name: 'NVIDIA GB10',
        uuid: `GPU-${node}`,
        unified: true,
        totalBytes: unknown('GB10 does not say'),
        freeBytes: unknown('GB10 does not say'),
        driver: '580.142',
      },
    ]),
    holders: known(
      others > 0
        ? [
            {
              identity: 'unit:ollama.service:4411',
              name: 'ollama.service',
              owner: { kind: 'unit', unit: 'ollama.service', restart: known('always') },
              user: 'ollama',
              pid: 4411,
              startTicks: '8812',
              ageSeconds: known(518400),
              command: '/usr/local/bin/ollama serve',
              gpuBytes: known(31.2 * GIB),
              residentBytes: known(2 * GIB),
              bytes: 31.2 * GIB,
              listens: [11434],
            },
            {
              identity: 'container:9f1c',
              name: 'comfyui',
              owner: {
                kind: 'container',
                runtime: 'docker',
                id: '9f1c',
                name: 'comfyui',
                image: 'comfyui:latest',
                restartPolicy: known('always'),
                autoRemove: known(false),
              },
              user: 'lab',
              pid: 5120,
              startTicks: '9000',
              ageSeconds: known(518400),
              command: 'python main.py',
              gpuBytes: known(22.6 * GIB),
              residentBytes: known(4 * GIB),
              bytes: 22.6 * GIB,
              listens: [],
            },
            {
              identity: 'pid:48122:77120',
              name: 'python train.py',
              owner: { kind: 'process', environmentReadable: false },
              user: 'root',
              pid: 48122,
              startTicks: '77120',
              ageSeconds: known(33120),
              command: 'python train.py --lr 1e-4',
              gpuBytes: known(20.9 * GIB),
              residentBytes: known(3 * GIB),
              bytes: 20.9 * GIB,
              listens: [],
            },
          ]
        : [],
    ),
    containers: known([]),
    ports: known([]),
    interfaces: known([]),
    rdma: known([]),
    disks: known([]),
    engines: known([]),
    sudo: known('password'),
    ranks: known([]),
    owed: known([]),
    lock: known(null),
  };
}

function stopStep(step: Pick<Step, 'id' | 'kind' | 'title' | 'undo' | 'why'>, target: Step['target']): Step {
  return {
    ...step,
    phase: 'clear',
    node: 'spark-b',
    risk: 'who uses it loses it',
    needsConsent: true,
    command: { argv: ['true'] },
    ...(target ? { target } : {}),
  };
}

const stopSteps: readonly Step[] = [
  stopStep(
    {
      id: '7f3a',
      kind: 'stop-unit',
      title: 'stop ollama.service',
      why: 'systemctl stop',
      undo: { kind: 'command', title: 'start it, or the next boot', command: { argv: ['true'] } },
    },
    {
      identity: 'unit:ollama.service:4411',
      name: 'ollama.service',
      what: 'system service, user ollama',
      kind: 'unit',
      user: 'ollama',
      pid: 4411,
      bytes: 31.2 * GIB,
      listens: [11434],
    },
  ),
  stopStep(
    {
      id: 'c21e',
      kind: 'stop-container',
      title: 'stop comfyui, policy to no',
      why: 'restart policy to no, docker stop',
      undo: { kind: 'command', title: 'policy, start', command: { argv: ['true'] } },
    },
    {
      identity: 'container:9f1c',
      name: 'comfyui',
      what: 'container, started by user lab',
      kind: 'container',
      user: 'lab',
      image: 'comfyui:latest',
      pid: 5120,
      bytes: 22.6 * GIB,
      ageSeconds: 518400,
      listens: [],
    },
  ),
  stopStep(
    {
      id: '90b4',
      kind: 'stop-process',
      title: 'end python train.py (48122)',
      why: 'TERM, after 20 s KILL',
      undo: { kind: 'irreversible', why: 'its environment cannot be read' },
    },
    {
      identity: 'pid:48122:77120',
      name: 'python train.py',
      what: 'process of root',
      kind: 'process',
      user: 'root',
      pid: 48122,
      bytes: 20.9 * GIB,
      ageSeconds: 33120,
      listens: [],
    },
  ),
];

const waitStep: Step = {
  id: 'b00c',
  phase: 'clear',
  kind: 'await-memory',
  node: 'spark-b',
  title: 'wait for 94.3 GiB, up to 3:00',
  why: 'memory comes back late',
  risk: 'none',
  needsConsent: false,
  command: { argv: ['true'] },
  undo: { kind: 'nothing' },
  retry: { everySeconds: 2, forSeconds: 180 },
};

function service(rank: 0 | 1): Service {
  const node = rank === 0 ? 'spark-a' : 'spark-b';
  return {
    name: `qwen3.5-122b-r${rank}`,
    node,
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'sglang',
    in: 'docker',
    argv: [
      'docker',
      'run',
      '--network',
      'host',
      'lmsysorg/sglang:spark',
      'python3',
      '-m',
      'sglang.launch_server',
      '--node-rank',
      String(rank),
      '--json-model-override-args',
      '{"a": 1}',
    ],
    env: { NCCL_DEBUG: 'INFO' },
    secretEnv: {},
    recipe: 'qwen3.5-122b',
    recipeDigest: 'r1',
    effectiveDigest: 'e1',
    edits: [],
    healthPort: 30000,
    healthAddress: '127.0.0.1',
    servedName: 'qwen3.5-122b',
  };
}

function memory(node: string, now: number, after: number): NodeMemoryPlan {
  return {
    node,
    weightsBytes: 59.8 * GIB,
    kvBytes: 21 * GIB,
    engineBytes: 4.1 * GIB,
    graphsBytes: 3.4 * GIB,
    sumBytes: 88.3 * GIB,
    errorBytes: 2.5 * GIB,
    canGetBytes: now * GIB,
    canGetAfterClearingBytes: after * GIB,
    verdict: 'fits',
    rules: ['weights: 119.6 GiB of files over 2 ranks', 'KV cache: 131,072 tokens × 16 sequences'],
  };
}

/** The first plan of the story: three things to stop, then two ranks. */
export const storyPlan: Plan = {
  digest: '3d91',
  engine: 'sglang',
  recipe: storyRecipe,
  recipeDigest: 'r1',
  effectiveDigest: 'e1',
  edits: [],
  ranks: ['spark-a', 'spark-b'],
  phases: [
    { kind: 'clear', steps: [...stopSteps, waitStep], services: [] },
    { kind: 'launch', steps: [], services: [service(1), service(0)] },
  ],
  memory: [memory('spark-a', 105.2, 105.2), memory('spark-b', 30.1, 104.8)],
  blockers: [],
  warnings: [],
  state: 'work',
};

/** The plan once everything is cleared. */
export const clearPlan: Plan = {
  ...storyPlan,
  digest: '81aa',
  phases: [{ kind: 'launch', steps: [], services: [service(1), service(0)] }],
  memory: [memory('spark-a', 105.2, 105.2), memory('spark-b', 104.8, 104.8)],
};

export const loopback: Finding = {
  cause: 'loopback-address-advertised',
  node: 'spark-b',
  rank: 1,
  role: 'worker',
  stage: 'rendezvous',
  final: true,
  confidence: 0.97,
  title: 'spark-b advertised a loopback address',
  why: 'Its /etc/hosts maps spark-b to 127.0.1.1, and Gloo advertised that to the others.',
  quotes: [
    {
      rank: 1,
      node: 'spark-b',
      line: 1204,
      text: '[W1112 10:04:31 ProcessGroupGloo.cpp:757] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.',
    },
    {
      rank: 0,
      node: 'spark-a',
      line: 1391,
      text: 'RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error, remote=[127.0.1.1]:41257',
    },
  ],
  consequences: ['rank 0 on spark-a waited for it and ended with the same error'],
  advice: ['on spark-b, in /etc/hosts, give spark-b the address 192.168.200.13; then firstlight up'],
  values: { address: '127.0.1.1' },
};

const EDITS = [{ path: 'network', from: 'engine', to: 'auto' }];
const LIMITS: Readonly<Partial<Record<Stage, number>>> = {
  start: 180,
  rendezvous: 120,
  weights: 120,
  kv: 300,
  graphs: 600,
  warmup: 300,
};

type Timed = readonly [seconds: number, body: EventBody];

function at(seconds: number): string {
  return new Date(START + seconds * 1000).toISOString();
}

function looked(seconds: number, attempt: number, held: Held): Timed {
  const facts = (['spark-a', 'spark-b'] as const).map((node) => storyFacts(node, at(seconds), held));
  return [seconds, { type: 'looked', attempt, milliseconds: 2800, facts }];
}

function stepPair(from: number, to: number, step: Step): readonly Timed[] {
  const { id, node, title, kind } = step;
  return [
    [from, { type: 'step-started', id, node, title, phase: step.phase, kind, undo: step.undo.kind }],
    [
      to,
      {
        type: 'step-ended',
        id,
        node,
        title,
        kind,
        result: 'done',
        text: '',
        milliseconds: (to - from) * 1000,
      },
    ],
  ];
}

function launched(seconds: number, attempt: number): readonly Timed[] {
  return ([1, 0] as const).flatMap((rank): readonly Timed[] => {
    const { name, node, role } = service(rank);
    const step = { id: name, node, title: `start rank ${rank}, sglang`, kind: 'start-rank' };
    const from = seconds + (rank === 1 ? 0 : 4);
    return [
      [from, { type: 'step-started', ...step, phase: 'launch', undo: 'command' }],
      [from + 4, { type: 'step-ended', ...step, result: 'done', text: '', milliseconds: 4000 }],
      [
        seconds + 9,
        {
          type: 'rank-started',
          attempt,
          node,
          rank,
          role,
          engine: 'sglang',
          name,
          log: `runs/14/${attempt}-${rank}.log`,
          followed: false,
          limits: LIMITS,
        },
      ],
    ];
  });
}

function moved(seconds: number, attempt: number, rank: 0 | 1, stage: Stage, percent?: number): Timed {
  const { node } = service(rank);
  return [
    seconds,
    { type: 'rank-stage', attempt, node, rank, stage, percent, line: Math.round(seconds * 10) },
  ];
}

/** What a guard tells once its rank serves: lowest while graphs were captured, and available now, in GiB. */
function guard(seconds: number, rank: 0 | 1, lowest: number, available: number): Timed {
  const { node } = service(rank);
  const lowestAt = new Date(START + 240_000).toISOString();
  return [
    seconds,
    {
      type: 'guard',
      attempt: 2,
      node,
      rank,
      guard: { ...guarding, lowestBytes: lowest * GIB, lowestAt, availableBytes: available * GIB },
    },
  ];
}

function remedy(
  seconds: number,
  type: 'remedy-applied' | 'remedy-proved' | 'remedy-failed',
  why: string,
): Timed {
  return [
    seconds,
    {
      type,
      attempt: 1,
      cause: loopback.cause,
      node: 'spark-b',
      remedy: 'use-own-addresses',
      title: 'give each rank its own addresses',
      edits: EDITS,
      why,
    },
  ];
}

const [ollama, comfyui, train] = stopSteps;

const story: readonly Timed[] = [
  [
    0,
    {
      type: 'run-started',
      operation: 'up',
      cluster: 'sparks',
      recipe: 'qwen3.5-122b',
      recipeDigest: 'r1',
      nodes: ['spark-a', 'spark-b'],
      controller: { host: 'laptop', user: 'aurora', pid: 4242 },
      version: '0.1.0',
    },
  ],
  looked(3, 1, { others: true, cacheGib: 30.4 }),
  [4, { type: 'planned', attempt: 1, plan: storyPlan }],
  [
    8,
    {
      type: 'consent-asked',
      plan: '3d91',
      steps: stopSteps.flatMap((step) =>
        step.target
          ? [
              {
                id: step.id,
                node: step.node,
                title: step.title,
                target: step.target,
                undo: step.undo,
                how: step.why,
              },
            ]
          : [],
      ),
    },
  ],
  [
    17,
    {
      type: 'consent-given',
      steps: ['7f3a', 'c21e', '90b4'],
      refused: [],
      by: 'aurora in the terminal on laptop',
    },
  ],
  ...(ollama ? stepPair(18, 21, ollama) : []),
  ...(comfyui ? stepPair(21, 33, comfyui) : []),
  ...(train ? stepPair(33, 54, train) : []),
  ...stepPair(54, 84, waitStep),
  looked(87, 1, { others: false, cacheGib: 28 }),
  [88, { type: 'planned', attempt: 1, plan: clearPlan }],
  ...launched(89, 1),
  moved(101, 1, 1, 'rendezvous'),
  moved(101, 1, 0, 'rendezvous'),
  [128, { type: 'finding', attempt: 1, ...loopback, final: false }],
  [129, { type: 'rank-ended', attempt: 1, node: 'spark-a', rank: 0, code: 1, requested: false }],
  [130, { type: 'rank-ended', attempt: 1, node: 'spark-b', rank: 1, code: 1, requested: false }],
  [131, { type: 'finding', attempt: 1, ...loopback }],
  remedy(132, 'remedy-applied', loopback.title),
  looked(135, 2, { others: false, cacheGib: 28 }),
  [136, { type: 'planned', attempt: 2, plan: { ...clearPlan, digest: '92cd', edits: EDITS } }],
  ...launched(137, 2),
  moved(147, 2, 1, 'rendezvous'),
  moved(147, 2, 0, 'rendezvous'),
  moved(151, 2, 1, 'weights', 0),
  moved(151, 2, 0, 'weights', 0),
  remedy(151, 'remedy-proved', 'past rendezvous this time'),
  moved(160, 2, 0, 'weights', 21),
  moved(161, 2, 1, 'weights', 24),
  moved(165, 2, 0, 'weights', 38),
  moved(166, 2, 1, 'weights', 52),
  moved(172, 2, 0, 'weights', 64),
  moved(190, 2, 0, 'weights', 80),
  moved(214, 2, 1, 'weights', 71),
  moved(218, 2, 0, 'kv'),
  moved(222, 2, 1, 'kv'),
  moved(226, 2, 0, 'graphs'),
  moved(226, 2, 1, 'graphs'),
  moved(250, 2, 0, 'warmup'),
  moved(250, 2, 1, 'warmup'),
  moved(256, 2, 0, 'serving'),
  moved(256, 2, 1, 'serving'),
  guard(260, 1, 19.8, 23.9),
  guard(260, 0, 20.6, 24.7),
  [
    261,
    {
      type: 'serving',
      model: 'Qwen/Qwen3.5-122B-A10B-FP8',
      engine: 'sglang',
      head: 'spark-a',
      port: 30000,
      listen: 'loopback',
      network: 'rdma',
      networkText: 'RoCE, both halves of the cable',
      answer: '204',
      reasoning: '12 times 17 is 204.',
      edits: EDITS,
    },
  ],
  [
    263,
    {
      type: 'measured',
      firstTokenSeconds: 0.41,
      tokensPerSecond: 23.8,
      promptTokens: 24,
      outputTokens: 139,
      streams: 1,
    },
  ],
  [
    264,
    {
      type: 'run-ended',
      outcome: 'serving',
      why: 'qwen3.5-122b answers on spark-a',
      exit: 0,
      owed: [
        { node: 'spark-b', id: '7f3a', title: 'start ollama.service' },
        { node: 'spark-b', id: 'c21e', title: 'start comfyui' },
      ],
    },
  ],
];

/** Events as the journal gives them back. */
function numbered(run: string, timed: readonly Timed[]): readonly Event[] {
  const ordered = timed.toSorted(([a], [b]) => a - b);
  return ordered.map(([seconds, body], index) => ({ v: 1, seq: index + 1, run, at: at(seconds), ...body }));
}

/** The whole story: run 14, ends serving. */
export const storyEvents: readonly Event[] = numbered('14', story);

/** The same story up to (and with) this second. */
export function storyUntil(seconds: number): readonly Event[] {
  const last = START + seconds * 1000;
  return storyEvents.filter((event) => Date.parse(event.at) <= last);
}

/** Milliseconds since the epoch at this second of the story. */
export function storyTime(seconds: number): number {
  return START + seconds * 1000;
}

/** Run 15: the remedy does not help, nor does the next engine; it ends not serving. */
export const failedEvents: readonly Event[] = numbered('15', [
  ...story.filter(([seconds]) => seconds <= 150).map(([seconds, body]): Timed => [seconds, body]),
  [170, { type: 'rank-ended', attempt: 2, node: 'spark-a', rank: 0, code: 1, requested: false }],
  [171, { type: 'finding', attempt: 2, ...loopback }],
  remedy(172, 'remedy-failed', 'the same cause again'),
  [173, { type: 'engine-changed', from: 'sglang', to: 'vllm', why: 'sglang has no remedy left' }],
  looked(176, 3, { others: false, cacheGib: 20 }),
  [177, { type: 'planned', attempt: 3, plan: { ...clearPlan, digest: 'a771', engine: 'vllm' } }],
  [
    186,
    {
      type: 'rank-started',
      attempt: 3,
      node: 'spark-a',
      rank: 0,
      role: 'head',
      engine: 'vllm',
      name: 'qwen3.5-122b-r0',
      log: 'runs/15/3-0.log',
      followed: false,
    },
  ],
  [380, { type: 'rank-ended', attempt: 3, node: 'spark-a', rank: 0, code: 1, requested: false }],
  [399, { type: 'finding', attempt: 3, ...loopback }],
  [
    400,
    {
      type: 'run-ended',
      outcome: 'not-serving',
      why: `${loopback.title} ${loopback.advice[0]}`,
      exit: 1,
      owed: [
        { node: 'spark-b', id: '7f3a', title: 'start ollama.service' },
        { node: 'spark-b', id: 'c21e', title: 'start comfyui' },
      ],
    },
  ],
]);

/** Run 16: down, with two things still owed. */
export const downEvents: readonly Event[] = numbered('16', [
  [
    1000,
    {
      type: 'run-started',
      operation: 'down',
      cluster: 'sparks',
      recipe: undefined,
      recipeDigest: undefined,
      nodes: ['spark-a', 'spark-b'],
      controller: { host: 'laptop', user: 'aurora', pid: 4242 },
      version: '0.1.0',
    },
  ],
  looked(1003, 1, { others: false, cacheGib: 20 }),
  [
    1020,
    {
      type: 'run-ended',
      outcome: 'stopped',
      why: '2 ranks stopped',
      exit: 0,
      owed: [
        { node: 'spark-b', id: '7f3a', title: 'start ollama.service' },
        { node: 'spark-b', id: 'c21e', title: 'start comfyui' },
      ],
    },
  ],
]);
