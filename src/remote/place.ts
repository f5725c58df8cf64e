import { homedir } from 'node:os';
import { join } from 'node:path';
import { quotePlainly } from '../domain/quote.ts';
import type { Place as Told } from './classify.ts';
import type { Connection } from './connection.ts';
import { runLocal } from './ssh-child.ts';

/** Where a link leads in the end, as `ssh -G` works it out of all configs, and how a person would type it. */
export type Place = Told & {
  readonly user: string;
  readonly identityFiles: readonly string[];
  readonly knownHosts: readonly string[];
};

/** Asks ssh for its settings; without an answer what the cluster file says stands in. */
export async function placeOf(connection: Connection, signal: AbortSignal): Promise<Place> {
  const { link, via } = connection;
  const { stdout } = await runLocal(connection.argv(['-G']), { signal, timeoutMs: 10_000 });
  const all = (key: string): readonly string[] =>
    stdout
      .split('\n')
      .filter((line) => line.startsWith(`${key} `))
      .map((line) => line.slice(key.length + 1));
  const host = all('hostname')[0] ?? link.destination;
  const user = all('user')[0] ?? link.user ?? '';
  const port = Number(all('port')[0] ?? link.port ?? 22);
  const viaPlace = via === undefined ? undefined : await placeOf(via, signal);
  const jump = viaPlace === undefined ? '' : `${hop(viaPlace)}`;
  const target = quotePlainly(
    link.user === undefined ? link.destination : `${link.user}@${link.destination}`,
  );
  const portArgs = link.port === undefined || link.port === 22 ? '' : `-p ${link.port} `;
  return {
    node: link.name,
    address: `${host} port ${port}`,
    host,
    written: link.destination,
    lookedIn: link.lookedIn.map((one) => ({ ...one, file: withTilde(one.file) })),
    port,
    user,
    via: via?.link.name,
    sshArgs: `${jump === '' ? '' : `-J ${jump} `}${portArgs}${target}`,
    copyIdArgs: `${jump === '' ? '' : `-o ProxyJump=${jump} `}${portArgs}${target}`,
    identityFiles: all('identityfile').map(expand),
    knownHosts: (all('userknownhostsfile')[0] ?? '').split(' ').filter(Boolean).map(expand),
  };
}

function hop(place: Place): string {
  const user = place.user === '' ? '' : `${place.user}@`;
  const host = place.host.includes(':') ? `[${place.host}]` : place.host;
  return quotePlainly(`${user}${host}${place.port === 22 ? '' : `:${place.port}`}`);
}

function withTilde(path: string): string {
  const home = `${homedir()}/`;
  return path.startsWith(home) ? `~/${path.slice(home.length)}` : path;
}

function expand(path: string): string {
  const bare = path.replace(/^"(.*)"$/, '$1');
  return bare.startsWith('~/') ? join(homedir(), bare.slice(2)) : bare;
}
