import type { Stage } from '../../domain/finding.ts';
import { argsOf, type Recipe, servedName } from '../../domain/recipe.ts';
import type { Engine, RankCommand, RankInput } from './engine.ts';
import { landmarkForms, landmarkIn, type Marks, messageOf } from './log-line.ts';
import { parsersFor } from './parsers.ts';
import {
  headAddressOf,
  healthAddressOf,
  hostOf,
  modelTypeOf,
  networkEnv,
  programOf,
  telltaleEnv,
} from './rank-shape.ts';

/** vLLM over one or several nodes without Ray, by `--nnodes` and `--headless`. Flags and messages: main of 2026-08-17. */
export const vllm: Engine = {
  name: 'vllm',
  rank,
  landmark: (text) => landmarkIn(VLLM_MARKS, text),
  get landmarks() {
    return landmarkForms(VLLM_MARKS);
  },
  message: messageOf,
  // A headless worker opens no HTTP port at all (engines.md 2.1).
  workerHealth: false,
  stallSeconds: (stage) => VLLM_STALL[stage],
  stopSeconds: 30,
};

function rank(input: RankInput): RankCommand {
  const { recipe } = input;
  const { layout } = recipe;
  const argv = serveWords(input, 'vllm', [
    ...(layout.nodes > 1
      ? [
          '--nnodes',
          String(layout.nodes),
          '--node-rank',
          String(input.rank),
          '--master-addr',
          headAddressOf(input),
          '--master-port',
          String(recipe.rendezvousPort),
          ...(input.rank === 0 ? [] : ['--headless']),
        ]
      : []),
  ]);
  return {
    argv,
    env: { ...networkEnv(input, 'VLLM_HOST_IP'), ...telltaleEnv(recipe), ...recipe.env },
    ...secretEnvOf(recipe),
    health: input.rank === 0 ? healthOf(input) : undefined,
  };
}

/** Where the head's API answers, seen from its node. */
export function healthOf(input: RankInput): RankCommand['health'] {
  return { address: healthAddressOf(hostOf(input)), port: input.recipe.serve.port };
}

/** The API key under vLLM's own variable for it. */
export function secretEnvOf({ serve }: Recipe): Pick<RankCommand, 'secretEnv'> {
  return serve.apiKey === undefined ? {} : { secretEnv: { VLLM_API_KEY: serve.apiKey.env } };
}

/** `vllm serve` with all that the recipe wants of it; `placing` says how its ranks find each other. */
export function serveWords(
  input: RankInput,
  engine: 'vllm' | 'vllm-ray',
  placing: readonly string[],
): readonly string[] {
  const { recipe, memoryFraction } = input;
  const { layout, serve } = recipe;
  const parsers = parsersFor('vllm', modelTypeOf(input.facts), serve);
  return [
    ...programOf(recipe, engine),
    recipe.path,
    '--tensor-parallel-size',
    String(layout.tensor),
    ...(layout.pipeline > 1 ? ['--pipeline-parallel-size', String(layout.pipeline)] : []),
    ...(layout.expert > 1 ? ['--enable-expert-parallel'] : []),
    ...(layout.data > 1 ? ['--data-parallel-size', String(layout.data)] : []),
    ...placing,
    ...(input.rank === 0 ? ['--host', hostOf(input), '--port', String(serve.port)] : []),
    '--served-model-name',
    servedName(recipe),
    ...(memoryFraction === undefined ? [] : ['--gpu-memory-utilization', String(memoryFraction)]),
    ...(recipe.context === undefined ? [] : ['--max-model-len', String(recipe.context)]),
    ...(recipe.sequences === undefined ? [] : ['--max-num-seqs', String(recipe.sequences)]),
    ...(parsers.reasoning === undefined ? [] : ['--reasoning-parser', parsers.reasoning]),
    ...(parsers.tools === undefined
      ? []
      : ['--enable-auto-tool-choice', '--tool-call-parser', parsers.tools]),
    ...argsOf(recipe, engine),
  ];
}

/**
 * In the order of a healthy start. A headless worker prints few of them: "world_size=…", "Loading weights took",
 * "Model loading took", "Graph capturing finished" (engines.md 3.1), so the end of its graphs is the last it says,
 * and whether it serves is told by the head.
 */
export const VLLM_MARKS: Marks = [
  [/vLLM (?:API )?server version \S+|^version \S+$/, { stage: 'start' }],
  [/^non-default args: /, { stage: 'start' }],
  [/^Launching vLLM \(v[^)]+\) headless multiproc executor/, { stage: 'start' }],
  [/^Initializing a V1 LLM engine /, { stage: 'start' }],
  [/^DP group leader: node_rank=/, { stage: 'start' }],
  [/^world_size=\d+ rank=\d+ local_rank=\d+ distributed_init_method=/, { stage: 'rendezvous' }],
  [/^rank \d+ in world size \d+ is assigned as/, { stage: 'rendezvous' }],
  [/^Starting to load model .+\.\.\.$|^Loading model from scratch\.\.\./, { stage: 'weights' }],
  [/Checkpoint size: [\d.]+ GiB\. Available RAM:/, { stage: 'weights' }],
  [/^Loading weights took [\d.]+ seconds/, { stage: 'weights', percent: 100 }],
  [/^Model loading took [\d.]+ GiB/, { stage: 'kv' }],
  [/^Dynamo bytecode transform time: |^torch\.compile (?:took|takes) /, { stage: 'kv' }],
  [/^Initial profiling\/warmup run took /, { stage: 'kv' }],
  [/^Estimated CUDA graph memory: /, { stage: 'kv' }],
  [/^Available KV cache memory: |memory for KV Cache as specified by kv_cache_memory_bytes/, { stage: 'kv' }],
  [/^[CG]PU KV cache size: |^Maximum concurrency for /, { stage: 'kv' }],
  [/^Graph capturing finished in /, { stage: 'warmup' }],
  [/^init engine \(profile, create kv cache, warmup model\) took /, { stage: 'warmup' }],
  [/^Starting vLLM (?:API )?server/, { stage: 'warmup' }],
  [/Application startup complete\./, { stage: 'serving' }],
];

/** Seconds. Weights show no bar on a worker; compiling and profiling happen within `kv` and may take minutes. */
export const VLLM_STALL: Readonly<Record<Stage, number>> = {
  start: 300,
  rendezvous: 120,
  weights: 900,
  kv: 600,
  graphs: 600,
  warmup: 660,
  serving: Number.POSITIVE_INFINITY,
};
