import { createServer } from 'node:http';
import { api } from './api.ts';
import { type Listener, WorldError } from './engine-world.ts';
import { Generator } from './generation.ts';
import type { Group } from './group.ts';
import type { Model } from './model-folder.ts';
import { modelThinks, readsThoughts } from './model-parsers.ts';
import type { SglangPlace, SglangRun } from './sglang-place.ts';

type Serving = {
  readonly run: SglangRun;
  readonly place: SglangPlace;
  readonly group: Group;
  readonly model: Model;
  readonly kvTokens: number;
  readonly contextTokens: number;
};

/** The exit "code" of a tree that ends by its own SIGKILL. */
export const KILLED = -9;

/** The head: HTTP, warm-up, service, and the drained stop that ends by killing its own tree. */
export async function serveHead(serving: Serving): Promise<number> {
  const { run, place, group } = serving;
  const { pace, options } = run;
  const { log } = place;
  const host = options.text('host') ?? '127.0.0.1';
  const port = options.number('port') ?? 30000;
  let state: 'starting' | 'up' | 'draining' | 'unhealthy' = 'starting';
  let decoded = 0;
  let since = Date.now();
  const interval = options.number('decode-log-interval') ?? 40;
  let stop: (code: number) => void = () => {};
  const stopped = new Promise<number>((resolve) => {
    stop = resolve;
  });
  const generator = new Generator(group, pace, {
    prefill: (tokens, running) =>
      log.rank(
        `Prefill batch, #new-seq: 1, #new-token: ${tokens}, #cached-token: 0, full token usage: 0.00, #running-req: ${running}, #queue-req: 0, #pending-token: 0, cuda graph: True, input throughput (token/s): ${(tokens / 0.2).toFixed(2)}`,
      ),
    stuckSeconds: options.number('watchdog-timeout') ?? 300,
    stuck: () => {
      log.rank(
        `Watchdog timeout (self.watchdog_timeout=${options.number('watchdog-timeout') ?? 300}, self.soft=False)`,
      );
      log.main('SIGQUIT received. signum=3, frame=None. It usually means one child failed.');
      stop(KILLED);
    },
    decoded: (running) => {
      decoded += 1;
      if (decoded % interval !== 0) return;
      const seconds = Math.max(1e-3, (Date.now() - since) / 1000);
      since = Date.now();
      log.rank(
        `Decode batch, #running-req: ${running}, #full token: ${generator.promptTokens + generator.completionTokens}, full token usage: 0.00, cuda graph: True, gen throughput (token/s): ${(interval / seconds).toFixed(2)}, #queue-req: 0`,
      );
    },
  });
  let handled = false;
  const installHandler = (): void => {
    if (handled) return;
    handled = true;
    process.on('SIGTERM', () => {
      if (state === 'draining') return;
      state = 'draining';
      log.main(`SIGTERM received. signum=15 frame=None. Draining requests and shutting down...`);
      void drain(serving, generator).then(() => stop(KILLED));
    });
  };
  const path = options.text('model-path') ?? '';
  const server = createServer(
    api({
      engine: 'sglang',
      names: [options.text('served-model-name') ?? path],
      path,
      contextTokens: serving.contextTokens,
      thoughts: readsThoughts(options.text('reasoning-parser'), 'sglang'),
      thinks: modelThinks(serving.model.folder),
      toolParser: options.text('tool-call-parser'),
      apiKeys: options.all('api-key'),
      metrics: options.has('enable-metrics'),
      kvTokens: serving.kvTokens,
      generator,
      speed: pace.speed,
      unready: () => (state === 'starting' ? 'starting' : state === 'draining' ? 'draining' : undefined),
      access: (line) => log.main(`INFO:     ${line}`),
      unhealthy: () => {
        state = 'unhealthy';
        log.main(
          "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: %s. last_heartbeat time: %s".replaceAll(
            '%s',
            new Date().toTimeString().slice(0, 8),
          ),
        );
      },
      firstRequest: installHandler,
    }),
  );
  log.main(`INFO:     Started server process [${process.pid}]`);
  log.main('INFO:     Waiting for application startup.');
  log.main('INFO:     Application startup complete.');
  const listener = await open(run, host, port);
  if (listener === undefined) {
    log.main(
      `ERROR:    [Errno 98] error while attempting to bind on address ('${host}', ${port}): address already in use`,
    );
    return 1;
  }
  listener.server.on('connection', (socket) => server.emit('connection', socket));
  log.main(`INFO:     Uvicorn running on http://${host}:${port} (Press CTRL+C to quit)`);
  await pace.wait(300);
  if (!options.has('skip-server-warmup')) {
    log.main(`INFO:     127.0.0.1:${40_000 + (process.pid % 9000)} - "GET /model_info HTTP/1.1" 200 OK`);
    installHandler();
    const request = {
      promptTokens: 6,
      pieces: [{ kind: 'content' as const, text: 'one two three four five six seven eight' }],
      maxTokens: 8,
      endless: false,
    };
    for await (const _ of generator.generate(request, () => false));
    log.main(`INFO:     127.0.0.1:${40_000 + (process.pid % 9000)} - "POST /generate HTTP/1.1" 200 OK`);
  }
  state = 'up';
  log.main('The server is fired up and ready to roll!');
  return stopped;
}

/** Waits for running requests without a limit, then lets the other schedulers leave their loops. */
async function drain({ run, place, group }: Serving, generator: Generator): Promise<void> {
  const { pace } = run;
  for (let left = 0; ; left -= 1) {
    if (left <= 0) {
      place.log.main(`Gracefully exiting... Remaining number of requests ${generator.running}.`);
      left = 20;
    }
    if (generator.running === 0) break;
    await pace.wait(250);
  }
  group.shutdown();
  await pace.wait(500);
}

async function open({ world }: SglangRun, host: string, port: number): Promise<Listener | undefined> {
  try {
    return await world.listen(host, port);
  } catch (error) {
    if (error instanceof WorldError) return undefined;
    throw error;
  }
}

/** Rank ≥ 1: a health server that always says yes, until the head lets the schedulers go. */
export async function serveWorker({ run, place, group }: Serving): Promise<number> {
  const { options, pace } = run;
  const host = options.text('host') ?? '127.0.0.1';
  const port = options.number('port') ?? 30000;
  const released = new Promise<void>((resolve) => {
    group.onShutdown = resolve;
  });
  const listener = await open(run, host, port);
  if (listener !== undefined) {
    const server = createServer((request, response) => {
      const known = /^\/(ping|health|health_generate)$/.test((request.url ?? '').split('?', 1)[0] ?? '');
      response.writeHead(known ? 200 : 404, { 'content-length': 0 });
      response.end();
    });
    listener.server.on('connection', (socket) => server.emit('connection', socket));
    place.log.main(`Dummy health check server started in background thread at ${host}:${port}`);
  }
  // A head that is killed leaves this rank in NCCL's wait: only the head's own word releases it.
  await released;
  await pace.wait(200);
  place.log.main(`Scheduler or DataParallelController ${process.pid + 1} terminated with 0`);
  return 1;
}
