import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { complete, type Exchange, failure, send } from './completions.ts';
import type { Generator } from './generation.ts';
import { type Json, parseJson } from './json.ts';
import { metricsText } from './metrics.ts';
import { within } from './pace.ts';

/** What a head serves, and what it wants to know of its clients. */
export type Served = {
  readonly engine: 'sglang' | 'vllm';
  readonly names: readonly string[];
  readonly path: string;
  readonly contextTokens: number;
  /** What the reasoning parser puts into a field of its own. */
  readonly thoughts: 'not' | 'marked' | 'all';
  /** The model thinks before it answers, unless it is told not to. */
  readonly thinks: boolean;
  /** The parser that takes tool calls out of what the model writes. */
  readonly toolParser: string | undefined;
  readonly apiKeys: readonly string[];
  readonly metrics: boolean;
  readonly kvTokens: number;
  readonly generator: Generator;
  readonly speed: number;
  /** Why /health answers 503 now, or undefined when it does not. */
  unready(): 'starting' | 'draining' | undefined;
  access(line: string): void;
  unhealthy(): void;
  firstRequest(): void;
};

/** The head's HTTP API, as far as clients of both engines use it. */
export function api(served: Served): RequestListener {
  return (request, response) => {
    response.on('finish', () => {
      const peer = `${request.socket.remoteAddress ?? '127.0.0.1'}:${request.socket.remotePort ?? 0}`;
      served.access(
        `${peer} - "${request.method} ${request.url} HTTP/1.1" ${response.statusCode} ${response.statusMessage}`,
      );
    });
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const body = text === '' ? {} : parseJson(text);
      if (body === undefined) send(response, 400, failure(served, 'Invalid JSON', 400));
      else void route(served, { request, response, body });
    });
  };
}

async function route(served: Served, exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
  if (!allowed(served, path, request)) return send(response, 401, { error: 'Unauthorized' });
  if (path === '/health' && served.engine === 'vllm') return send(response, 200, undefined);
  if (path === '/health' || (path === '/health_generate' && served.engine === 'sglang'))
    return health(served, response);
  if (path === '/ping') return send(response, 200, undefined);
  if (path === '/metrics' && served.metrics) {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' });
    response.end(metricsText(served));
    return;
  }
  if (path === '/v1/models') return send(response, 200, models(served));
  if (path === '/version' && served.engine === 'vllm')
    return send(response, 200, { version: 'firstlight lab stand-in' });
  if (served.engine === 'sglang' && (path === '/model_info' || path === '/get_model_info'))
    return send(response, 200, {
      model_path: served.path,
      tokenizer_path: served.path,
      is_generation: true,
      preferred_sampling_params: null,
    });
  if (served.engine === 'sglang' && path === '/server_info')
    return send(response, 200, {
      model_path: served.path,
      max_total_num_tokens: served.kvTokens,
      version: 'firstlight lab stand-in',
    });
  if (path === '/v1/completions' || path === '/v1/chat/completions') {
    if (request.method !== 'POST') return send(response, 405, { detail: 'Method Not Allowed' });
    return complete(served, exchange, path === '/v1/chat/completions');
  }
  return send(response, 404, { detail: 'Not Found' });
}

function allowed(served: Served, path: string, request: IncomingMessage): boolean {
  if (served.apiKeys.length === 0) return true;
  const open =
    served.engine === 'vllm'
      ? !path.startsWith('/v1')
      : path.startsWith('/health') || path.startsWith('/metrics') || path === '/ping';
  const given = request.headers.authorization ?? '';
  return open || served.apiKeys.some((key) => given === `Bearer ${key}`);
}

/** SGLang's /health makes a token; it takes a second, and gives up after twenty. */
async function health(served: Served, response: ServerResponse): Promise<void> {
  if (served.unready() !== undefined) return send(response, 503, undefined);
  const token = (async () => {
    const one = served.generator.generate(
      { promptTokens: 1, pieces: [{ kind: 'content', text: 'a' }], maxTokens: 1, endless: false },
      () => false,
    );
    for await (const _ of one) return 'answered' as const;
    return 'answered' as const;
  })();
  const second = new Promise((resolve) => setTimeout(resolve, 1000 / served.speed));
  const outcome = await within(20_000 / served.speed, token, 'silent' as const);
  await second;
  if (outcome === 'answered') return send(response, 200, undefined);
  served.unhealthy();
  return send(response, 503, undefined);
}

function models(served: Served): Json {
  return {
    object: 'list',
    data: served.names.map((id) => ({
      id,
      object: 'model',
      created: Math.floor(Date.now() / 1000),
      owned_by: served.engine,
      root: served.path,
      parent: null,
      max_model_len: served.contextTokens,
    })),
  };
}
