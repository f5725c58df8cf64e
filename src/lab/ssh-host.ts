import { spawn } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { basename } from 'node:path';
import type { Connection, ParsedKey, ServerChannel, Session } from 'ssh2';
import ssh2 from 'ssh2';

/** Why a connection from a host to an address failed, as the kernel or sshd would have it. */
export type DialError = 'ECONNREFUSED' | 'ETIMEDOUT' | 'EHOSTUNREACH' | 'prohibited';

export type SshHostOptions = {
  /** Private host key as text (OpenSSH or PEM). */
  readonly hostKey: string;
  /** Who may log in; each line as in an authorized_keys file, less options. */
  readonly users: Readonly<Record<string, { readonly authorizedKeys: readonly string[] }>>;
  /** 0 or left out: any free port. */
  readonly port?: number;
  /** What commands run in: nothing of our own environment besides `env` gets in. */
  readonly exec: {
    readonly shell: string;
    readonly env: Readonly<Record<string, string>>;
    readonly cwd: string;
    readonly uid?: number;
  };
  /** Opens what `-W` and ProxyJump ask for, through the host's own network. */
  dial(address: string, port: number): Promise<Socket | { readonly error: DialError }>;
};

/** How the server misbehaves from now on. `wedged`: TCP answers, and no banner is ever shown. */
export type SshFault = 'none' | 'resets-connections' | 'wedged' | 'forbids-forwarding';

/** A running server; `close` ends listening and connections, and leaves what runs on the host alone, as sshd does. */
export interface SshHost {
  readonly port: number;
  /** Connections that are logged in now. */
  readonly connections: number;
  close(): Promise<void>;
  /** The link breaks: every connection ends at once, without goodbye. */
  dropConnections(): void;
  fail(fault: SshFault): void;
}

/** sshd's MaxSessions default: sessions on one connection; forwardings do not count. */
const MAX_SESSIONS = 10;

/** An SSH server on 127.0.0.1 for OpenSSH clients: public keys, commands through the login shell, `-W`. */
export async function serveSsh(options: SshHostOptions): Promise<SshHost> {
  const keys = new Map(
    Object.entries(options.users).map(([user, { authorizedKeys }]) => [user, authorizedKeys.map(parseKey)]),
  );
  let fault: SshFault = 'none';
  let loggedIn = 0;
  const sockets = new Set<Socket>();
  /** Who came while it was wedged: nobody reads them until it is not. */
  const waiting = new Set<Socket>();
  const server = new ssh2.Server({ hostKeys: [options.hostKey], ident: 'firstlight-lab' }, (connection) => {
    authenticate(connection, keys);
    // Each session listens for its end: more than Node's warning expects.
    connection.setMaxListeners(0);
    connection.on('ready', () => {
      loggedIn += 1;
      connection.on('close', () => {
        loggedIn -= 1;
      });
      serve(connection, options, () => fault);
    });
    // A client that goes away without goodbye is not an event for a server.
    connection.on('error', () => undefined);
  });
  const listener = createServer((socket) => {
    socket.on('error', () => undefined);
    if (fault === 'resets-connections') {
      socket.resetAndDestroy();
      return;
    }
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.setNoDelay(true);
    if (fault === 'wedged') waiting.add(socket);
    else server.injectSocket(socket);
  });
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  const dropConnections = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: address.port,
    get connections() {
      return loggedIn;
    },
    dropConnections,
    fail: (next) => {
      fault = next;
      if (fault === 'wedged') return;
      for (const socket of waiting) if (!socket.destroyed) server.injectSocket(socket);
      waiting.clear();
    },
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve());
        dropConnections();
      }),
  };
}

function parseKey(line: string): ParsedKey {
  const key = ssh2.utils.parseKey(line);
  if (key instanceof Error) throw new Error('not a public key', { cause: key });
  return key;
}

function authenticate(connection: Connection, keys: ReadonlyMap<string, readonly ParsedKey[]>): void {
  connection.on('authentication', (context) => {
    if (context.method !== 'publickey') return context.reject(['publickey']);
    const offered = context.key.data;
    const key = keys.get(context.username)?.find((known) => known.getPublicSSH().equals(offered));
    if (key === undefined) return context.reject(['publickey']);
    const { blob, signature, hashAlgo } = context;
    // Without a signature the client only asks whether the key would do.
    if (signature === undefined || blob === undefined) return context.accept();
    return key.verify(blob, signature, hashAlgo) ? context.accept() : context.reject(['publickey']);
  });
}

function serve(connection: Connection, options: SshHostOptions, fault: () => SshFault): void {
  let sessions = 0;
  connection.on('session', (accept, reject) => {
    if (sessions >= MAX_SESSIONS) return refuse(connection, reject, CONNECT_FAILED, 'open failed');
    sessions += 1;
    const session = accept();
    let over = false;
    const end = (): void => {
      if (!over) sessions -= 1;
      over = true;
    };
    connection.on('close', end);
    serveSession(session, options.exec, end);
  });
  connection.on('tcpip', (accept, reject, { destIP, destPort }) => {
    if (fault() === 'forbids-forwarding') {
      return refuse(connection, reject, PROHIBITED, 'open failed');
    }
    options.dial(destIP, destPort).then(
      (dialled) => {
        if ('error' in dialled) {
          if (dialled.error === 'prohibited') refuse(connection, reject, PROHIBITED, 'open failed');
          else refuse(connection, reject, CONNECT_FAILED, DIAL_TEXT[dialled.error]);
          return;
        }
        const channel = accept();
        dialled.setNoDelay(true);
        dialled.on('error', () => channel.close());
        channel.on('error', () => dialled.destroy());
        dialled.on('close', () => channel.end());
        channel.on('close', () => dialled.destroy());
        dialled.pipe(channel).pipe(dialled);
      },
      () => refuse(connection, reject, CONNECT_FAILED, 'open failed'),
    );
  });
}

function serveSession(session: Session, exec: SshHostOptions['exec'], end: () => void): void {
  const env = { ...exec.env };
  let kill: ((signal: string) => void) | undefined;
  const start = (channel: ServerChannel, argv: readonly string[], argv0: string): void => {
    kill = runOn(channel, argv, argv0, { ...exec, env }, end);
  };
  session.on('exec', (accept, _reject, { command }) =>
    start(accept(), ['-c', command], basename(exec.shell)),
  );
  session.on('shell', (accept) => start(accept(), [], `-${basename(exec.shell)}`));
  session.on('env', (_accept, reject) => reject?.());
  session.on('pty', (_accept, reject) => reject?.());
  session.on('signal', (accept, _reject, { name }) => {
    kill?.(name);
    accept?.();
  });
}

/** Runs the login shell in a session of its own; the channel's end closes its pipes, and sends no signal, as sshd does. */
function runOn(
  channel: ServerChannel,
  argv: readonly string[],
  argv0: string,
  exec: SshHostOptions['exec'],
  end: () => void,
): (signal: string) => void {
  const child = spawn(exec.shell, [...argv], {
    argv0,
    cwd: exec.cwd,
    env: exec.env,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(exec.uid === undefined ? {} : { uid: exec.uid }),
  });
  const { stdin, stdout, stderr } = child;
  for (const stream of [stdin, stdout, stderr, channel, channel.stderr]) {
    // EPIPE and resets: one side went away, and its end is handled below.
    stream.on('error', () => undefined);
  }
  channel.pipe(stdin);
  stdout.pipe(channel, { end: false });
  stderr.pipe(channel.stderr);
  child.on('error', () => {
    channel.exit(127);
    channel.end();
  });
  child.on('exit', (code, signal) => {
    if (signal === null) channel.exit(code ?? 0);
    else channel.exit(signal.slice(3), false, '');
    drained();
  });
  // Whoever holds the pipes, a background process say, keeps the channel open.
  let open = 3;
  const drained = (): void => {
    open -= 1;
    if (open === 0) channel.end();
  };
  stdout.on('end', drained);
  channel.stderr.on('finish', drained);
  channel.on('close', () => {
    end();
    stdin.destroy();
    stdout.destroy();
    stderr.destroy();
  });
  return (signal) => {
    if (child.pid !== undefined && child.exitCode === null && /^[A-Z0-9]+$/.test(signal)) {
      process.kill(-child.pid, `SIG${signal}`);
    }
  };
}

const PROHIBITED = 1;
const CONNECT_FAILED = 2;
const DIAL_TEXT = {
  ECONNREFUSED: 'Connection refused',
  ETIMEDOUT: 'Connection timed out',
  EHOSTUNREACH: 'No route to host',
} as const;

type OpenFail = (recipient: number, reason: number, text: string) => void;

function hasOpenFail(value: unknown): value is { channelOpenFail: OpenFail } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'channelOpenFail' in value &&
    typeof value.channelOpenFail === 'function'
  );
}

/** ssh2's reject() carries neither sshd's reason nor its text, which clients print: both are put in on the way out. */
function refuse(connection: Connection, reject: () => void, reason: number, text: string): void {
  const protocol: unknown = '_protocol' in connection ? connection._protocol : undefined;
  if (!hasOpenFail(protocol)) {
    reject();
    return;
  }
  const send = protocol.channelOpenFail;
  protocol.channelOpenFail = (recipient) => send.call(protocol, recipient, reason, text);
  try {
    reject();
  } finally {
    protocol.channelOpenFail = send;
  }
}
