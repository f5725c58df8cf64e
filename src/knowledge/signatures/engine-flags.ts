import type { Software } from '../../domain/recipe.ts';

/**
 * Flags that matter, by engine: enough to tell a flag of the other engine and a slip of the pen from one that this
 * version does not know. Source: SGLang v0.5.18 server_args.py, vLLM main of 17 August 2026 arg_utils.py.
 */
const FLAGS: Readonly<Record<Software, string>> = {
  sglang: `--model-path --tokenizer-path --host --port --nnodes --node-rank --dist-init-addr --nccl-init-addr
    --dist-timeout --nccl-port --tp-size --pp-size --dp-size --ep-size --dcp-size --moe-dp-size --enable-dp-attention
    --mem-fraction-static --max-running-requests --max-total-tokens --context-length --chunked-prefill-size
    --page-size --max-prefill-tokens --linear-attn-backend --mamba-backend --mamba-full-memory-ratio
    --max-mamba-cache-size --mamba-ssm-dtype --moe-runner-backend --moe-a2a-backend --fp8-gemm-backend
    --fp4-gemm-backend --enable-metrics --skip-server-warmup --warmups --watchdog-timeout --soft-watchdog-timeout
    --decode-log-interval --log-level --log-level-http --admin-api-key --weight-loader-disable-mmap
    --weight-loader-prefetch-checkpoints --weight-loader-drop-cache-after-load --startup-weight-load-mode
    --cuda-graph-max-bs --disable-cuda-graph --disable-prefill-cuda-graph --disable-custom-all-reduce
    --enable-torch-compile --language-model-only --base-gpu-id --grpc-port --use-ray --disable-radix-cache
    --swa-full-tokens-ratio --speculative-algorithm --schedule-policy`,
  vllm: `--master-addr --master-port --headless --distributed-executor-backend --distributed-timeout-seconds
    --cpu-distributed-timeout-seconds --enable-expert-parallel --all2all-backend --shutdown-timeout
    --gpu-memory-utilization --kv-cache-memory-bytes --max-model-len --max-num-seqs --max-num-batched-tokens
    --enforce-eager --moe-backend --gdn-prefill-backend --mamba-cache-mode --async-scheduling
    --safetensors-load-strategy --enable-auto-tool-choice --disable-log-stats --enable-log-requests
    --data-parallel-size-local --data-parallel-address --data-parallel-rpc-port --data-parallel-start-rank
    --enable-reasoning --enable-prefix-caching --enable-chunked-prefill --swap-space --block-size --tokenizer-mode
    --reasoning-config --prefix-caching-hash-algo --compilation-config --limit-mm-per-prompt --hf-overrides`,
};
const SHARED = `--model --tensor-parallel-size --pipeline-parallel-size --data-parallel-size --nnodes --node-rank --host
  --port --kv-cache-dtype --quantization --attention-backend --reasoning-parser --tool-call-parser
  --served-model-name --api-key --load-format --trust-remote-code --chat-template --dtype --device --config --revision
  --seed --download-dir`;

/** Whose flags are listed. */
export const SOFTWARE: readonly Software[] = ['sglang', 'vllm'];

const KNOWN = new Map<Software, ReadonlySet<string>>(
  SOFTWARE.map((one) => [one, new Set(`${FLAGS[one]} ${SHARED}`.split(/\s+/))]),
);

/** Whether the engine has this flag, as far as the list goes. */
export function hasFlag(engine: Software, flag: string): boolean {
  return KNOWN.get(engine)?.has(flag) ?? false;
}

/** The engine's flag that was probably meant: same words with hyphens, or at most two letters off. */
export function meantFlag(engine: Software, written: string): string | undefined {
  const hyphened = written.toLowerCase().replace(/_/g, '-').replace(/^-*/, '--');
  const known = [...(KNOWN.get(engine) ?? [])];
  const limit = hyphened.length <= 8 ? 1 : 2;
  return known
    .map((flag) => ({ flag, distance: distance(hyphened, flag) }))
    .filter((one) => one.flag !== written && one.distance <= limit)
    .toSorted((a, b) => a.distance - b.distance)[0]?.flag;
}

function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
