import { makeCaches } from './caches.ts';
import { checkCapture } from './graph-capture.ts';
import { compileKernels } from './kernels.ts';
import { elementBytes, GIB } from './memory-model.ts';
import type { Model } from './model-folder.ts';
import { bar, write } from './output.ts';
import { PythonError } from './python-error.ts';
import type { Device } from './rank.ts';
import { gib, hybridBlock, kvBudget } from './vllm-memory.ts';
import { bytesOf, type VllmPlace, type VllmRun } from './vllm-place.ts';

/** Compiles, profiles, and says what is left for the KV cache. Bytes. */
export async function profile(
  { options, pace, env }: VllmRun,
  place: VllmPlace,
  {
    model,
    requestedBytes,
    share,
    othersBytes,
  }: {
    readonly model: Model;
    readonly requestedBytes: number;
    readonly share: number;
    readonly othersBytes: number;
  },
): Promise<{ readonly budget: number; readonly graphBytes: number }> {
  const { log, worker } = place;
  const eager = options.has('enforce-eager');
  const block = hybridBlock(model, place, elementBytes(options.text('kv-cache-dtype')));
  if (block !== undefined)
    log.line(
      worker,
      'INFO',
      'interface.py:909',
      `Setting attention block size to ${block} tokens to ensure that attention page size is >= mamba page size.`,
    );
  if (!eager) {
    log.line(
      worker,
      'INFO',
      'backends.py:1065',
      "Using cache directory: /root/.cache/vllm/torch_compile_cache/5f8e1c2a9d/rank_0_0/backbone for vLLM's torch.compile",
    );
    await pace.wait(250);
    makeCaches(env, 'vllm');
    compileKernels(env);
    log.line(worker, 'INFO', 'backends.py:1122', 'Dynamo bytecode transform time: 0.31 s');
    await pace.wait(250);
    log.line(worker, 'INFO', 'backends.py:390', 'Compiling a graph for compile range (1, 2048) takes 0.32 s');
    log.line(worker, 'INFO', 'monitor.py:53', 'torch.compile took 0.71 s in total');
  }
  await pace.wait(400);
  log.line(worker, 'INFO', 'monitor.py:81', 'Initial profiling/warmup run took 0.40 s');
  const graphBytes = eager ? 0 : 1.2 * GIB * share;
  if (!eager) {
    log.line(
      worker,
      'INFO',
      'gpu_model_runner.py:6901',
      'Profiling CUDA graph memory: PIECEWISE=19 (largest=128), FULL=11 (largest=64)',
    );
    log.line(
      worker,
      'INFO',
      'gpu_model_runner.py:6942',
      `Estimated CUDA graph memory: ${(graphBytes / GIB).toFixed(2)} GiB total`,
    );
  }
  const fixed = bytesOf(options.text('kv-cache-memory-bytes'));
  const budget = fixed ?? kvBudget(model, place, { requestedBytes, graphBytes, share, othersBytes });
  if (fixed === undefined)
    log.line(worker, 'INFO', 'gpu_worker.py:498', `Available KV cache memory: ${gib(budget)} GiB`);
  else
    log.line(
      worker,
      'INFO',
      'gpu_worker.py:579',
      `Initial free memory ${gib(requestedBytes)} GiB, reserved ${gib(fixed)} GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling.`,
    );
  return { budget, graphBytes };
}

/** Two sets of graphs in about a second. */
export async function captureGraphs(
  { pace, env, options }: VllmRun,
  place: VllmPlace,
  { device, graphBytes }: { readonly device: Device; readonly graphBytes: number },
): Promise<void> {
  const begun = Date.now();
  for (const [title, steps] of [
    ['Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)', 19],
    ['Capturing CUDA graphs (decode, FULL)', 11],
  ] as const) {
    for (let done = 0; done <= steps; done += 1) {
      const seconds = ((Date.now() - begun) * pace.speed) / 1000;
      if (place.rank === 0)
        write(2, `${done === 0 ? place.worker : ''}\r${bar(title, done, steps, seconds)}`);
      if (done === 0)
        await checkCapture(
          { env, pace },
          {
            rank: place.rank,
            size: place.nnodes,
            timeoutSeconds: options.number('distributed-timeout-seconds') ?? 600,
          },
        );
      if (done < steps) await device.grow(graphBytes / 30, 'graphs');
      await pace.wait(900 / 30);
    }
    if (place.rank === 0) write(2, '\n');
  }
  const { log, worker } = place;
  log.line(
    worker,
    'INFO',
    'gpu_model_runner.py:7049',
    `Graph capturing finished in ${Math.max(1, Math.round(((Date.now() - begun) * pace.speed) / 1000))} secs, took ${(graphBytes / GIB).toFixed(2)} GiB`,
  );
  log.line(
    worker,
    'INFO',
    'gpu_worker.py:721',
    `CUDA graph pool memory: ${gib(graphBytes)} GiB (actual), ${gib(graphBytes)} GiB (estimated), difference: 0.0 GiB (0.0%).`,
  );
}

/** Logits of a large vocabulary in float32, and what sampling takes beside them. */
const BYTES_A_SEQUENCE = 4 * 248_320 * 4;

/** The sampler is tried with as many requests as are served at once; throws in vLLM's words where there is no room. */
export async function warmSampler({ options }: VllmRun, device: Device): Promise<void> {
  const count = options.number('max-num-seqs') ?? 256;
  try {
    await device.grow(count * BYTES_A_SEQUENCE * device.share, 'graphs');
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw new PythonError(
      'graphs',
      'RuntimeError',
      `CUDA out of memory occurred when warming up sampler with ${count} dummy requests. Please try lowering \`max_num_seqs\` or \`gpu_memory_utilization\` when initializing the engine.`,
    );
  }
}
