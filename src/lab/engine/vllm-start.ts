import { autotune } from './autotune.ts';
import { openCheckpoint } from './checkpoint.ts';
import { checkArchitecture, checkSlices } from './divides.ts';
import type { Group } from './group.ts';
import { loadKernels } from './kernels.ts';
import { COMMUNICATOR_BYTES, elementBytes, GIB, rankWeightBytes } from './memory-model.ts';
import { openMessageQueue } from './message-queue.ts';
import type { Model } from './model-folder.ts';
import { ncclVersion, openCommunicator } from './nccl.ts';
import { shardBar, write } from './output.ts';
import { Device, join, loadShards } from './rank.ts';
import { prepareKernels } from './rank-kernels.ts';
import { draft } from './speculation.ts';
import { checkFree, gib, type KvPlan, planKv } from './vllm-memory.ts';
import { maxModelLen, type VllmPlace, type VllmRun } from './vllm-place.ts';
import { captureGraphs, profile, warmSampler } from './vllm-profile.ts';

export type VllmUp = { readonly group: Group; readonly plan: KvPlan; readonly folder: string };

/** One rank from its GPU to its captured graphs. Throws PythonError. */
export async function bringUp(run: VllmRun, place: VllmPlace): Promise<VllmUp> {
  const { world, pace, env, options } = run;
  const { log, rank, nnodes, early } = place;
  const begun = Date.now();
  const device = new Device(world, env);
  const size = place.tensor * place.pipeline;
  log.line(
    early,
    'INFO',
    'parallel_state.py:1638',
    `world_size=${size} rank=${rank} local_rank=0 distributed_init_method=tcp://${place.address}:${place.port} backend=nccl`,
  );
  await device.open();
  const { store, group } = await join(
    { world, pace, env, print: (text) => log.raw(text) },
    {
      address: place.address,
      port: place.port,
      rank,
      size: nnodes,
      timeoutSeconds: options.number('distributed-timeout-seconds') ?? 600,
      glooSeconds: options.number('cpu-distributed-timeout-seconds') ?? 1800,
    },
  );
  if (store !== undefined) {
    log.line(early, 'INFO', 'pynccl.py:111', `vLLM is using nccl==${ncclVersion(env)}`);
    await openCommunicator({ world, env, store }, { rank, size: nnodes });
    await device.grow(COMMUNICATOR_BYTES * device.share, 'set-device');
    await pace.wait(300);
    log.line(
      early,
      'WARNING',
      'custom_all_reduce.py:253',
      'Custom allreduce is disabled because this process group spans across nodes.',
    );
    await openMessageQueue({ world, pace, store }, { rank, size: nnodes, address: await hostAddress(run) });
  }
  const tp = rank % place.tensor;
  log.line(
    early,
    'INFO',
    'parallel_state.py:1982',
    `rank ${rank} in world size ${size} is assigned as DP rank 0, PP rank ${Math.floor(rank / place.tensor)}, PCP rank 0, TP rank ${tp}, EP rank ${options.has('enable-expert-parallel') ? tp : 'N/A'}`,
  );
  const { totalBytes } = await world.memory();
  const utilization = options.number('gpu-memory-utilization') ?? 0.92;
  const before = { free: await device.freeBytes(), own: device.bytes };
  const requestedBytes = checkFree(before.free, totalBytes, utilization);
  await meet(place, group, 'checked');
  const model = await loadWeights(run, place, device);
  await meet(place, group, 'loaded');
  const others = before.free - (await device.freeBytes()) - (device.bytes - before.own);
  const othersBytes = Math.max(0, others);
  const { share } = device;
  await prepareKernels(run, {
    engine: 'vllm',
    attention: options.text('attention-backend'),
    experts: options.text('moe-backend'),
    warn: (text) => log.line(place.worker, 'WARNING', 'nvfp4.py:212', text),
    together: () => meet(place, group, 'compiled'),
  });
  await autotune(run, {
    size: nnodes,
    say: (level, text) => log.line(place.worker, level, 'flashinfer.py:88', text),
    together: () => meet(place, group, 'autotuned'),
  });
  const { budget, graphBytes } = await profile(run, place, { model, requestedBytes, share, othersBytes });
  const least = await meet(place, group, 'profiled', budget);
  const kv = elementBytes(options.text('kv-cache-dtype'));
  const auto = /^(auto|-1)$/.test(options.text('max-model-len') ?? '');
  const plan = planKv(model, place, {
    budgetBytes: least,
    elementBytes: kv,
    maxModelLen: auto ? undefined : (maxModelLen(options) ?? model.maxPositions),
  });
  await device.grow(least, 'pool');
  if (!place.headless)
    log.line(
      place.core,
      'INFO',
      'kv_cache_utils.py:1875',
      `GPU KV cache size: ${plan.tokens.toLocaleString('en-US')} tokens, Maximum concurrency for ${plan.maxModelLen.toLocaleString('en-US')} tokens per request: ${plan.concurrency.toFixed(2)}x`,
    );
  draft(env, options.has('speculative-config'));
  if (graphBytes > 0) await captureGraphs(run, place, { device, graphBytes });
  await warmSampler(run, device);
  await meet(place, group, 'captured');
  const seconds = ((Date.now() - begun) * pace.speed) / 1000;
  if (!place.headless)
    log.line(
      place.core,
      'INFO',
      'core.py:347',
      `init engine (profile, create kv cache, warmup model) took ${seconds.toFixed(2)} s (compilation: ${graphBytes > 0 ? '0.71' : '0.00'} s)`,
    );
  return { group, plan, folder: place.model };
}

/** VLLM_HOST_IP, else the source address of the default route; HOST_IP counts for nothing here. */
export async function hostAddress({ env, world }: VllmRun): Promise<string> {
  const named = env.VLLM_HOST_IP ?? '';
  return named !== '' ? named : ((await world.routeAddress()) ?? '0.0.0.0');
}

/**
 * All ranks at one point. A lost worker ends the head with Gloo's words; a lost head leaves the headless node
 * waiting on its queue for ever, with a line every minute.
 */
async function meet(place: VllmPlace, group: Group, name: string, value = 0): Promise<number> {
  try {
    return await group.least(name, value);
  } catch (error) {
    if (!place.headless) throw error;
    return waitForEver(place);
  }
}

/** A headless node that nobody speaks to any more. */
export function waitForEver(place: VllmPlace): Promise<never> {
  return new Promise(() => {
    setInterval(
      () =>
        place.log.line(
          place.worker,
          'INFO',
          'shm_broadcast.py:103',
          'No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).',
        ),
      60_000,
    );
  });
}

async function loadWeights(run: VllmRun, place: VllmPlace, device: Device): Promise<Model> {
  const { options, env, pace, world } = run;
  const { log, worker } = place;
  const path = place.model;
  if (!place.headless)
    log.line(worker, 'INFO', 'gpu_model_runner.py:5420', `Starting to load model ${path}...`);
  const model = openCheckpoint(path, env, { dummy: options.text('load-format') === 'dummy' });
  checkArchitecture(model, env);
  checkSlices(model, { tensor: place.tensor, engine: 'vllm' });
  loadKernels(env, options.text('moe-backend'));
  const available = (await world.memory()).availableBytes;
  log.line(
    worker,
    'INFO',
    'weight_utils.py:858',
    `Filesystem type for checkpoints: EXT4. Checkpoint size: ${(model.weightBytes / GIB).toFixed(2)} GiB. Available RAM: ${(available / GIB).toFixed(2)} GiB.`,
  );
  const begun = Date.now();
  const rankBytes = rankWeightBytes(model, place);
  await loadShards(
    device,
    pace,
    {
      shards: model.shards.length,
      rankBytes,
      // Read into memory of its own, not through the page cache.
      fileBytes: options.text('safetensors-load-strategy') === 'eager' ? 0 : rankBytes,
    },
    (done, seconds) => {
      if (place.rank === 0)
        write(2, `${done === 0 ? worker : '\r'}${shardBar(done, model.shards.length, seconds)}\n${worker}`);
    },
  );
  if (place.rank === 0) write(2, '\n');
  const seconds = ((Date.now() - begun) * pace.speed) / 1000;
  log.line(worker, 'INFO', 'default_loader.py:430', `Loading weights took ${seconds.toFixed(2)} seconds`);
  log.line(
    worker,
    'INFO',
    'gpu_model_runner.py:5515',
    `Model loading took ${gib(rankBytes)} GiB memory and ${(seconds + 0.31).toFixed(6)} seconds`,
  );
  return model;
}
