import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { Cluster, Node } from '../domain/cluster.ts';
import { quote } from '../domain/quote.ts';
import { UserError } from '../domain/user-error.ts';
import type { SocketFolder } from './socket-folder.ts';

/** One way to one host: a generated ssh_config of its own, the socket of its master, and the link it goes through. */
export type Link = {
  /** The node's name, or the jump host as it is written. */
  readonly name: string;
  /** What ssh gets as destination: the host part alone. */
  readonly destination: string;
  readonly config: string;
  readonly socket: string;
  /** Log of the master: what it says of connections that it was asked to forward. */
  readonly log: string;
  readonly via: Link | undefined;
  /** User and port where the cluster file or the destination names them. */
  readonly user: string | undefined;
  readonly port: number | undefined;
  /** The ssh_config files in which ssh looks for it, in their order. */
  readonly lookedIn: readonly Looked[];
};

/** One ssh_config, and the names of its hosts; undefined where the file is not there, or may not be read. */
export type Looked = { readonly file: string; readonly hosts: readonly string[] | undefined };

export type LinkOptions = { readonly connectTimeoutSeconds: number };

/** Writes the configs of all nodes and of their jump hosts; the same cluster gives the same files and sockets. */
export function makeLinks(
  cluster: Cluster,
  folder: SocketFolder,
  options: LinkOptions,
): ReadonlyMap<string, Link> {
  const links = new Map<string, Link>();
  const context: Context = {
    cluster,
    folder,
    options,
    includes: includesOf(cluster, folder),
    made: new Map(),
  };
  const linkOf = (node: Node, path: readonly string[]): Link => {
    const made = links.get(node.name);
    if (made !== undefined) return made;
    if (path.includes(node.name)) {
      throw new UserError(
        'bad-cluster-file',
        `the jumps go in a circle: ${[...path, node.name].join(' → ')}`,
        'Give one of these nodes no jump, or another.',
      );
    }
    const next = cluster.nodes.find((other) => other.name === node.jump);
    const via = next ? linkOf(next, [...path, node.name]) : jumpLinks(node.jump, context);
    const link = makeLink(context, {
      name: node.name,
      ...splitDestination(node.ssh),
      ...(node.user === undefined ? {} : { ownUser: node.user }),
      ...(node.port === undefined ? {} : { ownPort: node.port }),
      ...(node.key === undefined ? {} : { key: absolute(node.key, cluster.file) }),
      via,
    });
    links.set(node.name, link);
    return link;
  };
  for (const node of cluster.nodes) linkOf(node, []);
  return links;
}

/** `user@host`, `ssh://user@host:port`, `user@[::1]` → its parts. The user may hold an `@`. */
export function splitDestination(text: string): {
  readonly host: string;
  readonly user?: string;
  readonly port?: number;
} {
  const uri = text.startsWith('ssh://');
  const rest = uri ? text.slice('ssh://'.length).replace(/\/$/, '') : text;
  const at = rest.lastIndexOf('@');
  const user = at > 0 ? { user: rest.slice(0, at) } : {};
  const place = rest.slice(at + 1);
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(place);
  if (bracketed?.[1] !== undefined) {
    return { host: bracketed[1], ...user, ...(bracketed[2] ? { port: Number(bracketed[2]) } : {}) };
  }
  const withPort = /^([^:]+):(\d+)$/.exec(place);
  if (uri && withPort?.[1] !== undefined) return { host: withPort[1], ...user, port: Number(withPort[2]) };
  return { host: place, ...user };
}

type Context = {
  readonly cluster: Cluster;
  readonly folder: SocketFolder;
  readonly options: LinkOptions;
  readonly includes: ReturnType<typeof includesOf>;
  /** Links by their config, so that nodes behind one jump host share its connection. */
  readonly made: Map<string, Link>;
};

type LinkInput = {
  readonly name: string;
  readonly host: string;
  readonly user?: string;
  readonly port?: number;
  readonly ownUser?: string;
  readonly ownPort?: number;
  readonly key?: string;
  readonly via: Link | undefined;
};

/** A ProxyJump value that is no node: each hop gets a master of its own, so that logins do not crowd it. */
function jumpLinks(jump: string | undefined, context: Context): Link | undefined {
  if (jump === undefined || jump === 'none') return undefined;
  let via: Link | undefined;
  for (const hop of jump.split(',')) {
    const destination = splitDestination(hop.startsWith('ssh://') ? hop : `ssh://${hop}`);
    if (destination.host === '' || destination.host.startsWith('-')) {
      throw new UserError('bad-cluster-file', `"${hop}" is not a jump host`, 'Write it as user@host:port.');
    }
    via = makeLink(context, { name: hop, ...destination, via });
  }
  return via;
}

/** First value wins in ssh_config: what the cluster file sets, then what we need, then the user's and the system's. */
function makeLink({ folder, options, includes, made }: Context, input: LinkInput): Link {
  const user = input.user ?? input.ownUser;
  const port = input.port ?? input.ownPort;
  const lines = [
    `Host ${input.host}`,
    ...(user === undefined ? [] : [`  User ${user}`]),
    ...(port === undefined ? [] : [`  Port ${port}`]),
    ...(input.key === undefined
      ? []
      : [`  IdentityFile ${value(folder.plainPath(input.key))}`, '  IdentitiesOnly yes']),
    ...(input.via === undefined ? [] : [`  ProxyCommand ${proxyCommand(input.via)}`]),
    '  BatchMode yes',
    '  ControlMaster no',
    '  ControlPersist 600',
    '  ServerAliveInterval 5',
    '  ServerAliveCountMax 3',
    `  ConnectTimeout ${options.connectTimeoutSeconds}`,
    '  ConnectionAttempts 1',
    // A login with the default key exchange costs eight times the CPU (measured: 138 against 17 ms).
    '  KexAlgorithms ^curve25519-sha256,curve25519-sha256@libssh.org',
    '  ClearAllForwardings yes',
    '  ForwardAgent no',
    '  ForwardX11 no',
    '  PermitLocalCommand no',
    '  RemoteCommand none',
    '  RequestTTY no',
    '  EscapeChar none',
    '  VisualHostKey no',
    '  LogLevel INFO',
    'Host *',
    '  BatchMode yes',
    includes.text,
  ];
  const hash = createHash('sha256')
    .update(`${lines.join('\n')}\0${includes.contents}`)
    .digest('hex')
    .slice(0, 16);
  const path = join(folder.path, hash);
  const text = [lines[0], `  ControlPath ${value(path)}`, ...lines.slice(1), ''].join('\n');
  folder.write(`${hash}.conf`, text);
  const known = made.get(hash);
  if (known !== undefined && known.name === input.name) return known;
  const link: Link = {
    name: input.name,
    destination: input.host,
    config: `${path}.conf`,
    socket: path,
    log: `${path}.log`,
    via: input.via,
    user,
    port,
    lookedIn: includes.lookedIn,
  };
  made.set(hash, link);
  return link;
}

/** ssh runs this through the user's shell, and expands its own percent signs before. */
function proxyCommand(via: Link): string {
  const config = quote(via.config).replaceAll('%', '%%');
  return `ssh -F ${config} -W [%h]:%p -- ${via.destination}`;
}

/** A path as a value of ssh_config: in quotes, percent signs doubled. */
function value(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}

function includesOf(cluster: Cluster, folder: SocketFolder) {
  const files = [
    ...(cluster.sshConfig === undefined ? [] : [absolute(cluster.sshConfig, cluster.file)]),
    join(homedir(), '.ssh/config'),
    '/etc/ssh/ssh_config',
  ].map((file) => ({ file, text: contents(file) }));
  return {
    text: files.map(({ file }) => `Include "${folder.plainPath(file)}"`).join('\n'),
    contents: files.map(({ text }) => text ?? '').join('\0'),
    lookedIn: files.map(
      ({ file, text }): Looked => ({ file, hosts: text === undefined ? undefined : hostsOf(text) }),
    ),
  };
}

/** Names behind `Host`, patterns left out. */
function hostsOf(text: string): readonly string[] {
  const lines = [...text.matchAll(/^[ \t]*Host(?:[ \t]*=[ \t]*|[ \t]+)(.+)$/gim)];
  const names = lines.flatMap(([, words = '']) => words.replace(/ #.*$/, '').match(/"[^"]*"|[^\s"]+/g) ?? []);
  return names.map((name) => name.replaceAll('"', '')).filter((name) => !/[*?!]/.test(name));
}

function contents(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Missing or unreadable: ssh passes over it too.
    return undefined;
  }
}

function absolute(path: string, clusterFile: string): string {
  if (path === '~' || path.startsWith('~/')) return join(homedir(), path.slice(1));
  return isAbsolute(path) ? path : resolve(dirname(clusterFile), path);
}
