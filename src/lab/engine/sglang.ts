import { openCheckpoint } from './checkpoint.ts';
import { checkArchitecture, checkSlices } from './divides.ts';
import type { Group } from './group.ts';
import { loadKernels } from './kernels.ts';
import { COMMUNICATOR_BYTES, GIB, rankWeightBytes } from './memory-model.ts';
import { openMessageQueue } from './message-queue.ts';
import type { Model } from './model-folder.ts';
import { ncclVersion, openCommunicator } from './nccl.ts';
import { shardBar } from './output.ts';
import { within } from './pace.ts';
import { noSuchDevice, PythonError } from './python-error.ts';
import { Device, join, loadShards } from './rank.ts';
import { prepareKernels } from './rank-kernels.ts';
import { schedulerException } from './sglang-frames.ts';
import { argumentsText, earlyProblem, placeOf, type SglangPlace, type SglangRun } from './sglang-place.ts';
import { captureGraphs, gb, poolMemory } from './sglang-pools.ts';
import { KILLED, serveHead, serveWorker } from './sglang-serving.ts';
import { draft } from './speculation.ts';
import { startThreads } from './threads.ts';

/** One rank of SGLang from its arguments to its end. Returns only when the process should exit with that code. */
export async function runSglang(run: SglangRun): Promise<number> {
  const { pace, options } = run;
  const place = placeOf(options);
  const { log } = place;
  const early = earlyProblem(run, place);
  await pace.wait(400); // Python imports torch.
  if (!startThreads(run.env)) return 1;
  if (early !== undefined) {
    log.raw(early);
    return 1;
  }
  log.main(`server_args=ServerArgs(${argumentsText(options, place)})`);
  await pace.wait(300);
  try {
    const { group, model, kvTokens, contextTokens } = await bringUp(run, place);
    const served = { run, place, group, model, kvTokens, contextTokens };
    return await (place.rank === 0 ? serveHead(served) : serveWorker(served));
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    log.rank(schedulerException(error));
    log.main('Received sigquit from a child process. It usually means the child failed.');
    return KILLED;
  }
}

async function bringUp(
  run: SglangRun,
  place: SglangPlace,
): Promise<{
  readonly group: Group;
  readonly model: Model;
  readonly kvTokens: number;
  readonly contextTokens: number;
}> {
  const { world, pace, env, options } = run;
  const { log, rank, nnodes } = place;
  const device = new Device(world, env);
  const begun = Date.now();
  log.rank('Init torch distributed begin.');
  const before = await device.freeBytes();
  if ((place.tensor * place.pipeline) / nnodes > 1) throw noSuchDevice('set-device');
  await device.open();
  const timeoutSeconds = options.number('dist-timeout') ?? 600;
  const hands = { world, pace, env, print: (text: string) => log.raw(text) };
  const { store, group } = await join(hands, {
    address: place.address,
    port: place.port,
    rank,
    size: nnodes,
    timeoutSeconds,
    glooSeconds: 7200,
  });
  if (store !== undefined) {
    log.rank(`sglang is using nccl==${ncclVersion(env)}`);
    await openCommunicator({ world, env, store }, { rank, size: nnodes });
    await device.grow(COMMUNICATOR_BYTES * device.share, 'set-device');
    await pace.wait(300);
    log.rank('CustomAllreduce is disabled because this process group spans across nodes.');
    if (env.SGLANG_USE_MESSAGE_QUEUE_BROADCASTER !== '0' && place.tensor > 1)
      await openMessageQueue({ world, pace, store }, { rank, size: nnodes, address: await hostAddress(run) });
  }
  const elapsed = ((Date.now() - begun) * pace.speed) / 1000;
  const free = await device.freeBytes();
  log.rank(
    `Init torch distributed ends. elapsed=${elapsed.toFixed(2)} s, mem usage=${gb(Math.max(0, before - free))} GB`,
  );
  const least = await group.least('free-memory', free, 'balance');
  if (least < free * 0.9 && env.SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK !== '0' && place.tensor > 1)
    throw new PythonError(
      'balance',
      'RuntimeError',
      `The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=${least / GIB}, local_gpu_memory=${free / GIB}, local_gpu_memory * 0.9=${(free / GIB) * 0.9}`,
    );
  const model = await loadWeights(run, place, device);
  await waitForPeers(run, place, group);
  await prepareKernels(run, {
    engine: 'sglang',
    attention: options.text('attention-backend'),
    experts: options.text('moe-runner-backend'),
    warn: (text) => log.rank(text),
    together: () => group.least('compiled', 0),
  });
  const memory = await poolMemory(run, place, { device, group, model, before: least });
  draft(env, options.has('speculative-algorithm'));
  await captureGraphs(run, place, device);
  await group.least('captured', 0);
  const contextTokens = options.number('context-length') ?? model.maxPositions;
  if (rank % place.tensor === 0)
    log.rank(
      `max_total_num_tokens=${memory.tokens}, chunked_prefill_size=${options.number('chunked-prefill-size') ?? 8192}, max_prefill_tokens=${options.number('max-prefill-tokens') ?? 16384}, max_running_requests=${memory.requests}, context_len=${contextTokens}, available_gpu_mem=${gb(await device.freeBytes())} GB`,
    );
  await group.least('ready', 0);
  return { group, model, kvTokens: memory.tokens, contextTokens };
}

/** SGLang's UNBALANCED_MODEL_LOADING_TIMEOUT_S (load_model_utils.py). */
const UNBALANCED_SECONDS = 480;

/** All have loaded; who waits too long for another rank gives up. */
async function waitForPeers({ pace }: SglangRun, { rank }: SglangPlace, group: Group): Promise<void> {
  const all = group.least('loaded', 0);
  if ((await within((UNBALANCED_SECONDS * 1000) / pace.speed, all, 'late' as const)) !== 'late') return;
  all.catch(() => undefined); // nobody waits for it any more
  throw new PythonError(
    'barrier',
    'ValueError',
    `TP rank ${rank} could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.`,
  );
}

/** SGLANG_HOST_IP, else HOST_IP, else the source address of the default route, else what the name resolves to. */
async function hostAddress({ env, world }: SglangRun): Promise<string> {
  const named = env.SGLANG_HOST_IP ?? env.HOST_IP ?? '';
  if (named !== '') return named;
  const nic = env.SGLANG_LOCAL_IP_NIC ?? '';
  const byNic = nic === '' ? undefined : (await world.interfaceAddress(nic))[0];
  return byNic ?? (await world.routeAddress()) ?? (await world.resolve(world.hostname))[0] ?? '127.0.0.1';
}

async function loadWeights(run: SglangRun, place: SglangPlace, device: Device): Promise<Model> {
  const { options, env, pace } = run;
  const path = options.text('model-path') ?? '';
  const free = await device.freeBytes();
  place.log.rank(`Load weight begin. avail mem=${gb(free)} GB`);
  const model = openCheckpoint(path, env, { dummy: options.text('load-format') === 'dummy' });
  checkArchitecture(model, env);
  checkSlices(model, { tensor: place.tensor, engine: 'sglang' });
  loadKernels(env, options.text('moe-runner-backend'));
  const kvSplits = model.kvHeads % place.tensor === 0 || place.tensor % model.kvHeads === 0;
  // The model's own asserts carry no words.
  if (model.heads % place.tensor !== 0 || !kvSplits) throw new PythonError('load', 'AssertionError', '');
  const begun = Date.now();
  const rankBytes = rankWeightBytes(model, place);
  await loadShards(
    device,
    pace,
    { shards: model.shards.length, rankBytes, fileBytes: rankBytes },
    (done, seconds) => {
      if (place.rank === 0) place.log.raw(`\r${shardBar(done, model.shards.length, seconds)}\n`);
    },
  );
  const left = await device.freeBytes();
  const quant = options.text('quantization') ?? model.quantization;
  place.log.rank(
    `Load weight end. elapsed=${(((Date.now() - begun) * pace.speed) / 1000).toFixed(2)} s, type=${model.architecture}, ${quant === undefined ? '' : `quant=${quant}, `}avail mem=${gb(left)} GB, mem usage=${gb(Math.max(0, free - left))} GB.`,
  );
  return model;
}
