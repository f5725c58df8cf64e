import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createSecureContext } from 'node:tls';
import type { z } from 'zod';
import { isLoopback } from '../../domain/address.ts';
import { UserError } from '../../domain/user-error.ts';
import type { inputs } from '../../operations/inputs.ts';
import type { Answer, Operation } from '../../operations/operation.ts';
import { scrubber } from '../../operations/scrub.ts';
import type { World } from '../../operations/world.ts';
import type { Addresses } from './announce.ts';
import type { Desk } from './desk.ts';
import { newEngineSamples } from './engine-samples.ts';
import { newJobs } from './jobs.ts';
import { newKeys } from './keys.ts';
import { newLooks } from './looks.ts';
import { readPageFiles } from './page-files.ts';
import { allRoutes } from './routes.ts';
import { newRunStates } from './run-states.ts';
import { type McpHandler, type Running, startServer } from './server.ts';
import { newTails } from './tails.ts';

export type ServeParts = {
  readonly operations: readonly Operation[];
  /** The World of the cluster file as it is now, made anew when the file has changed. */
  readonly world: () => World;
  /** Answers /mcp. */
  readonly mcp: McpHandler;
  /** Folder of the built page. */
  readonly pageFolder: string;
  /** Told once, when it answers. */
  readonly told: (addresses: Addresses) => void;
};

/** Serves until the World's signal aborts; then ends the runs that were begun here as Ctrl-C would. */
export async function serveOn(
  input: z.output<typeof inputs.serve>,
  outer: World,
  parts: ServeParts,
): Promise<Answer> {
  const tls = readTls(input.tlsCert, input.tlsKey);
  const keys = newKeys(input.readOnly);
  const scrub = scrubber(outer, keys.all);
  const requests = new Map<string, number>();
  const desk = newDesk(outer, parts.world, { readOnly: input.readOnly, scrub, requests });
  const files = readPageFiles(parts.pageFolder);
  const open = !isLoopback(input.listen);
  const server = await start(input.listen, input.port, () =>
    startServer({
      desk,
      keys,
      routes: allRoutes(parts.operations, outer.version),
      listen: input.listen,
      port: input.port,
      tls,
      names: open ? namesOf(input.listen) : [],
      page: files.at,
      mcp: parts.mcp,
      counted: (status) => requests.set(String(status), (requests.get(String(status)) ?? 0) + 1),
    }),
  );
  const base = baseOf(input.listen, server.port, tls !== undefined);
  parts.told({
    base,
    write: keys.token('write'),
    read: keys.token('read') ?? '',
    agent: keys.token('agent') ?? '',
    listen: input.listen,
    open,
    tls: tls !== undefined,
    browse: input.open && !open && process.stdout.isTTY === true,
  });
  // The page that opens next shows this run; whoever asks for it is told why it cannot be read.
  const newest = async (): Promise<unknown> => {
    const run = outer.journal.latest();
    return run === undefined ? undefined : await desk.states.of(run);
  };
  void newest().catch(() => undefined);
  await aborted(outer.signal);
  await desk.jobs.over();
  await server.close();
  return { report: { kind: 'said', text: 'No longer serving. What runs on the hosts runs on.' }, exit: 0 };
}

function newDesk(
  outer: World,
  world: () => World,
  {
    readOnly,
    scrub,
    requests,
  }: Pick<Desk, 'readOnly' | 'scrub'> & { readonly requests: ReadonlyMap<string, number> },
): Desk {
  const journal = () => outer.journal;
  const looks = newLooks(world);
  const tails = newTails(journal, scrub);
  const bug = (error: unknown): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`this is our mistake: ${text}\n`);
  };
  return {
    world,
    readOnly,
    states: newRunStates(journal),
    looks,
    engine: newEngineSamples(world, looks),
    tails,
    jobs: newJobs(bug),
    meters: () => ({ streams: tails.listeners(), requests }),
    scrub,
    bug,
  };
}

/** What may stand in Host beside addresses, where the server is open to the network. */
function namesOf(listen: string): readonly string[] {
  const any = listen === '0.0.0.0' || listen === '::';
  return [hostname().toLowerCase(), ...(any ? [] : [listen.toLowerCase()])];
}

async function start(listen: string, port: number, begin: () => Promise<Running>): Promise<Running> {
  try {
    return await begin();
  } catch (error) {
    // The port is taken, or the address is none of this machine's.
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'EADDRINUSE')
      throw new UserError(
        'bad-input',
        `port ${port} on ${listen} is in use`,
        'name another: firstlight serve --port 7071',
        error,
      );
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EACCES' || code === 'EINVAL')
      throw new UserError(
        'bad-input',
        `cannot listen on ${listen} port ${port} (${code})`,
        'firstlight serve --listen takes an address of this machine',
        error,
      );
    throw error;
  }
}

function readTls(cert: string | undefined, key: string | undefined) {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new UserError('bad-input', '--tls-cert and --tls-key go together', 'give both, or none');
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
      throw new UserError('bad-input', `${path} cannot be read (${code})`, 'name a file in PEM form', error);
    }
  };
  const pair = { cert: read(cert), key: read(key) };
  try {
    createSecureContext(pair);
  } catch (error) {
    // No PEM, a key with a passphrase, or the key of another certificate.
    const said = error instanceof Error ? error.message : String(error);
    throw new UserError(
      'bad-input',
      `${cert} and ${key}: that is no certificate with its key (${said})`,
      'both in PEM form, the key without a passphrase',
      error,
    );
  }
  return pair;
}

function baseOf(listen: string, port: number, tls: boolean): string {
  const host = listen === '0.0.0.0' || listen === '::' ? hostname() : listen;
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
