import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { isLoopback } from '../../domain/address.ts';
import { UserError } from '../../domain/user-error.ts';
import { inputs } from '../../operations/inputs.ts';
import type { Operation } from '../../operations/operation.ts';
import type { World } from '../../operations/world.ts';
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
  readonly worlds: (outer: World) => () => World;
  /** Answers /mcp for one server. */
  readonly mcp: (world: () => World, readOnly: boolean) => McpHandler;
  /** Folder of the built page. */
  readonly pageFolder: string;
  readonly openBrowser: (address: string) => void;
};

/** `firstlight serve`: the page, the API and /mcp on one port of this machine, until Ctrl-C. */
export function serveOperation(parts: ServeParts): Operation<typeof inputs.serve> {
  return {
    name: 'serve',
    summary: 'show everything on a page, and answer programs and agents',
    effect: 'changes',
    input: inputs.serve,
    async run(input, outer) {
      const tls = readTls(input.tlsCert, input.tlsKey);
      const keys = newKeys(input.readOnly);
      const world = parts.worlds(outer);
      const bug = (error: unknown): void => {
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        process.stderr.write(`this is our mistake: ${text}\n`);
      };
      const scrub = (text: string): string =>
        [...outer.secrets.all(), ...keys.all].reduce(
          (rest, secret) => (secret.length < 4 ? rest : rest.replaceAll(secret, '•••')),
          text,
        );
      const journal = () => outer.journal;
      const looks = newLooks(world);
      const requests = new Map<string, number>();
      const tails = newTails(journal, scrub);
      const desk: Desk = {
        world,
        readOnly: input.readOnly,
        states: newRunStates(journal),
        looks,
        engine: newEngineSamples(world, looks),
        tails,
        jobs: newJobs('in the dashboard', bug),
        meters: () => ({ streams: tails.listeners(), requests }),
        scrub,
        bug,
      };
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
          names: open
            ? [
                hostname().toLowerCase(),
                ...(input.listen === '0.0.0.0' || input.listen === '::' ? [] : [input.listen.toLowerCase()]),
              ]
            : [],
          page: files.at,
          mcp: parts.mcp(world, input.readOnly),
          counted: (status) => requests.set(String(status), (requests.get(String(status)) ?? 0) + 1),
        }),
      );
      const base = baseOf(input.listen, server.port, tls !== undefined);
      const write = keys.token('write');
      const read = `${base}/?token=${keys.token('read')}`;
      const first = write === undefined ? read : `${base}/?token=${write}`;
      const said = [
        ...(open
          ? [
              `! ${input.listen} can be reached from the network${tls ? '' : ', and what is sent can be read on the way: give --tls-cert and --tls-key'}.`,
              '  Whoever has an address below can do what it says.',
            ]
          : []),
        ...(write === undefined ? [] : [`open      ${first}`]),
        `show only ${read}`,
        `agents    ${base}/mcp  with  Authorization: Bearer ${keys.token('agent')}`,
        'These addresses are told once and hold until Ctrl-C.',
      ];
      process.stdout.write(`${said.join('\n')}\n`);
      if (input.open && !open && process.stdout.isTTY) parts.openBrowser(first);
      await aborted(outer.signal);
      await desk.jobs.over();
      await server.close();
      return {
        report: { kind: 'said', text: 'No longer serving. What runs on the hosts runs on.' },
        exit: 0,
      };
    },
  };
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
  return { cert: read(cert), key: read(key) };
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
