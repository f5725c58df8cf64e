import { parseFlagTable } from './argparse.ts';

/** Options of `vllm serve` (main, August 2026) as far as recipes use them; a switch also has its `--no-` form. */
const TABLE = `
  -h help
  model:text
  headless
  api-server-count -asc:int
  config:text
  host:text
  port:int
  uds:text
  uvicorn-log-level:text
  disable-uvicorn-access-log
  allow-credentials
  allowed-origins:text
  allowed-methods:text
  allowed-headers:text
  api-key:text+
  lora-modules:text+
  chat-template:text
  chat-template-content-format:text
  default-chat-template-kwargs:text
  trust-request-chat-template
  response-role:text
  ssl-keyfile:text
  ssl-certfile:text
  root-path:text
  middleware:text
  return-tokens-as-token-ids
  disable-frontend-multiprocessing
  enable-request-id-headers
  enable-auto-tool-choice
  exclude-tools-when-tool-choice-none
  tool-call-parser:text
  tool-parser-plugin:text
  tool-server:text
  log-config-file:text
  max-log-len:int
  disable-fastapi-docs
  enable-prompt-tokens-details
  enable-server-load-tracking
  enable-force-include-usage
  enable-tokenizer-info-endpoint
  enable-log-outputs
  shutdown-timeout:int
  enable-log-requests
  disable-log-requests
  disable-log-stats
  runner:text
  convert:text
  tokenizer:text
  tokenizer-mode:text
  trust-remote-code
  dtype:text
  seed:int
  hf-config-path:text
  allowed-local-media-path:text
  revision:text
  code-revision:text
  tokenizer-revision:text
  max-model-len:text
  quantization -q:text
  enforce-eager
  max-logprobs:int
  logprobs-mode:text
  disable-sliding-window
  disable-cascade-attn
  skip-tokenizer-init
  enable-prompt-embeds
  served-model-name:text+
  config-format:text
  hf-token:text?
  hf-overrides:text
  pooler-config:text
  generation-config:text
  override-generation-config:text
  enable-sleep-mode
  model-impl:text
  logits-processors:text+
  load-format:text
  download-dir:text
  safetensors-load-strategy:text
  model-loader-extra-config:text
  ignore-patterns:text+
  use-tqdm-on-load
  pt-load-map-location:text
  attention-backend:text
  reasoning-parser:text
  reasoning-parser-plugin:text
  distributed-executor-backend:text
  pipeline-parallel-size -pp:int
  master-addr:text
  master-port:int
  nnodes -n:int
  node-rank -r:int
  tensor-parallel-size -tp:int
  decode-context-parallel-size -dcp:int
  prefill-context-parallel-size -pcp:int
  data-parallel-size -dp:int
  data-parallel-rank -dpn:int
  data-parallel-start-rank -dpr:int
  data-parallel-size-local -dpl:int
  data-parallel-address -dpa:text
  data-parallel-rpc-port -dpp:int
  data-parallel-backend -dpb:text
  data-parallel-hybrid-lb -dph
  data-parallel-external-lb -dpe
  enable-expert-parallel -ep
  all2all-backend:text
  enable-dbo
  enable-eplb
  eplb-config:text
  expert-placement-strategy:text
  max-parallel-loading-workers:int
  ray-workers-use-nsight
  disable-custom-all-reduce
  disable-nccl-for-dp-synchronization
  worker-cls:text
  worker-extension-cls:text
  distributed-timeout-seconds:int
  cpu-distributed-timeout-seconds:int
  block-size:int
  gpu-memory-utilization:float
  kv-cache-memory-bytes kv-cache-memory:text
  swap-space:float
  kv-cache-dtype:text
  num-gpu-blocks-override:int
  enable-prefix-caching
  prefix-caching-hash-algo:text
  cpu-offload-gb:float
  calculate-kv-scales
  kv-sharing-fast-prefill
  mamba-cache-dtype:text
  mamba-ssm-cache-dtype:text
  mamba-block-size:int
  mamba-cache-mode:text
  mamba-backend:text
  gdn-prefill-backend:text
  kv-offloading-size:float
  kv-offloading-backend:text
  limit-mm-per-prompt:text
  language-model-only
  media-io-kwargs:text
  mm-processor-kwargs:text
  mm-processor-cache-gb:float
  mm-processor-cache-type:text
  mm-encoder-tp-mode:text
  mm-encoder-attn-backend:text
  interleave-mm-strings
  skip-mm-profiling
  enable-lora
  max-loras:int
  max-lora-rank:int
  lora-dtype:text
  max-cpu-loras:int
  fully-sharded-loras
  show-hidden-metrics-for-version:text
  otlp-traces-endpoint:text
  collect-detailed-traces:text+
  kv-cache-metrics
  max-num-batched-tokens:int
  max-num-seqs:int
  max-num-partial-prefills:int
  max-long-partial-prefills:int
  long-prefill-token-threshold:int
  scheduling-policy:text
  enable-chunked-prefill
  disable-chunked-mm-input
  scheduler-cls:text
  disable-hybrid-kv-cache-manager
  async-scheduling
  stream-interval:int
  cudagraph-capture-sizes cuda-graph-sizes:int+
  max-cudagraph-capture-size:int
  moe-backend:text
  linear-backend:text
  speculative-config:text
  kv-transfer-config:text
  kv-events-config:text
  ec-transfer-config:text
  compilation-config -cc:text
  attention-config:text
  kernel-config:text
  structured-outputs-config:text
  profiler-config:text
  additional-config:text
  optimization-level -O:text
  performance-mode:text
`;

export const VLLM_FLAGS = parseFlagTable(TABLE).map((flag) =>
  flag.takes === 'nothing'
    ? {
        ...flag,
        names: [
          ...flag.names,
          ...flag.names.filter((name) => name.startsWith('--')).map((name) => name.replace('--', '--no-')),
        ],
      }
    : flag,
);

/** What vLLM's own parser does before argparse sees a word: `_` in names is `-`, `--a.b v` is `--a {"b":v}`. */
export function vllmWords(argv: readonly string[]): readonly string[] {
  return argv.map((word) => {
    if (!word.startsWith('-')) return word;
    const [name = '', ...rest] = word.split('=');
    const plain = name.startsWith('--') ? name.replaceAll('_', '-').replace(/\..*$/, '') : name;
    const spelled = /^-O\d$/.test(plain) ? `-O=${plain.slice(2)}` : plain;
    return [spelled, ...rest].join('=');
  });
}
