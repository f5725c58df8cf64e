import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { PageFile } from './server.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
};

/** Addresses that the page itself makes something of. */
const VIEWS = /^\/(?:|runs|run\/[\w.-]+)$/;

export type PageFiles = {
  /** The file at that path, in the best form that the client takes. */
  at(path: string, accepts: string): PageFile | undefined;
};

/**
 * The built page in that folder, read and compressed once. What has a hash in its name never changes and is kept by
 * browsers for ever; the rest is asked for each time. Without a build there is one page that says so.
 */
export function readPageFiles(folder: string): PageFiles {
  const files = new Map(
    list(folder).map((name) => [`/${name.split(sep).join('/')}`, fileOf(join(folder, name), name)]),
  );
  const index = files.get('/index.html') ?? placeholder();
  return {
    at(path, accepts) {
      const forms = VIEWS.test(path) ? index : files.get(path);
      if (forms === undefined) return undefined;
      if (/\bbr\b/.test(accepts) && forms.br) return forms.br;
      return /\bgzip\b/.test(accepts) && forms.gzip ? forms.gzip : forms.plain;
    },
  };
}

type Forms = { readonly plain: PageFile; readonly br?: PageFile; readonly gzip?: PageFile };

function fileOf(path: string, name: string): Forms {
  return formsOf(readFileSync(path), TYPES[extname(name)] ?? 'application/octet-stream', HASHED.test(name));
}

/** As bundlers name what they make: index-B1x2c3D4.js. */
const HASHED = /-[\w-]{8,}\.\w+$/;

function formsOf(body: Buffer, type: string, hashed: boolean): Forms {
  const headers = {
    'Cache-Control': hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    Vary: 'Accept-Encoding',
  };
  const plain = { type, body, headers: { ...headers, 'Content-Encoding': 'identity' } };
  if (body.length < 1000 || type === 'image/png') return { plain };
  const encoded = (encoding: string, bytes: Buffer): PageFile => ({
    type,
    body: bytes,
    headers: { ...headers, 'Content-Encoding': encoding },
  });
  return { plain, br: encoded('br', brotliCompressSync(body)), gzip: encoded('gzip', gzipSync(body)) };
}

function placeholder(): Forms {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>firstlight</title></head>
<body><h1>firstlight serves</h1><p>This build has no page. The API is described at <a href="/api/openapi.json">/api/openapi.json</a>; the same is in a terminal: firstlight status</p></body></html>
`;
  return formsOf(Buffer.from(html), TYPES['.html'] ?? '', false);
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(folder, name)).isFile(),
    );
  } catch (error) {
    // A build without the page.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
