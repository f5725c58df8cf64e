import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventBody } from '../../../src/domain/event.ts';
import type { Addresses } from '../../../src/faces/http/announce.ts';
import { serveOn } from '../../../src/faces/http/serve.ts';
import { newWork } from '../../../src/faces/mcp/client.ts';
import { mcpOverHttp } from '../../../src/faces/mcp/http.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { openJournal } from '../../../src/journal/sqlite-journal.ts';
import { operations } from '../../../src/operations/index.ts';
import { inputs } from '../../../src/operations/inputs.ts';
import { makeWorld } from '../../../src/world.ts';

/** The server in this process, on a cluster of one node that nobody answers for; and a journal of "another process". */
export type Rig = {
  readonly folder: string;
  readonly addresses: Addresses;
  readonly port: number;
  /** A handle of its own on the same journal, as a run in another process has. */
  readonly journal: Journal;
  get(path: string, headers?: Headers): Promise<Answer>;
  post(path: string, body: unknown, headers?: Headers): Promise<Answer>;
  /** Any request, byte for byte as given. */
  ask(options: Ask): Promise<Answer>;
  close(): Promise<void>;
};

type Headers = Readonly<Record<string, string>>;
type Ask = {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Headers;
  readonly body?: string | Buffer;
  /** Sends no Host of its own. */
  readonly bare?: boolean;
};
export type Answer = {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  json(): unknown;
};

export async function openRig(
  options: {
    readonly readOnly?: boolean;
    readonly listen?: string;
    readonly env?: Headers;
    readonly page?: string;
    readonly port?: number;
    readonly tlsCert?: string;
    readonly tlsKey?: string;
  } = {},
): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), 'fl-http-'));
  // Port 1 of this machine: refused at once, as a host that is down.
  writeFileSync(
    join(folder, 'cluster.yaml'),
    'cluster: sparks\nnodes:\n  - {name: spark-a, ssh: 127.0.0.1, port: 1, user: nobody}\n',
  );
  writeFileSync(
    join(folder, 'recipe.yaml'),
    `recipe: tiny
model: Tiny/Tiny
path: /models/tiny
engines: [vllm]
layout: {nodes: 1, tensor: 1}
run: {in: docker, image: {vllm: "vllm/vllm-openai:v1"}}
`,
  );
  chmodSync(folder, 0o700);
  const stop = new AbortController();
  const world = makeWorld({
    cluster: join(folder, 'cluster.yaml'),
    home: join(folder, 'home'),
    sudoPasswordFiles: [],
    live: () => {},
    onEvent: () => {},
    signal: stop.signal,
    env: options.env ?? {},
  });
  let told: (addresses: Addresses) => void = () => {};
  const answering = new Promise<Addresses>((resolve) => {
    told = resolve;
  });
  const input = inputs.serve.parse({
    port: options.port ?? 0,
    tlsCert: options.tlsCert,
    tlsKey: options.tlsKey,
    open: false,
    readOnly: options.readOnly ?? false,
    listen: options.listen ?? '127.0.0.1',
  });
  const over = serveOn(input, world, {
    operations,
    world: () => world,
    mcp: mcpOverHttp({ world: () => world, readOnly: input.readOnly, version: '0', work: newWork() }),
    pageFolder: options.page ?? join(folder, 'no-page'),
    told: (addresses) => told(addresses),
  });
  const ended = over.then(() => Promise.reject(new Error('it ended')));
  const addresses = await Promise.race([answering, ended]).catch((error: unknown) => {
    world.close();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  const port = Number(new URL(addresses.base).port);
  const journal = openJournal(join(folder, 'home'));
  const bearer = { Authorization: `Bearer ${addresses.write ?? addresses.read}` };
  const ask = (wanted: Ask): Promise<Answer> => askAt(port, wanted);
  return {
    folder,
    addresses,
    port,
    journal,
    ask,
    get: (path, headers = bearer) => ask({ path, headers }),
    post: (path, body, headers = bearer) =>
      ask({
        method: 'POST',
        path,
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    async close() {
      stop.abort(new Error('the test is over'));
      await over;
      journal.close();
      world.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function askAt(
  port: number,
  { method = 'GET', path, headers = {}, body, bare = false }: Ask,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: '127.0.0.1', port, method, path, headers, setHost: !bare, agent: false },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: () => JSON.parse(text),
          });
        });
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** The first event of a run, as another process would write it. */
export const started: EventBody = {
  type: 'run-started',
  operation: 'up',
  cluster: 'sparks',
  recipe: 'tiny',
  recipeDigest: undefined,
  nodes: ['spark-a'],
  controller: { host: 'laptop', user: 'aurora', pid: 4242 },
  version: '0.1.0',
};

/** A run that waits for a person's answer to one step. */
export function askedRun(journal: Journal): string {
  const run = journal.newRun();
  journal.append(run, started);
  journal.append(run, {
    type: 'consent-asked',
    plan: 'abcd',
    steps: [
      {
        id: '7f3a',
        node: 'spark-a',
        title: 'Stop container comfyui',
        target: {
          identity: 'c0ffee',
          name: 'comfyui',
          what: 'container of user lab',
          kind: 'container',
          user: 'lab',
          image: 'comfy/ui:1',
          pid: 4711,
          bytes: 2 ** 30,
          listens: [],
        },
        undo: { kind: 'irreversible', why: 'it was started with --rm' },
        how: 'docker stop',
      },
    ],
  });
  return run;
}
