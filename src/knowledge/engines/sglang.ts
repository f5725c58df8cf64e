import { valueIf } from '../../domain/facts.ts';
import type { Stage } from '../../domain/finding.ts';
import { servedName } from '../../domain/recipe.ts';
import type { Engine, RankCommand, RankInput } from './engine.ts';
import { landmarkForms, landmarkIn, type Marks, messageOf } from './log-line.ts';
import { parsersFor } from './parsers.ts';
import {
  headAddressOf,
  healthAddressOf,
  hostOf,
  hostPort,
  modelTypeOf,
  networkEnv,
  programOf,
  telltaleEnv,
} from './rank-shape.ts';

/** SGLang over one or several nodes, by its own `--nnodes`. Flags and messages: v0.5.18 (2026-08-21). */
export const sglang: Engine = {
  name: 'sglang',
  rank,
  landmark: (text) => landmarkIn(MARKS, text),
  get landmarks() {
    return landmarkForms(MARKS);
  },
  message: messageOf,
  workerHealth: true,
  stallSeconds: (stage) => STALL[stage],
  stopSeconds: 30,
};

function rank(input: RankInput): RankCommand {
  const { recipe, memoryFraction } = input;
  const { layout, serve } = recipe;
  const several = layout.nodes > 1;
  const host = hostOf(input);
  const parsers = parsersFor('sglang', modelTypeOf(input.facts), serve);
  const argv = [
    ...programOf(recipe, 'sglang'),
    '--model-path',
    recipe.path,
    '--tp-size',
    String(layout.tensor),
    ...(layout.pipeline > 1 ? ['--pp-size', String(layout.pipeline)] : []),
    ...(layout.expert > 1 ? ['--ep-size', String(layout.expert)] : []),
    // Data parallelism over several nodes exists only together with attention's (v0.5.18, server_args.py).
    ...(layout.data > 1
      ? ['--dp-size', String(layout.data), ...(several ? ['--enable-dp-attention'] : [])]
      : []),
    ...(several
      ? [
          '--nnodes',
          String(layout.nodes),
          '--node-rank',
          String(input.rank),
          '--dist-init-addr',
          hostPort(headAddressOf(input), recipe.rendezvousPort),
        ]
      : []),
    '--host',
    host,
    '--port',
    String(serve.port),
    '--served-model-name',
    servedName(recipe),
    // Off by default, unlike vLLM's; it costs a few counters.
    '--enable-metrics',
    ...(memoryFraction === undefined ? [] : ['--mem-fraction-static', String(memoryFraction)]),
    ...(recipe.context === undefined ? [] : ['--context-length', String(recipe.context)]),
    ...(recipe.sequences === undefined ? [] : ['--max-running-requests', String(recipe.sequences)]),
    ...(parsers.reasoning === undefined ? [] : ['--reasoning-parser', parsers.reasoning]),
    ...(parsers.tools === undefined ? [] : ['--tool-call-parser', parsers.tools]),
    ...(recipe.args.sglang ?? []),
  ];
  const key = serve.apiKey;
  return {
    argv: key === undefined ? argv : ['sh', '-c', KEY_BY_FILE, 'sh', ...argv],
    env: {
      ...networkEnv(input, 'SGLANG_HOST_IP'),
      ...telltaleEnv(recipe),
      ...memoryCheckEnv(input),
      ...recipe.env,
    },
    ...(key === undefined ? {} : { secretEnv: { [KEY_VARIABLE]: key.env } }),
    health: { address: healthAddressOf(host), port: serve.port },
  };
}

/**
 * SGLang refuses to start when the poorest rank has less than 0.9 of the local free memory (1.4 of engines.md, default
 * on). On unified memory that figure is the host's own, which differs between healthy Sparks by their page cache and
 * population; the plan has already taken the poorest node for all.
 */
function memoryCheckEnv({ recipe, facts }: RankInput): Readonly<Record<string, string>> {
  const unified = (valueIf(facts.gpus) ?? []).some((gpu) => gpu.unified);
  return unified && recipe.layout.nodes > 1 ? { SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK: '0' } : {};
}

const KEY_VARIABLE = 'FIRSTLIGHT_API_KEY';

/**
 * SGLang takes its API key from `--api-key` or from a YAML file named by `--config` alone (v0.5.18,
 * server_args_config_parser.py: the suffix must be .yaml, the path must exist, and it is opened once). So the key goes
 * from the environment through a pipe with a name, which only the rank's user can read: it is never on a disk or in
 * the process list, and whoever ends the rank early leaves no key behind. `printf` is a shell builtin and has no argv
 * of its own; FIRSTLIGHT_RANK is the rank's own folder where it runs as a plain process.
 */
const KEY_BY_FILE = String.raw`umask 077
folder=$(mktemp -d "${'$'}{FIRSTLIGHT_RANK:-${'$'}{TMPDIR:-/tmp}/}key.XXXXXX") || exit 1
mkfifo "$folder/key.yaml" || exit 1
(printf "api-key: '%s'\n" "$(printf %s "$${KEY_VARIABLE}" | sed "s/'/''/g")" >"$folder/key.yaml"; rm -rf "$folder") </dev/null >/dev/null 2>&1 &
unset ${KEY_VARIABLE}
exec "$@" --config "$folder/key.yaml"`;

/** In the order of a healthy start; messages as v0.5.18 prints them, older forms where they differ. */
const MARKS: Marks = [
  [/^server_args=/, { stage: 'start' }],
  [/^Init torch distributed begin\./, { stage: 'rendezvous' }],
  [/is disabled because this process group spans across nodes/, { stage: 'rendezvous' }],
  [/^Init torch distributed ends\./, { stage: 'rendezvous' }],
  [/^Load weight begin\./, { stage: 'weights' }],
  [/^Load weight end\./, { stage: 'kv' }],
  [/^Mamba Cache is allocated\./, { stage: 'kv' }],
  [/KV Cache (?:is allocated|VA upper bound)\./, { stage: 'kv' }],
  [/^Memory pool end\./, { stage: 'kv' }],
  [/^Capture (?:\w+ )*(?:CUDA|cuda|CPU|NPU|XPU) graph (?:begin|end)\./, { stage: 'graphs' }],
  [/^max_total_num_tokens=\d+/, { stage: 'warmup' }],
  [/Uvicorn running on https?:/, { stage: 'warmup' }],
  [/^The server is fired up and ready to roll!/, { stage: 'serving' }],
  [/^Dummy health check server (?:started|scheduled)/, { stage: 'serving' }],
];

/**
 * Seconds. Only rank 0 draws a bar while weights load, so a worker is silent for all of it (480 s of difference end
 * it by itself); warm-up gives up after 600 s of its own.
 */
const STALL: Readonly<Record<Stage, number>> = {
  start: 240,
  rendezvous: 120,
  weights: 900,
  kv: 300,
  graphs: 600,
  warmup: 660,
  serving: Number.POSITIVE_INFINITY,
};
