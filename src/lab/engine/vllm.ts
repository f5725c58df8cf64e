import { type Listener, WorldError } from './engine-world.ts';
import { hubProblem } from './hub.ts';
import { realPath } from './model-folder.ts';
import { reasoningProblem } from './model-parsers.ts';
import { type Pace, within } from './pace.ts';
import { PythonError } from './python-error.ts';
import { startThreads } from './threads.ts';
import {
  CORE_FAILED,
  mainTraceback,
  vllmTraceback,
  WORKER_FAILED,
  WORKER_FAILED_FRAMES,
} from './vllm-frames.ts';
import { argumentsText, earlyProblem, placeOf, VERSION, type VllmPlace, type VllmRun } from './vllm-place.ts';
import { bringUpOverRay } from './vllm-ray.ts';
import { refuse, serveHead, serveWorker } from './vllm-serving.ts';
import { bringUp, hostAddress, waitForEver } from './vllm-start.ts';

/** One node of vLLM from its arguments, which `words` are as they came, to its end; the exit code. */
export async function runVllm(run: VllmRun, words: readonly string[]): Promise<number> {
  const { pace, options } = run;
  const place = placeOf(options, run.program);
  const { log, api } = place;
  await pace.wait(500); // Python imports torch.
  if (!startThreads(run.env)) return 1;
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
  const early = earlyProblem(run, place) ?? (await hubTrouble(run));
  if (early !== undefined) {
    log.plain(api, early);
    return 1;
  }
  if (!place.headless) announceEngine(run, place, await hostAddress(run));
  try {
    const serving = place.overRay
      ? await bringUpOverRay(run, place, words)
      : { run, place, ...(await inTime(run, place, bringUp(run, place))) };
    makeParser(run, place);
    return await (socket === undefined ? serveWorker(serving) : serveHead(serving, socket));
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    // Only the head's engine core looks at the KV budget; a headless node then hears no more of it.
    if (place.headless && error.site === 'kv-check') return waitForEver(place);
    return fail(place, error, pace);
  }
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

/** Where the tokenizer is named by its repository, the hub is asked for it. */
async function hubTrouble({ world, env, options }: VllmRun): Promise<string | undefined> {
  const problem = await hubProblem(world, env, options.text('tokenizer'));
  return problem === undefined ? undefined : mainTraceback(problem);
}

/** The engine core makes the reasoning parser once it has its caches (structured_output). */
function makeParser({ options, env }: VllmRun, place: VllmPlace): void {
  if (place.headless) return;
  const folder = realPath(place.model, env) ?? place.model;
  const problem = reasoningProblem(options.text('reasoning-parser'), folder);
  if (problem !== undefined) throw new PythonError('parser', 'RuntimeError', problem);
}

function announceEngine({ options }: VllmRun, place: VllmPlace, connect: string): void {
  const { log, core } = place;
  log.line(
    core,
    'INFO',
    'core.py:123',
    `Initializing a V1 LLM engine (v${VERSION}) with config: model='${place.model}', speculative_config=None, tokenizer='${place.model}', dtype=torch.bfloat16, max_seq_len=${options.text('max-model-len') ?? 'None'}, tensor_parallel_size=${place.tensor}, pipeline_parallel_size=${place.pipeline}, data_parallel_size=1, enforce_eager=${options.has('enforce-eager') ? 'True' : 'False'}, kv_cache_dtype=${options.text('kv-cache-dtype') ?? 'auto'}`,
  );
  if (place.nnodes > 1 && !place.overRay)
    log.line(
      core,
      'INFO',
      'multiproc_executor.py:150',
      `DP group leader: node_rank=0, node_rank_within_dp=0, master_addr=${place.address}, mq_connect_ip=${connect} (local), world_size=${place.tensor * place.pipeline}, local_world_size=1`,
    );
}

/** The API's process waits for its engine no longer than VLLM_ENGINE_READY_TIMEOUT_S (vllm/envs.py). */
async function inTime<T>({ env, pace }: VllmRun, { headless }: VllmPlace, up: Promise<T>): Promise<T> {
  if (headless) return up;
  const seconds = Number(env['VLLM_ENGINE_READY_TIMEOUT_S'] ?? 600);
  const come = await within((seconds * 1000) / pace.speed, up, 'late' as const);
  if (come !== 'late') return come;
  up.catch(() => undefined); // nobody waits for it any more
  throw new PythonError(
    'kv-check',
    'TimeoutError',
    `Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited ${seconds}s (configured by VLLM_ENGINE_READY_TIMEOUT_S).`,
  );
}

/** Its processes are ended one after the other, and waited for. */
const SHUTDOWN_MS = 4000;

/** Prints a start's failure as its processes do, one after the other; the exit code. */
async function fail(place: VllmPlace, error: PythonError, pace: Pace): Promise<number> {
  const { log, core, api, early, worker } = place;
  // A single rank has no worker process of its own.
  const inCore = ['kv-check', 'parser'].includes(error.site) || place.worker === core;
  if (!inCore) {
    const who = ['load', 'barrier', 'pool', 'graphs', 'draft'].includes(error.site) ? worker : early;
    log.line(
      who,
      'ERROR',
      'multiproc_executor.py:870',
      `WorkerProc failed to start.\n${vllmTraceback(error)}`,
    );
  }
  await pace.wait(SHUTDOWN_MS);
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
