import { createServer } from 'node:http';
import { api } from './api.ts';
import type { Listener } from './engine-world.ts';
import { Generator } from './generation.ts';
import { lateKernels } from './late-kernels.ts';
import { realPath } from './model-folder.ts';
import { modelThinks, readsThoughts } from './model-parsers.ts';
import type { VllmPlace, VllmRun } from './vllm-place.ts';
import { type VllmUp, waitForEver } from './vllm-start.ts';

type Serving = VllmUp & {
  readonly run: VllmRun;
  readonly place: VllmPlace;
  /** Over Ray: a worker's rank, when it ends. */
  readonly died?: Promise<number>;
};

const ROUTES = [
  '/health, Methods: GET',
  '/metrics, Methods: GET',
  '/version, Methods: GET',
  '/v1/models, Methods: GET',
  '/v1/completions, Methods: POST',
  '/v1/chat/completions, Methods: POST',
];

/** Bound but not listening: a client finds nobody there. */
export function refuse(socket: { destroy(): unknown }): void {
  socket.destroy();
}

/** The head: the API from the engine's readiness to SIGTERM; 0 in the end. */
export async function serveHead(serving: Serving, listener: Listener): Promise<number> {
  const { run, place, group, plan, died } = serving;
  const { pace, options, env } = run;
  const { log } = place;
  const host = options.text('host') ?? '0.0.0.0';
  const port = options.number('port') ?? 8000;
  let stop: (code: number) => void = () => {};
  const stopped = new Promise<number>((resolve) => {
    stop = resolve;
  });
  let since = { at: Date.now(), prompt: 0, completion: 0 };
  const generator = new Generator(group, pace, {
    stuckSeconds: Number(env.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS ?? 300),
    stuck: () => {
      log.line(
        place.core,
        'ERROR',
        'core.py:1161',
        'EngineCore encountered a fatal error.\nTimeoutError: RPC call to execute_model timed out.',
      );
      log.line(
        place.api,
        'ERROR',
        'async_llm.py:690',
        'AsyncLLM output_handler failed.\nvllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.',
      );
      goodbye(place);
      stop(0);
    },
    prefill: () => {},
    decoded: () => {},
  });
  const keys = [...options.all('api-key'), ...(env.VLLM_API_KEY === undefined ? [] : [env.VLLM_API_KEY])];
  const names = options.all('served-model-name');
  const access = !options.has('disable-uvicorn-access-log');
  const server = createServer(
    api({
      engine: 'vllm',
      names: names.length > 0 ? names : [place.model],
      path: place.model,
      contextTokens: plan.maxModelLen,
      thoughts: readsThoughts(options.text('reasoning-parser'), 'vllm'),
      thinks: modelThinks(realPath(place.model, env) ?? place.model),
      toolParser: options.has('enable-auto-tool-choice') ? options.text('tool-call-parser') : undefined,
      apiKeys: keys,
      metrics: true,
      kvTokens: plan.tokens,
      generator,
      speed: pace.speed,
      unready: () => undefined,
      access: (line) => (access ? log.plain(place.api, `INFO:     ${line}`) : undefined),
      unhealthy: () => {},
      // Without the world it ends by itself.
      firstRequest: () => void run.world.asked().catch(() => undefined),
    }),
  );
  const stats = setInterval(() => {
    const seconds = ((Date.now() - since.at) * pace.speed) / 1000;
    const prompt = generator.promptTokens - since.prompt;
    const completion = generator.completionTokens - since.completion;
    if (prompt + completion === 0 && generator.running === 0) return;
    since = { at: Date.now(), prompt: generator.promptTokens, completion: generator.completionTokens };
    log.line(
      place.api,
      'INFO',
      'loggers.py:127',
      `Engine 000: Avg prompt throughput: ${(prompt / seconds).toFixed(1)} tokens/s, Avg generation throughput: ${(completion / seconds).toFixed(1)} tokens/s, Running: ${generator.running} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%`,
    );
  }, 10_000 / pace.speed);
  // Who watches Ray's workers says so by itself (vllm-ray.ts).
  void died?.then(() => {
    goodbye(place);
    stop(0);
  });
  process.once('SIGTERM', () => {
    clearInterval(stats);
    void shutDown(serving, generator).then(() => stop(0));
  });
  log.line(place.api, 'INFO', 'api_server.py:548', `Starting vLLM server on http://${host}:${port}`);
  log.line(place.api, 'INFO', 'launcher.py:38', 'Available routes are:');
  for (const route of ROUTES) log.line(place.api, 'INFO', 'launcher.py:47', `Route: ${route}`);
  log.plain(place.api, `INFO:     Started server process [${process.pid}]`);
  log.plain(place.api, 'INFO:     Waiting for application startup.');
  listener.server.removeListener('connection', refuse);
  listener.server.on('connection', (socket) => server.emit('connection', socket));
  await pace.wait(100);
  log.plain(place.api, 'INFO:     Application startup complete.');
  return stopped;
}

async function shutDown({ run, place }: Serving, generator: Generator): Promise<void> {
  const { log } = place;
  const { pace, options } = run;
  const drain = options.number('shutdown-timeout') ?? 0;
  log.line(
    place.api,
    'INFO',
    'launcher.py:141',
    `[shutdown] API server: shutdown triggered, drain timeout=${drain}s`,
  );
  for (let left = drain * 10; left > 0 && generator.running > 0; left -= 1) await pace.wait(100);
  log.line(place.core, 'INFO', 'core.py:1189', '[shutdown] EngineCore: trigger received signal=SIGTERM');
  log.line(
    place.core,
    'INFO',
    'multiproc_executor.py:471',
    '[shutdown] Executor: waiting for worker exit count=1',
  );
  await pace.wait(500);
  goodbye(place);
}

function goodbye({ log, api: who }: VllmPlace): void {
  for (const line of [
    'Shutting down',
    'Waiting for application shutdown.',
    'Application shutdown complete.',
    `Finished server process [${process.pid}]`,
  ])
    log.plain(who, `INFO:     ${line}`);
}

/** The headless node: no port, no word, until SIGTERM. A head that is gone leaves it waiting. */
export function serveWorker({ run, place, group }: Serving): Promise<number> {
  group.onLost = () => void waitForEver(place);
  group.beforeStep = lateKernels(run, (message) =>
    place.log.line(place.worker, 'INFO', 'kernel.py:284', message),
  );
  return new Promise((resolve) => {
    const end = (): void => {
      place.log.line(
        '',
        'INFO',
        'multiproc_executor.py:471',
        '[shutdown] Executor: waiting for worker exit count=1',
      );
      void run.pace.wait(300).then(() => resolve(0));
    };
    process.once('SIGTERM', end);
    process.once('SIGINT', end);
  });
}
