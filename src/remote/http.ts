import http from 'node:http';
import type { Duplex } from 'node:stream';
import type { Host } from './host.ts';

export type HttpRequest = {
  readonly address: string;
  readonly port: number;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** Called with each piece of the body as it comes; the body is then not kept. */
  readonly onData?: (text: string) => void;
};

export type HttpAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly body: string }
  | { readonly kind: 'failed'; readonly why: string };

/** One HTTP request from the host itself, through the open SSH connection; never throws but on abort. */
export function httpFrom(host: Host, request: HttpRequest): Promise<HttpAnswer> {
  request.signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stream: Duplex = host.dial(request.address, request.port);
    let settled = false;
    const timer = setTimeout(
      () => settle({ kind: 'failed', why: `no answer in ${request.timeoutSeconds} s` }),
      request.timeoutSeconds * 1000,
    );
    const onAbort = () => {
      settle({ kind: 'failed', why: 'cancelled' });
    };
    function settle(answer: HttpAnswer) {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      request.signal.removeEventListener('abort', onAbort);
      stream.destroy();
      if (request.signal.aborted) reject(request.signal.reason);
      else resolve(answer);
    }
    request.signal.addEventListener('abort', onAbort, { once: true });
    stream.on('error', (error) => settle({ kind: 'failed', why: error.message }));
    const outgoing = http.request(
      {
        method: request.method,
        path: request.path,
        host: request.address,
        port: request.port,
        headers: {
          Connection: 'close',
          ...request.headers,
          ...(request.body === undefined ? {} : { 'Content-Length': Buffer.byteLength(request.body) }),
        },
        createConnection: () => stream,
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (text: string) => {
          if (request.onData) request.onData(text);
          else if (body.length < 4 * 2 ** 20) body += text;
        });
        response.on('end', () => settle({ kind: 'answered', status: response.statusCode ?? 0, body }));
        response.on('aborted', () => settle({ kind: 'failed', why: 'the answer broke off' }));
        response.on('error', (error) => settle({ kind: 'failed', why: error.message }));
      },
    );
    outgoing.on('error', (error) => settle({ kind: 'failed', why: error.message }));
    outgoing.end(request.body);
  });
}
