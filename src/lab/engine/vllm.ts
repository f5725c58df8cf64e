import type { Options } from './command-line.ts';
import { type EngineWorld, type Listener, WorldError } from './engine-world.ts';
import type { Group } from './group.ts';
import { COMMUNICATOR_BYTES, elementBytes, GIB, rankWeightBytes } from './memory-model.ts';
import { openMessageQueue } from './message-queue.ts';
import { type Model, modelOf, readConfig, readWeights, realPath } from './model-folder.ts';
import { bar, shardBar, VllmLog, write } from './output.ts';
import type { Pace } from './pace.ts';
import { PythonError } from './python-error.ts';
import { Device, type Env, join, loadShards } from './rank.ts';
import {
  CORE_FAILED,
  mainTraceback,
  vllmTraceback,
  WORKER_FAILED,
  WORKER_FAILED_FRAMES,
} from './vllm-frames.ts';
import { checkFree, gib, hybridBlock, type KvPlan, kvBudget, planKv } from './vllm-memory.ts';
import { serveHead, serveWorker } from './vllm-serving.ts';

export type VllmRun = {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly env: Env;
  readonly options: Options;
  readonly program: string;
};

/** Who this rank is, and the prefixes its processes log with. */
export type VllmPlace = {
  readonly rank: number;
  readonly nnodes: number;
  readonly tensor: number;
  readonly pipeline: number;
  readonly headless: boolean;
  readonly model: string;
  readonly address: string;
  readonly port: number;
  readonly api: string;
  readonly core: string;
  /** Before the groups exist, and after. */
  readonly early: string;
  readonly worker: string;
  readonly log: VllmLog;
};

const VERSION = '0.28.1';

/** One node of vLLM from its arguments to its end; the exit code. */
export async function runVllm(run: VllmRun): Promise<number> {
  const { pace, options } = run;
  const place = placeOf(options, run.program);
  const { log, api } = place;
  await pace.wait(500); // Python imports torch.
  if (place.headless)
    log.line(
      '',
      'INFO',
      'serve.py:216',
      `Launching vLLM (v${VERSION}) headless multiproc executor, with head node address ${place.address}:${place.port} for torch.distributed process group.`,
    );
  else {
    log.line(api, 'INFO', 'api_utils.py:311', `vLLM server version ${VERSION}, serving model ${place.model}`);
    log.line(api, 'INFO', 'api_utils.py:272', `non-default args: {${argumentsText(options, place)}}`);
  }
  const socket = place.headless ? undefined : await bindApi(run);
  if (socket === 'taken') {
    log.plain(api, mainTraceback('OSError', '[Errno 98] Address already in use'));
    return 1;
  }
  const early = earlyProblem(run, place);
  if (early !== undefined) {
    log.plain(api, early);
    return 1;
  }
  if (!place.headless) announceEngine(run, place, await hostAddress(run));
  try {
    const up = await bringUp(run, place);
    const serving = { run, place, ...up };
    return await (socket === undefined ? serveWorker(serving) : serveHead(serving, socket));
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    // Only the head's engine core looks at the KV budget; a headless node then hears no more of it.
    if (place.headless && error.site === 'kv-check') return waitForEver(place);
    return fail(place, error);
  }
}

function placeOf(options: Options, program: string): VllmPlace {
  const tensor = options.number('tensor-parallel-size') ?? 1;
  const pipeline = options.number('pipeline-parallel-size') ?? 1;
  const rank = options.number('node-rank') ?? 0;
  // The module's own entry takes no notice of --headless.
  const headless = options.has('headless') && program === 'vllm';
  const { pid } = process;
  const core = `(EngineCore pid=${pid + 1}) `;
  const alone = tensor * pipeline === 1;
  const id = pid + (headless ? 1 : 2);
  const pp = pipeline > 1 ? `_PP${Math.floor(rank / tensor)}` : '';
  const tp = tensor > 1 ? `_TP${rank % tensor}` : '';
  const ep = tensor > 1 && options.has('enable-expert-parallel') ? `_EP${rank % tensor}` : '';
  return {
    rank,
    nnodes: options.number('nnodes') ?? 1,
    tensor,
    pipeline,
    headless,
    model: options.positionals[0] ?? options.text('model') ?? 'Qwen/Qwen3-0.6B',
    address: options.text('master-addr') ?? '127.0.0.1',
    port: options.number('master-port') ?? 29501,
    api: headless ? '' : `(APIServer pid=${pid}) `,
    core,
    early: alone ? core : `(Worker pid=${id}) `,
    worker: alone ? core : `(Worker${pp}${tp}${ep} pid=${id}) `,
    log: new VllmLog(),
  };
}

/** The port is taken before the engine starts, though nobody is answered until it serves. */
async function bindApi({ world, options }: VllmRun): Promise<Listener | 'taken'> {
  try {
    const listener = await world.listen(options.text('host') ?? '0.0.0.0', options.number('port') ?? 8000);
    listener.server.on('connection', refuse);
    return listener;
  } catch (error) {
    if (error instanceof WorldError) return 'taken';
    throw error;
  }
}

/** Bound but not listening: a client finds nobody there. */
export function refuse(socket: { destroy(): unknown }): void {
  socket.destroy();
}

function earlyProblem({ options, env }: VllmRun, place: VllmPlace): string | undefined {
  const invalid = (of: string, message: string): string =>
    mainTraceback(
      'pydantic_core._pydantic_core.ValidationError',
      `1 validation error for ${of}\n  Value error, ${message} [type=value_error, input_value=ArgsKwargs((), {'model': '${place.model}'}), input_type=ArgsKwargs]\n    For further information visit https://errors.pydantic.dev/2.12/v/value_error`,
    );
  const folder = realPath(place.model, env);
  const config = folder === undefined ? undefined : readConfig(folder);
  if (config === undefined || folder === undefined)
    return invalid(
      'ModelConfig',
      `Invalid repository ID or local directory specified: '${place.model}'.\nPlease verify the following requirements:\n1. Provide a valid Hugging Face repository ID.\n2. Specify a local directory that contains a recognized configuration file.`,
    );
  const model = modelOf(folder, config, { bytes: 0, shards: [] });
  if (model.heads % place.tensor !== 0)
    return invalid(
      'VllmConfig',
      `Total number of attention heads (${model.heads}) must be divisible by tensor parallel size (${place.tensor}).`,
    );
  const asked = maxModelLen(options);
  if (asked !== undefined && asked > model.maxPositions && env.VLLM_ALLOW_LONG_MAX_MODEL_LEN !== '1')
    return invalid(
      'ModelConfig',
      `User-specified max_model_len (${asked}) is greater than the derived max_model_len (max_position_embeddings=${model.maxPositions} or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.`,
    );
  const world = place.tensor * place.pipeline;
  if (world % place.nnodes !== 0 || world / place.nnodes > 1)
    return mainTraceback(
      'ValueError',
      `World size (${world}) is larger than the number of available GPUs (1) in this node. If this is intentional and you are using: - ray, set '--distributed-executor-backend ray'. - multiprocessing, set '--nnodes' appropriately.`,
    );
  return undefined;
}

/** `--max-model-len`: a number, `64k` or `1M` in vLLM's own spelling; `auto` and -1 are undefined, as is none. */
function maxModelLen(options: Options): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([kKmM]?)$/.exec(options.text('max-model-len') ?? '');
  if (match === null) return undefined;
  const unit = { '': 1, k: 1e3, K: 1024, m: 1e6, M: 2 ** 20 }[match[2] ?? ''] ?? 1;
  return Math.floor(Number(match[1]) * unit);
}

function announceEngine({ options }: VllmRun, place: VllmPlace, connect: string): void {
  const { log, core } = place;
  log.line(
    core,
    'INFO',
    'core.py:123',
    `Initializing a V1 LLM engine (v${VERSION}) with config: model='${place.model}', speculative_config=None, tokenizer='${place.model}', dtype=torch.bfloat16, max_seq_len=${options.text('max-model-len') ?? 'None'}, tensor_parallel_size=${place.tensor}, pipeline_parallel_size=${place.pipeline}, data_parallel_size=1, enforce_eager=${options.has('enforce-eager') ? 'True' : 'False'}, kv_cache_dtype=${options.text('kv-cache-dtype') ?? 'auto'}`,
  );
  if (place.nnodes > 1)
    log.line(
      core,
      'INFO',
      'multiproc_executor.py:150',
      `DP group leader: node_rank=0, node_rank_within_dp=0, master_addr=${place.address}, mq_connect_ip=${connect} (local), world_size=${place.tensor * place.pipeline}, local_world_size=1`,
    );
}

/** VLLM_HOST_IP, else the source address of the default route; HOST_IP counts for nothing here. */
async function hostAddress({ env, world }: VllmRun): Promise<string> {
  const named = env.VLLM_HOST_IP ?? '';
  return named !== '' ? named : ((await world.routeAddress()) ?? '0.0.0.0');
}

export type VllmUp = { readonly group: Group; readonly plan: KvPlan; readonly folder: string };

async function bringUp(run: VllmRun, place: VllmPlace): Promise<VllmUp> {
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
    log.line(early, 'INFO', 'pynccl.py:111', 'vLLM is using nccl==2.30.7');
    await device.grow(COMMUNICATOR_BYTES, 'set-device');
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
  const requestedBytes = checkFree(await device.freeBytes(), totalBytes, utilization);
  await meet(place, group, 'checked');
  const model = await loadWeights(run, place, device);
  await meet(place, group, 'loaded');
  const { budget, graphBytes } = await profile(run, place, { model, requestedBytes });
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
  if (graphBytes > 0) await captureGraphs(run, place, { device, graphBytes });
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
  const folder = realPath(path, env) ?? path;
  if (!place.headless)
    log.line(worker, 'INFO', 'gpu_model_runner.py:5420', `Starting to load model ${path}...`);
  const dummy = options.text('load-format') === 'dummy';
  const weights = dummy ? { bytes: GIB, shards: ['dummy'] } : readWeights(folder);
  if ('kind' in weights) {
    if (weights.kind === 'missing-shard')
      throw new PythonError(
        'load',
        'FileNotFoundError',
        `No such file or directory: ${path}/${weights.shard.replace(/^.*\//, '')}`,
      );
    if (weights.kind === 'bad-header')
      throw new PythonError(
        'load',
        'safetensors_rust.SafetensorError',
        'Error while deserializing header: header too large',
      );
    throw new PythonError('load', 'RuntimeError', `Cannot find any model weights with \`${path}\``);
  }
  const model = modelOf(folder, readConfig(folder) ?? {}, weights);
  const available = (await world.memory()).availableBytes;
  log.line(
    worker,
    'INFO',
    'weight_utils.py:858',
    `Filesystem type for checkpoints: EXT4. Checkpoint size: ${(weights.bytes / GIB).toFixed(2)} GiB. Available RAM: ${(available / GIB).toFixed(2)} GiB.`,
  );
  const begun = Date.now();
  const rankBytes = rankWeightBytes(model, place);
  await loadShards(
    device,
    pace,
    { shards: model.shards.length, rankBytes, fileBytes: rankBytes },
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

async function profile(
  { options, pace }: VllmRun,
  place: VllmPlace,
  { model, requestedBytes }: { readonly model: Model; readonly requestedBytes: number },
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
    log.line(worker, 'INFO', 'backends.py:1122', 'Dynamo bytecode transform time: 0.31 s');
    await pace.wait(250);
    log.line(worker, 'INFO', 'backends.py:390', 'Compiling a graph for compile range (1, 2048) takes 0.32 s');
    log.line(worker, 'INFO', 'monitor.py:53', 'torch.compile took 0.71 s in total');
  }
  await pace.wait(400);
  log.line(worker, 'INFO', 'monitor.py:81', 'Initial profiling/warmup run took 0.40 s');
  const graphBytes = eager ? 0 : 1.2 * GIB;
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
  const budget = fixed ?? kvBudget(model, place, { requestedBytes, graphBytes });
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

/** `25769803776`, `24G`, `24GiB` → bytes. */
function bytesOf(text: string | undefined): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?B?)$/.exec(text ?? '');
  if (match === null) return undefined;
  const power = ['', 'k', 'm', 'g', 't'].indexOf((match[2] ?? '').toLowerCase());
  const binary = (match[3] ?? '').startsWith('i') || /[KMGT]/.test(match[2] ?? '');
  return Math.floor(Number(match[1]) * (binary ? 1024 : 1000) ** power);
}

async function captureGraphs(
  { pace }: VllmRun,
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

/** Prints a start's failure as its processes do, one after the other; the exit code. */
function fail(place: VllmPlace, error: PythonError): number {
  const { log, core, api, early, worker } = place;
  // A single rank has no worker process of its own.
  const inCore = error.site === 'kv-check' || place.worker === core;
  if (!inCore) {
    const who = ['load', 'barrier', 'pool', 'graphs'].includes(error.site) ? worker : early;
    log.line(
      who,
      'ERROR',
      'multiproc_executor.py:870',
      `WorkerProc failed to start.\n${vllmTraceback(error)}`,
    );
  }
  if (place.headless) {
    log.plain('', mainTraceback('Exception', WORKER_FAILED));
    return 1;
  }
  const cause = inCore
    ? vllmTraceback(error)
    : mainTraceback('Exception', WORKER_FAILED, WORKER_FAILED_FRAMES);
  log.line(core, 'ERROR', 'core.py:1136', `EngineCore failed to start.\n${cause}`);
  log.plain(api, mainTraceback('RuntimeError', CORE_FAILED));
  return 1;
}

function argumentsText(options: Options, place: VllmPlace): string {
  const shown = options.entries().map(([key, values]) => {
    const python =
      values.length === 0
        ? 'True'
        : key === 'api-key'
          ? "['********']"
          : /^-?\d+(\.\d+)?$/.test(values[0] ?? '')
            ? (values[0] ?? '')
            : `'${values[0]}'`;
    return `'${key.replaceAll('-', '_')}': ${python}`;
  });
  return [`'model_tag': '${place.model}'`, ...shown].join(', ');
}
