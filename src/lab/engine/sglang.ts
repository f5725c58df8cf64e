import type { Options } from './command-line.ts';
import type { EngineWorld } from './engine-world.ts';
import type { Group } from './group.ts';
import {
  COMMUNICATOR_BYTES,
  elementBytes,
  GIB,
  rankWeightBytes,
  sequenceBytes,
  sglangFraction,
  tokenBytes,
} from './memory-model.ts';
import { openMessageQueue } from './message-queue.ts';
import { type Model, modelOf, readConfig, readWeights, realPath } from './model-folder.ts';
import { bar, SglangLog, shardBar } from './output.ts';
import type { Pace } from './pace.ts';
import { noSuchDevice, PythonError } from './python-error.ts';
import { Device, type Env, join, loadShards } from './rank.ts';
import { mainException, schedulerException } from './sglang-frames.ts';
import { serveHead, serveWorker } from './sglang-serving.ts';

export type SglangRun = {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly env: Env;
  readonly options: Options;
};

export type SglangPlace = {
  readonly rank: number;
  readonly nnodes: number;
  readonly tensor: number;
  readonly pipeline: number;
  readonly address: string;
  readonly port: number;
  readonly log: SglangLog;
};

const gb = (bytes: number): string => (bytes / GIB).toFixed(2);

/** One rank of SGLang from its arguments to its end. Returns only when the process should exit with that code. */
export async function runSglang(run: SglangRun): Promise<number> {
  const { pace, options } = run;
  const place = placeOf(options);
  const { log } = place;
  const early = earlyProblem(run, place);
  await pace.wait(400); // Python imports torch.
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

/** The exit "code" of a tree that ends by its own SIGKILL. */
export const KILLED = -9;

function placeOf(options: Options): SglangPlace {
  const tensor = options.number('tp-size') ?? 1;
  const pipeline = options.number('pp-size') ?? 1;
  const nnodes = options.number('nnodes') ?? 1;
  const rank = options.number('node-rank') ?? 0;
  const init = /^(?:tcp:\/\/)?\[?(.+?)\]?:(\d+)$/.exec(options.text('dist-init-addr') ?? '');
  const pp = pipeline > 1 ? ` PP${Math.floor(rank / Math.max(1, nnodes / pipeline))}` : '';
  const tp = tensor > 1 ? ` TP${rank % tensor}` : '';
  return {
    rank,
    nnodes,
    tensor,
    pipeline,
    address: init?.[1] ?? '127.0.0.1',
    port: Number(init?.[2] ?? options.number('nccl-port') ?? 20_000 + Math.floor(Math.random() * 9000)),
    log: new SglangLog(`${pp}${tp}${(options.number('ep-size') ?? 1) > 1 ? ` EP${rank % tensor}` : ''}`),
  };
}

/** What the main process checks before it starts a scheduler; its words, or undefined. */
function earlyProblem({ options, env }: SglangRun, place: SglangPlace): string | undefined {
  const path = options.text('model-path') ?? '';
  if ((options.text('served-model-name') ?? '').includes(':'))
    return mainException(
      'ValueError',
      'Invalid served model name: the served model name cannot contain a colon (":") character.',
    );
  if ((place.tensor * place.pipeline) % place.nnodes !== 0)
    return mainException('AssertionError', 'tp_size must be divisible by number of nodes');
  const folder = realPath(path, env);
  const config = folder === undefined ? undefined : readConfig(folder);
  if (config === undefined || folder === undefined) return mainException('OSError', noConfig(path));
  const asked = options.number('context-length');
  const { maxPositions } = modelOf(folder, config, { bytes: 0, shards: [] });
  if (asked !== undefined && asked > maxPositions && env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN !== '1')
    return mainException(
      'ValueError',
      `User-specified context_length (${asked}) is greater than the derived context_length (${maxPositions}). This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1`,
    );
  return undefined;
}

function noConfig(path: string): string {
  return `Can't load the configuration of '${path}'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name. Otherwise, make sure '${path}' is the correct path to a directory containing a config.json file`;
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
    log.rank('sglang is using nccl==2.30.7');
    await device.grow(COMMUNICATOR_BYTES, 'set-device');
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
  await group.least('loaded', 0);
  const memory = await poolMemory(run, place, { device, group, model, before: least });
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
  const folder = realPath(path, env) ?? path;
  const free = await device.freeBytes();
  place.log.rank(`Load weight begin. avail mem=${gb(free)} GB`);
  const dummy = options.text('load-format') === 'dummy';
  const weights = dummy ? { bytes: GIB, shards: ['dummy'] } : readWeights(folder);
  if ('kind' in weights) {
    if (weights.kind === 'missing-shard')
      throw new PythonError(
        'load',
        'FileNotFoundError',
        `No such file or directory: ${path}/${base(weights.shard)}`,
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
  if (model.heads % place.tensor !== 0) throw new PythonError('load', 'AssertionError', '', []);
  if (model.kvHeads % place.tensor !== 0 && place.tensor % model.kvHeads !== 0)
    throw new PythonError('load', 'AssertionError', '', []);
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

const base = (path: string): string => path.replace(/^.*\//, '');

type Pools = {
  readonly device: Device;
  readonly group: Group;
  readonly model: Model;
  readonly before: number;
};

/** The state and KV pools by engines.md §5.2: the fraction is of what was free before the load. */
async function poolMemory(
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

/** Takes 1.2 GiB and about a second, unless graphs are off. */
async function captureGraphs(
  { options, pace }: SglangRun,
  place: SglangPlace,
  device: Device,
): Promise<void> {
  if (options.has('disable-cuda-graph')) return;
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
    const steps = kind === 'decode' ? [...sizes].reverse() : [4096, 2048, 1024, 512, 256];
    const bytes = (kind === 'decode' ? 0.7 : 0.5) * GIB;
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

/** `model_path='…', tp_size=2, …`: what was given, in Python's spelling; a key is never shown. */
function argumentsText(options: Options, place: SglangPlace): string {
  const shown = options.entries().map(([key, values]) => {
    const value = values[0];
    const python =
      value === undefined
        ? 'True'
        : key.endsWith('api-key')
          ? "'********'"
          : /^-?\d+(\.\d+)?$/.test(value)
            ? value
            : `'${value}'`;
    return `${key.replaceAll('-', '_')}=${python}`;
  });
  const missing = [
    ['host', "'127.0.0.1'"],
    ['port', '30000'],
    ['nnodes', String(place.nnodes)],
    ['node-rank', String(place.rank)],
  ].filter(([key = '']) => !options.has(key));
  return [...shown, ...missing.map(([key = '', value]) => `${key.replaceAll('-', '_')}=${value}`)].join(', ');
}
