import { makeCaches } from './caches.ts';
import { checkCapture } from './graph-capture.ts';
import type { Group } from './group.ts';
import { compileKernels } from './kernels.ts';
import { elementBytes, GIB, sequenceBytes, sglangFraction, tokenBytes } from './memory-model.ts';
import type { Model } from './model-folder.ts';
import { bar } from './output.ts';
import { PythonError } from './python-error.ts';
import type { Device } from './rank.ts';
import type { SglangPlace, SglangRun } from './sglang-place.ts';

/** Bytes as SGLang shows them: GiB with two decimals, called GB. */
export const gb = (bytes: number): string => (bytes / GIB).toFixed(2);

type Pools = {
  readonly device: Device;
  readonly group: Group;
  readonly model: Model;
  readonly before: number;
};

/** The state and KV pools by engines.md §5.2: the fraction is of what was free before the load. */
export async function poolMemory(
  { options, world }: SglangRun,
  place: SglangPlace,
  { device, group, model, before }: Pools,
): Promise<{ readonly tokens: number; readonly requests: number }> {
  const total = (await world.memory()).totalBytes;
  const fraction = options.number('mem-fraction-static') ?? sglangFraction(total, place, model.vision);
  const free = await group.least('pool-memory', await device.freeBytes());
  const budget = free - before * (1 - fraction);
  const state = sequenceBytes(model, place);
  const slotBytes = state.convolution + state.ssm;
  let rest = budget;
  let requests = options.number('max-running-requests') ?? 2048;
  if (slotBytes > 0) {
    const ratio = options.number('mamba-full-memory-ratio') ?? 0.9;
    const most = Math.floor((budget * ratio) / (1 + ratio) / slotBytes);
    const slots = Math.min(options.number('max-mamba-cache-size') ?? most, most);
    if (slots < 3)
      throw new PythonError(
        'pool',
        'RuntimeError',
        `Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=${fraction}`,
      );
    await device.grow(slots * slotBytes, 'pool');
    place.log.rank(
      `Mamba Cache is allocated. max_mamba_cache_size: ${slots}, conv_state size: ${gb(slots * state.convolution)}GB, ssm_state size: ${gb(slots * state.ssm)}GB`,
    );
    rest -= slots * slotBytes;
    requests = Math.min(requests, Math.floor(slots / 3));
  }
  const dtype = options.text('kv-cache-dtype') ?? 'auto';
  const perToken = tokenBytes(model, place, elementBytes(dtype));
  const page = options.number('page-size') ?? 1;
  const fits = Math.floor(rest / perToken / page) * page;
  const tokens = Math.min(options.number('max-total-tokens') ?? fits, fits);
  if (tokens <= 0)
    throw new PythonError(
      'pool',
      'RuntimeError',
      `Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=${fraction}`,
    );
  await device.grow(tokens * perToken, 'pool');
  const all = tokens * perToken;
  const sizes =
    model.latentDim === undefined
      ? `K size: ${gb(all / 2)} GB, V size: ${gb(all / 2)} GB`
      : `KV size: ${gb(all)} GB`;
  place.log.rank(
    `KV Cache is allocated. dtype: ${dtype.startsWith('fp8') ? `torch.float8_${dtype.slice(4)}` : 'torch.bfloat16'}, #tokens: ${tokens}, ${sizes}`,
  );
  place.log.rank(`Memory pool end. avail mem=${gb(await device.freeBytes())} GB`);
  return { tokens, requests: Math.min(requests, Math.max(1, Math.floor(tokens / 512))) };
}

/** Beyond the usual sizes each further request at once takes memory of its own in the graphs, GiB. */
const graphGib = (requests: number): number => Math.max(0, requests - 64) * 0.012;

/** Takes 1.2 GiB and more for many requests, and about a second, unless graphs are off. */
export async function captureGraphs(
  { options, pace, env }: SglangRun,
  place: SglangPlace,
  device: Device,
): Promise<void> {
  if (options.has('disable-cuda-graph')) return;
  makeCaches(env, 'sglang');
  compileKernels(env);
  const most = options.number('cuda-graph-max-bs') ?? options.number('max-running-requests') ?? 32;
  const sizes = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64].filter((size) => size <= Math.max(1, most));
  const kinds = options.has('disable-prefill-cuda-graph') ? ['decode'] : ['decode', 'prefill'];
  for (const kind of kinds) {
    const before = await device.freeBytes();
    const begun = Date.now();
    place.log.rank(
      kind === 'decode'
        ? `Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[${sizes.join(', ')}], avail mem=${gb(before)} GB`
        : `Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4096, 2048, 1024, 512, 256], avail mem=${gb(before)} GB`,
    );
    await checkCapture(
      { env, pace },
      { rank: place.rank, size: place.nnodes, timeoutSeconds: options.number('dist-timeout') ?? 600 },
    );
    const steps = kind === 'decode' ? [...sizes].reverse() : [4096, 2048, 1024, 512, 256];
    const bytes = (kind === 'decode' ? 0.7 + graphGib(most) : 0.5) * GIB * device.share;
    for (const [done, size] of steps.entries()) {
      const seconds = ((Date.now() - begun) * pace.speed) / 1000;
      const title =
        kind === 'decode'
          ? `Capturing batches (bs=${size} avail_mem=${gb(before)} GB)`
          : `Capturing num tokens (num_tokens=${size} avail_mem=${gb(before)} GB)`;
      if (place.rank === 0) place.log.raw(`\r${bar(title, done, steps.length, seconds)}`);
      await device.grow(bytes / steps.length, 'graphs');
      await pace.wait(600 / steps.length);
      if (place.rank === 0 && done === steps.length - 1)
        place.log.raw(`\r${bar(title, steps.length, steps.length, seconds)}\n`);
    }
    const after = await device.freeBytes();
    place.log.rank(
      `Capture target ${kind} CUDA graph end. elapsed=${(((Date.now() - begun) * pace.speed) / 1000).toFixed(2)} s, mem usage=${gb(Math.max(0, before - after))} GB, avail mem=${gb(after)} GB.`,
    );
  }
}
