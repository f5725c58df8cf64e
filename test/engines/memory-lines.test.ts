import { describe, expect, it } from 'vitest';
import type { LogLine } from '../../src/domain/evidence.ts';
import { memoryLines } from '../../src/knowledge/engines/memory-lines.ts';

const GIB = 2 ** 30;
const lines = (text: string): readonly LogLine[] =>
  text
    .trim()
    .split('\n')
    .map((line, index) => ({ line: index + 1, at: index, text: line }));

describe('what an engine prints of its memory', () => {
  it('is read from SGLang, its draft model added, of the rank that took the most', () => {
    const read = memoryLines(
      lines(`
[2026-11-29 20:02:54 TP0] Load weight end. elapsed=46.20 s, type=Qwen3_5MoeForConditionalGeneration, quant=fp8, avail mem=49.81 GB, mem usage=58.00 GB.
[2026-11-29 20:02:54 TP1] Load weight end. elapsed=46.90 s, type=Qwen3_5MoeForConditionalGeneration, quant=fp8, avail mem=49.10 GB, mem usage=58.25 GB.
[2026-11-29 20:02:55 TP1] Load weight end. elapsed=1.90 s, type=Qwen3_5MTP, avail mem=49.10 GB, mem usage=1.25 GB.
[2026-11-29 20:02:55 TP1] Mamba Cache is allocated. max_mamba_cache_size: 48, conv_state size: 0.50GB, ssm_state size: 12.00GB
[2026-11-29 20:02:55 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 412345, K size: 8.00 GB, V size: 8.00 GB
[2026-11-29 20:02:56 TP1] Capture target decode CUDA graph end. elapsed=0.70 s, mem usage=0.75 GB, avail mem=25.25 GB.
[2026-11-29 20:02:57 TP1] Capture target prefill CUDA graph end. elapsed=0.74 s, mem usage=0.50 GB, avail mem=24.75 GB.`),
    );
    expect(read).toEqual({ weightsBytes: 59.5 * GIB, poolBytes: 28.5 * GIB, graphsBytes: 1.25 * GIB });
  });

  it('is read from vLLM, old and new words, behind the names of its processes', () => {
    const read = memoryLines(
      lines(`
(EngineCore_DP0 pid=1) (Worker_TP0 pid=2) INFO 05-06 20:59:57 [gpu_model_runner.py:384] Model loading took 14.25 GiB and 558.868858 seconds
(Worker_TP1 pid=3) INFO 05-06 20:59:57 [gpu_model_runner.py:384] Model loading took 14.5 GiB memory and 31.657031 seconds
(Worker_TP1 pid=3) INFO 05-06 20:59:58 [gpu_worker.py:298] Available KV cache memory: 28.75 GiB
(Worker_TP1 pid=3) INFO 05-06 21:00:20 [gpu_model_runner.py:7049] Graph capturing finished in 20 secs, took 1.5 GiB`),
    );
    expect(read).toEqual({ weightsBytes: 14.5 * GIB, poolBytes: 28.75 * GIB, graphsBytes: 1.5 * GIB });
  });

  it('is unknown, not nought, where nothing is printed', () => {
    expect(memoryLines(lines('INFO took a while, mem usage unknown'))).toEqual({
      weightsBytes: undefined,
      poolBytes: undefined,
      graphsBytes: undefined,
    });
  });
});
