import { describe, expect, it } from 'vitest';
import { evidenceOfTexts, NOTHING_TOLD } from '../../src/diagnosis/offline.ts';
import { verdictOf } from '../../src/diagnosis/verdict.ts';
import { laterFamilies } from '../../src/knowledge/signatures/later-families.ts';
import { answerTo } from './corpus.ts';

const VLLM_START = [
  '(APIServer pid=1) INFO 05-05 09:59:00 [api_server.py:1800] vLLM API server version 0.20.0',
  '(EngineCore pid=12) INFO 05-05 09:59:10 [gpu_model_runner.py:5420] Starting to load model /m...',
  '(EngineCore pid=12) INFO 05-05 09:59:40 [default_loader.py:430] Loading weights took 29.10 seconds',
];
const VLLM_SERVES = [
  '(APIServer pid=1) INFO:     Application startup complete.',
  '(APIServer pid=1) INFO:     10.0.0.1:60098 - "GET /health HTTP/1.1" 200 OK',
  '(APIServer pid=1) INFO 05-05 10:02:00 [loggers.py:257] Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation throughput: 30.0 tokens/s, Running: 1 reqs',
];

/** What engines say of things that they then do otherwise, or do without. */
const PASSING = [
  'FlashInfer kernels unavailable for ModelOptNvFp4FusedMoE on current platform.',
  'Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 compression will be used leveraging the Marlin kernel.',
  'Failed to import from vllm._C_stable with ImportError: libcudart.so.12: cannot open shared object file',
  'Cannot use FA version 2 is not supported due to FA2 is only supported on devices with compute capability >= 8',
  'The attention backend FLASHINFER is not supported with this model, falling back to TRITON_ATTN.',
  'Failed to parse tool call details from: {"name": 1}',
  'No chat template found, defaulting to "string" content format',
  'Unknown quantization type, got mxfp6. Hence, we will skip the quantization.',
  'Some weights were not initialized from checkpoint: rotary',
  '[Autotuner]: Skipping tactic 15, due to failure while profiling: [TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS grouped gemm. Error: Error Internal',
  'Speculative decoding: the draft model shares its embedding; EAGLE drafts 3 tokens',
  'Ignore import error when loading sglang.srt.models.midashenglm: No module named "torchaudio"',
  'Received KeyboardInterrupt, shutting down API servers...',
  'Shutting down Ray distributed executor. If you see error log from logging.cc regarding SIGTERM received, please ignore',
  'Minimax Tool parser could not locate tool call start/end tokens in the tokenizer. Falling back to string matching.',
  'reading config: unable to verify, retrying in 3 s (HTTP status 401 from telemetry)',
];

describe('words in passing', () => {
  it.each(PASSING)('"%s" is no fault of a server that serves', (words) => {
    const line = `(EngineCore pid=12) WARNING 05-05 10:00:00 [x.py:12] ${words}`;
    expect(answerTo({ head: `${[...VLLM_START, line, ...VLLM_SERVES].join('\n')}\n` }).cause).toBe(
      'no-fault',
    );
  });

  it('a hub that was not reached is not why the KV cache is too small later', () => {
    const head = [
      VLLM_START[0],
      "'[Errno 101] Network is unreachable' thrown while requesting HEAD https://huggingface.co/org/m1/resolve/main/config.json",
      'huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache.',
      ...VLLM_START.slice(1),
      "(EngineCore pid=12) ERROR 05-05 10:01:00 [core.py:900] ValueError: To serve at least one request with the model's max seq len (131072), 20.00 GiB KV cache is needed, which is larger than the available KV cache memory (4.10 GiB). Based on the available memory, the estimated maximum model length is 26112.",
    ].join('\n');
    expect(answerTo({ head: `${head}\n` }).cause).toBe('kv-cache-too-small-for-max-len');
  });

  it('somebody who ends a healthy server has not misread anything', () => {
    const head = [
      ...VLLM_START,
      ...VLLM_SERVES,
      '(APIServer pid=1) INFO 05-05 11:00:00 [launcher.py:80] [shutdown] API server: shutdown triggered signal=SIGTERM',
      '(EngineCore pid=12) INFO 05-05 11:00:00 [core.py:80] [shutdown] EngineCore: trigger received signal=SIGTERM',
    ].join('\n');
    expect(answerTo({ head: `${head}\n` }).cause).toBe('no-fault');
  });

  it('what a user asked about is no fault of the server that logs it', () => {
    const words = "'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'";
    const vllm = `(APIServer pid=1) INFO 05-05 10:03:00 [logger.py:39] Received request chatcmpl-1: prompt: ${words}, params: SamplingParams(n=1)`;
    expect(
      answerTo({ head: `${[...VLLM_START, ...VLLM_SERVES, vllm, ...VLLM_SERVES.slice(1)].join('\n')}\n` }),
    ).toMatchObject({ cause: 'no-fault', finding: undefined });
    const said = (line: string) => ['INFO:     Application startup complete.', line].join('\n');
    const real = answerTo({ head: `${said(`torch.OutOfMemoryError: ${words}`)}\n` });
    expect(real.cause).not.toBe('no-fault');
  });

  it.each([0, 137, 143])('exit code %i after a requested stop is no fault', (code) => {
    const asked = '(APIServer pid=1) INFO:     Application shutdown complete.';
    const told = { ...NOTHING_TOLD, exits: { head: code } };
    const cause = (lines: readonly string[]) =>
      verdictOf(evidenceOfTexts({ head: Buffer.from(`${lines.join('\n')}\n`) }, told)).cause;
    expect(cause([...VLLM_START, ...VLLM_SERVES, asked])).toBe('no-fault');
    if (code !== 0) expect(cause([...VLLM_START, ...VLLM_SERVES])).not.toBe('no-fault');
  });

  it('a 401 of the hub is no readiness probe', () => {
    const head =
      'huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)\nCannot access gated repo for url https://huggingface.co/org/m/resolve/main/config.json.\n';
    const launcher = 'waiting for http://10.0.0.1:8000/health ... not ready\ntimed out\n';
    expect(answerTo({ head, launcher })).toMatchObject({
      cause: 'hf-gated-or-unauthenticated',
      atFault: 'head',
    });
  });

  it('a server that ended while it was waited for is no slow load', () => {
    const head = [
      ...VLLM_START,
      '(EngineCore pid=12) ERROR 05-05 10:00:00 [core.py:900] RuntimeError: CUDA error: no kernel image is available for execution on the device',
    ].join('\n');
    const launcher = 'vllm did not become healthy at http://127.0.0.1:8000/health within 900s\n';
    expect(answerTo({ head: `${head}\n`, launcher }).cause).toBe('kernels-not-built-for-sm121');
  });
});

describe('signatures of the later families', () => {
  it('say how they look, for the catalogue', () => {
    const mute = laterFamilies.filter(
      ({ looks, causes }) => looks === undefined && !causes.includes('unknown'),
    );
    expect(mute.map(({ name }) => name)).toEqual([]);
  });
});
