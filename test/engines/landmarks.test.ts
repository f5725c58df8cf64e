import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { STAGES, type Stage } from '../../src/domain/finding.ts';
import type { EngineName } from '../../src/domain/recipe.ts';
import { engines } from '../../src/knowledge/engines/index.ts';

type Row = readonly [EngineName, string, Stage | undefined, number?];

/** Lines as public issues quote them, or as the format strings of SGLang v0.5.18 and vLLM of 2026-08 make them. */
const LINES: readonly Row[] = [
  ['sglang', '[2026-08-21 10:00:00] server_args=ServerArgs(model_path=…)', 'start'],
  ['sglang', "[2026-08-21 10:00:00] server_args={'model_path': …}", 'start'],
  ['sglang', '[2026-08-21 10:00:00 TP1] Init torch distributed begin.', 'rendezvous'],
  [
    'sglang',
    '[2026-08-21 10:00:00 TP1] CustomAllreduce is disabled because this process group spans across nodes.',
    'rendezvous',
  ],
  [
    'sglang',
    '[2026-08-21 10:00:00 TP1] Init torch distributed ends. elapsed=3.11 s, mem usage=0.52 GB',
    'rendezvous',
  ],
  ['sglang', '[2025-12-23 14:18:00] Init torch distributed ends. mem usage=0.00 GB', 'rendezvous'],
  ['sglang', '[2026-08-21 10:00:00 TP0] Load weight begin. avail mem=109.90 GB', 'weights'],
  [
    'sglang',
    'Loading safetensors checkpoint shards:  56% Completed | 5/9 [00:13<00:11,  2.87s/it]',
    'weights',
    56,
  ],
  ['sglang', 'Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]', 'weights', 0],
  ['sglang', 'Multi-thread loading shards:  25% Completed | 1/4 [00:01<00:03,  1.0it/s]', 'weights', 25],
  [
    'sglang',
    '[2026-08-21 10:00:00 TP0] Load weight end. elapsed=91.20 s, type=Qwen3_5MoeForConditionalGeneration, quant=modelopt_fp4, avail mem=71.10 GB, mem usage=38.90 GB.',
    'kv',
  ],
  [
    'sglang',
    '[2026-06-08 07:20:53 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1106304, K size: 25.32 GB, V size: 25.32 GB',
    'kv',
  ],
  ['sglang', '[2026-06-08 07:20:53 TP0] Memory pool end. avail mem=12.05 GB', 'kv'],
  [
    'sglang',
    '[2026-06-08 07:20:54 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=12.07 GB',
    'graphs',
  ],
  [
    'sglang',
    '[2026-08-21 10:00:00 PP0 TP0] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4], avail mem=20.10 GB',
    'graphs',
  ],
  [
    'sglang',
    'Capturing batches (bs=8 avail_mem=50.20 GB):  10%|█         | 5/52 [00:01<00:10,  4.3it/s]',
    'graphs',
    10,
  ],
  [
    'sglang',
    '[2026-08-21 10:00:00 TP0] max_total_num_tokens=412345, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, context_len=262144, available_gpu_mem=17.02 GB',
    'warmup',
  ],
  ['sglang', 'INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)', 'warmup'],
  ['sglang', '[2026-08-21 10:00:00] The server is fired up and ready to roll!', 'serving'],
  [
    'sglang',
    '[2026-08-21 10:00:00] Dummy health check server started in background thread at 0.0.0.0:30000',
    'serving',
  ],
  [
    'sglang',
    '[2026-08-21 10:00:00 TP0] Decode batch, #running-req: 3, #full token: 12, cuda graph: True, gen throughput (token/s): 55.10, #queue-req: 0',
    undefined,
  ],
  [
    'vllm',
    'INFO 08-17 10:00:00 [serve.py:216] Launching vLLM (v0.28.1) headless multiproc executor, with head node address 10.0.0.1:29501 for torch.distributed process group.',
    'start',
  ],
  [
    'vllm',
    '(Worker pid=12) INFO 08-17 10:00:00 [parallel_state.py:1638] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.0.0.1:29501 backend=nccl',
    'rendezvous',
  ],
  [
    'vllm',
    '(Worker_TP0 pid=34322) INFO 05-06 20:59:57 [default_loader.py:384] Loading weights took 24.84 seconds',
    'weights',
    100,
  ],
  [
    'vllm',
    '(Worker_TP0 pid=34322) \rLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00, 2.1it/s]',
    'weights',
    50,
  ],
  [
    'vllm',
    '(EngineCore_DP0 pid=3639978) (RayWorkerWrapper pid=3640182) INFO 10-13 19:15:45 [gpu_model_runner.py:2653] Model loading took 27.8411 GiB and 279.089988 seconds [repeated 2x across cluster]',
    'kv',
  ],
  [
    'vllm',
    '(Worker_TP0 pid=2500801) INFO 06-23 14:53:25 [monitor.py:53] torch.compile took 14.85 s in total',
    'kv',
  ],
  [
    'vllm',
    '\x1b[36m(EngineCore pid=12)\x1b[0m INFO 08-17 10:00:00 [kv_cache_utils.py:1875] GPU KV cache size: 240,816 tokens, Maximum concurrency for 196,608 tokens per request: 1.22x',
    'kv',
  ],
  [
    'vllm',
    'Capturing CUDA graphs (decode, FULL):  40%|████      | 14/35 [00:03<00:05,  4.1it/s]',
    'graphs',
    40,
  ],
  [
    'vllm',
    '(Worker_TP1 pid=70) INFO 08-17 10:00:00 [gpu_model_runner.py:7049] Graph capturing finished in 12 secs, took 0.63 GiB',
    'warmup',
  ],
  [
    'vllm',
    '(APIServer pid=1) INFO 08-17 10:00:00 [api_server.py:548] Starting vLLM server on http://0.0.0.0:8000',
    'warmup',
  ],
  ['vllm', '(APIServer pid=1) INFO:     Application startup complete.', 'serving'],
  // Printed while the configuration is made, long before the cache: it tells no stage.
  [
    'vllm',
    '(Worker_TP1 pid=70) INFO 05-26 05:37:41 [interface.py:649] Setting attention block size to 1600 tokens to ensure that attention page size is >= mamba page size.',
    undefined,
  ],
  [
    'vllm',
    '(APIServer pid=3639804) INFO 10-14 00:03:12 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 7.5 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 1.1%',
    undefined,
  ],
];

test.each(LINES.map(([engine, line, stage, percent]) => ({ engine, line, stage, percent })))(
  '$engine: $line',
  ({ engine, line, stage, percent }) => {
    const mark = engines[engine].landmark(line);
    expect(mark?.stage).toBe(stage);
    expect(mark?.percent).toBe(percent);
  },
);

describe('the message of a line', () => {
  test('is what is left without colours, nested prefixes, stamps, level and Ray’s count', () => {
    const { message } = engines.vllm;
    expect(
      message(
        '\x1b[36m(EngineCore_DP0 pid=1)\x1b[0m (RayWorkerWrapper pid=2, ip=10.0.0.1) ERROR 10-13 19:15:45 [core.py:2653] EngineCore failed to start. [repeated 2x across cluster]\r\n',
      ),
    ).toBe('EngineCore failed to start.');
    expect(message('[2026-08-21 10:00:00 PP0 TP1] Scheduler hit an exception: Traceback')).toBe(
      'Scheduler hit an exception: Traceback',
    );
  });

  test('of a bare traceback line is the line itself, indentation included', () => {
    expect(engines.sglang.message('  File "/x/y.py", line 3, in f')).toBe('  File "/x/y.py", line 3, in f');
  });
});

test('only stages that end by themselves have a limit', () => {
  for (const engine of Object.values(engines)) {
    expect(engine.stallSeconds('serving')).toBe(Number.POSITIVE_INFINITY);
    // Ray needs half a minute on each node before vLLM begins.
    expect(engine.stallSeconds('rendezvous')).toBe(engine.name === 'vllm-ray' ? 240 : 120);
    // The load barrier of SGLang gives the slower node 480 s, and a worker shows no bar.
    expect(engine.stallSeconds('weights')).toBeGreaterThan(480);
  }
});

test.each([
  { engine: 'sglang', rank: 'head', last: 'serving' },
  { engine: 'sglang', rank: 'worker', last: 'serving' },
  { engine: 'vllm', rank: 'head', last: 'serving' },
  // A headless worker says nothing after its graphs; that it serves is told by the head.
  { engine: 'vllm', rank: 'worker', last: 'warmup' },
] as const)(
  'a healthy $rank of $engine goes through its stages in order, up to $last',
  ({ engine, rank, last }) => {
    const file = new URL(`../samples/logs/healthy-${engine}-pair/${rank}.log`, import.meta.url);
    const seen = readFileSync(file, 'utf8')
      .split(/\r\n|\n|\r/)
      .flatMap((line) => engines[engine].landmark(line)?.stage ?? [])
      .map((stage) => STAGES.indexOf(stage));
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(STAGES[seen.at(-1) ?? 0]).toBe(last);
  },
);
