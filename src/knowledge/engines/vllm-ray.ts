import type { Stage } from '../../domain/finding.ts';
import type { Engine, Landmark, RankCommand, RankInput } from './engine.ts';
import { landmarkForms, landmarkIn, type Marks, messageOf, rayAddressOf } from './log-line.ts';
import { headAddressOf, networkEnv, telltaleEnv } from './rank-shape.ts';
import { RAY_NODE_SH, RAY_STOP_SECONDS } from './ray-script.ts';
import { healthOf, secretEnvOf, serveWords, VLLM_MARKS, VLLM_STALL } from './vllm.ts';

/**
 * vLLM whose workers are Ray's: each node runs its Ray, and the head the one `vllm serve` besides. For images whose
 * vLLM knows no `--nnodes`, and where that way fails for a reason that Ray does not share. Ray 2.60; engines.md 2.2.
 */
export const vllmRay: Engine = {
  name: 'vllm-ray',
  rank,
  landmark,
  get landmarks() {
    return landmarkForms(MARKS);
  },
  message: messageOf,
  workerHealth: false,
  stallSeconds: (stage) => STALL[stage],
  stopSeconds: 30 + RAY_STOP_SECONDS,
};

function rank(input: RankInput): RankCommand {
  const { recipe, addresses } = input;
  const { layout, run } = recipe;
  const several = layout.nodes > 1;
  const head = input.rank === 0;
  const headAddress = several ? headAddressOf(input) : '127.0.0.1';
  const ranks = layout.tensor * layout.pipeline * layout.data;
  return {
    argv: [
      'sh',
      '-c',
      RAY_NODE_SH,
      'sh',
      run.in === 'process' ? (run.venv ?? '') : '',
      headAddress,
      String(recipe.rendezvousPort),
      several ? (addresses[input.rank] ?? headAddress) : headAddress,
      String(layout.nodes),
      // As many as the layout puts there: Ray packs, and would put all ranks on a head with GPUs enough for them.
      String(ranks / layout.nodes),
      ...(head ? serveWords(input, 'vllm-ray', ['--distributed-executor-backend', 'ray']) : []),
    ],
    env: {
      ...networkEnv(input, 'VLLM_HOST_IP'),
      ...telltaleEnv(recipe),
      // Ray's own out-of-memory guard takes page cache for memory in use on unified memory (engines.md 2.2).
      RAY_memory_monitor_refresh_ms: '0',
      // A node that is stopped has nothing left to drain, and would wait half a minute for a head that is gone.
      RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S: '0',
      // Else a line that two workers say is told once, and of which node is lost (Ray 2.60, log_dedup in ray-logging).
      RAY_DEDUP_LOGS: '0',
      ...recipe.env,
    },
    // Only the driver serves; vLLM hands VLLM_* on to its workers by itself.
    ...(head ? secretEnvOf(recipe) : {}),
    health: head ? healthOf(input) : undefined,
  };
}

/** A worker's own log ends with its Ray being up; what its vLLM says stands in the head's, behind its address. */
function landmark(text: string): Landmark | undefined {
  const found = landmarkIn(MARKS, text);
  const from = found === undefined ? undefined : rayAddressOf(text);
  return found === undefined || from === undefined ? found : { ...found, from };
}

const MARKS: Marks = [
  [/^Waiting for Ray at /, { stage: 'start' }],
  [/^(?:\S+ \S+\s+(?:INFO|SUCC) \S+ -- )?Ray runtime started\.$/, { stage: 'start' }],
  [/^Ray has \d+ of \d+ nodes: /, { stage: 'rendezvous' }],
  [/^No current placement group found\. Creating a new placement group\./, { stage: 'rendezvous' }],
  ...VLLM_MARKS,
];

/**
 * Seconds. A node's Ray needs half a minute to start, and vLLM some more to import torch in each worker. The start has
 * ends of its own (ray-script.ts), and a worker whose lines Ray does not bring stays in it while the head goes on.
 */
const STALL: Readonly<Record<Stage, number>> = { ...VLLM_STALL, start: 660, rendezvous: 240 };
