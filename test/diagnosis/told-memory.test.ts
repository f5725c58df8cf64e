import { describe, expect, it } from 'vitest';
import { evidenceOfTexts } from '../../src/diagnosis/offline.ts';
import { type Verdict, verdictOf } from '../../src/diagnosis/verdict.ts';
import { readFacts } from '../../src/files/facts-file.ts';

/** vLLM's own check before it reads weights; older images count page cache as taken (vllm-project/vllm#48140). */
const CHECK =
  '(EngineCore pid=12) ERROR 05-05 10:01:00 [core.py:900] ValueError: Free memory on device cuda:0 (8.88/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB).';
/** A message that gives no size at all. */
const SET_DEVICE = `Traceback (most recent call last):
  File "/usr/lib/python3/torch/cuda/__init__.py", line 638, in set_device
    torch._C._cuda_setDevice(device)
torch.AcceleratorError: CUDA error: out of memory`;
const START = '(APIServer pid=1) INFO 05-05 09:59:00 [api_server.py:1800] vLLM API server version 0.20.0';

function answer(log: string, memory: string): Verdict {
  const told = readFacts(`engine: vllm\nnodes:\n  head:\n    memory: ${memory}\n`, 'facts.yaml');
  return verdictOf(evidenceOfTexts({ head: Buffer.from(`${START}\n${log}\n`) }, told));
}

const CACHE = 'page-cache-hides-unified-memory';

describe('memory of a facts file', () => {
  it.each([
    ['all of it', '{totalGiB: 121.7, availableGiB: 71.4, freeGiB: 8.9, cachedGiB: 60.1}'],
    ['without what is free', '{totalGiB: 121.7, availableGiB: 71.4, cachedGiB: 62.0}'],
    ['without what is available', '{totalGiB: 121.7, freeGiB: 8.9, cachedGiB: 98.0}'],
    ['of a Spark that counts less', '{totalGiB: 119.7, availableGiB: 108.0, freeGiB: 8.9, cachedGiB: 99.0}'],
  ])('tells that the page cache hides what is missing: %s', (_name, memory) => {
    for (const log of [CHECK, SET_DEVICE]) {
      const said = answer(log, memory);
      expect(said).toMatchObject({ cause: CACHE, atFault: 'head' });
      expect(said.finding?.why).toMatch(/\d GiB are page cache/);
    }
  });

  it('tells it of weights that found no room', () => {
    const log =
      '(EngineCore pid=12) INFO 05-05 09:59:10 [gpu_model_runner.py:5420] Starting to load model /m...\n(EngineCore pid=12) ERROR 05-05 10:01:00 [core.py:900] torch.AcceleratorError: CUDA error: out of memory';
    expect(answer(log, '{totalGiB: 121.7, availableGiB: 71.4, freeGiB: 2.9, cachedGiB: 60.1}').cause).toBe(
      CACHE,
    );
  });

  it('speaks against it where there is hardly any', () => {
    const said = answer(CHECK, '{totalGiB: 121.7, availableGiB: 10.1, freeGiB: 8.9, cachedGiB: 2.0}');
    expect(said).toMatchObject({ cause: 'leftover-process-holds-gpu-memory', atFault: 'head' });
    expect(
      answer(SET_DEVICE, '{totalGiB: 121.7, availableGiB: 10.1, freeGiB: 8.9, cachedGiB: 2.0}').cause,
    ).toBe('leftover-process-holds-gpu-memory');
  });

  it('says nothing of a GPU with memory of its own', () => {
    const said = answer(
      CHECK.replace('8.88/121.69', '8.88/79.10').replace('103.44', '67.24'),
      '{totalGiB: 503.5, availableGiB: 480.0, freeGiB: 20.0, cachedGiB: 440.0}',
    );
    expect(said.cause).toBe('leftover-process-holds-gpu-memory');
  });

  it('is unknown, and not 0, where the file does not say enough', () => {
    const memory = (text: string) => {
      const [facts] = readFacts(`nodes: {head: {memory: ${text}}}`, 'facts.yaml').facts;
      return facts?.reached ? facts.memory : undefined;
    };
    expect(memory('{totalGiB: 121.7}')).toMatchObject({ known: false });
    expect(memory('{cachedGiB: 60}')).toMatchObject({ known: false });
    expect(memory('{totalGiB: 100, freeGiB: 10}')).toMatchObject({
      known: true,
      value: { freeBytes: 10 * 2 ** 30, availableBytes: 10 * 2 ** 30, cachedBytes: undefined },
    });
  });
});
