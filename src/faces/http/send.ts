import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Problem } from './problem.ts';

/** On every answer: nothing of another site may be loaded, framed or guessed. */
export const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
};

const COMPRESS_FROM = 1400;
const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

/** One whole body, compressed where it is worth it and the client takes it. HEAD gets the head alone. */
export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  answer: {
    readonly status: number;
    readonly type: string;
    readonly body: string | Buffer;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<void> {
  let bytes = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  const headers: Record<string, string> = { 'Cache-Control': 'no-store', ...answer.headers };
  if (bytes.length >= COMPRESS_FROM && headers['Content-Encoding'] === undefined) {
    const accepts = String(request.headers['accept-encoding'] ?? '');
    headers['Vary'] = 'Accept-Encoding';
    if (/\bbr\b/.test(accepts)) {
      // The best qualities cost more time than they save on a line that is near.
      bytes = await brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
      headers['Content-Encoding'] = 'br';
    } else if (/\bgzip\b/.test(accepts)) {
      bytes = await zip(bytes, { level: 5 });
      headers['Content-Encoding'] = 'gzip';
    }
  }
  if (headers['Content-Encoding'] === 'identity') delete headers['Content-Encoding'];
  if (response.destroyed) return;
  response.writeHead(answer.status, {
    'Content-Type': answer.type,
    'Content-Length': String(bytes.length),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

/** JSON as a body; undefined values are left out. */
export function json(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

/** The body of a refusal. */
export function problemAnswer(problem: Problem, headers: Readonly<Record<string, string>> = {}) {
  return { status: problem.status, type: 'application/problem+json', body: json(problem), headers };
}

/** The same as a page: what, why, and what to do. */
export function problemPage(problem: Problem, headers: Readonly<Record<string, string>> = {}) {
  const { title, detail, hint, status } = problem;
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>firstlight: ${escaped(title)}</title></head>
<body><h1>${escaped(title)}</h1><p>${escaped(detail)}.</p><p>${escaped(hint)}.</p></body></html>
`;
  return { status, type: 'text/html; charset=utf-8', body, headers };
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
