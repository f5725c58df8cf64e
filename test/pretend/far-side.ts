import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster, Node } from '../../src/domain/cluster.ts';
import { type DialError, type SshHost, serveSsh } from '../../src/lab/ssh-host.ts';
import type { Secrets } from '../../src/remote/host.ts';

/** One host behind the ssh2 server, with a root folder, a home and a bin folder of its own. */
export type FarHost = {
  readonly name: string;
  readonly folder: string;
  readonly home: string;
  readonly bin: string;
  readonly ssh: SshHost;
  readonly hostKey: string;
};

type FarHostOptions = {
  readonly shell?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly keys?: readonly string[];
  readonly hostKey?: string;
  readonly port?: number;
  readonly dial?: (address: string, port: number) => Promise<Socket | { readonly error: DialError }>;
};

/** Temp folder, client keys and servers of one test file; `close` ends them all. */
export type FarSide = {
  readonly folder: string;
  /** A key pair: path of the private half. */
  key(name: string, passphrase?: string): string;
  publicKey(path: string): string;
  host(name: string, options?: FarHostOptions): Promise<FarHost>;
  close(): Promise<void>;
};

export const USER = 'aurora';
const KEYGEN = 'ssh-keygen';

export function farSide(): FarSide {
  const folder = mkdtempSync(join(tmpdir(), 'fl-'));
  const hosts: FarHost[] = [];
  const key = (name: string, passphrase = ''): string => {
    const path = join(folder, name);
    execFileSync(KEYGEN, ['-q', '-t', 'ed25519', '-N', passphrase, '-C', name, '-f', path]);
    return path;
  };
  const publicKey = (path: string): string => readFileSync(`${path}.pub`, 'utf8').trim();
  return {
    folder,
    key,
    publicKey,
    async host(name, options = {}) {
      const root = join(folder, name);
      const home = join(root, 'home');
      const bin = join(root, 'bin');
      for (const path of [home, bin, join(root, 'tmp'), join(root, 'etc'), join(root, 'proc')]) {
        mkdirSync(path, { recursive: true });
      }
      writeFileSync(join(root, 'etc/machine-id'), `machine-${name}\n`);
      writeFileSync(join(root, 'proc/meminfo'), 'MemTotal: 1000 kB\nMemAvailable:  900 kB\n');
      const hostKey = options.hostKey ?? key(`${name}-host-key`);
      const ssh = await serveSsh({
        hostKey: readFileSync(hostKey, 'utf8'),
        users: { [USER]: { authorizedKeys: options.keys ?? [] } },
        ...(options.port === undefined ? {} : { port: options.port }),
        exec: {
          shell: options.shell ?? '/bin/sh',
          cwd: home,
          env: {
            HOME: home,
            USER,
            LOGNAME: USER,
            PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
            FIRSTLIGHT_ROOT: root,
            ...options.env,
          },
        },
        dial: options.dial ?? dialHere,
      });
      const host = { name, folder: root, home, bin, ssh, hostKey };
      hosts.push(host);
      return host;
    },
    async close() {
      await Promise.all(hosts.map((host) => host.ssh.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A plain connection on this machine, errors told as the kernel would. */
function dialHere(address: string, port: number): Promise<Socket | { readonly error: DialError }> {
  return new Promise((resolve) => {
    const socket = connect(port, address);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve({ error: 'ECONNREFUSED' }));
  });
}

export type Done = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** Runs a program of this machine to its end; stdin is given or empty. */
export function done(argv: readonly string[], stdin = ''): Promise<Done> {
  const [program = '', ...args] = argv;
  return new Promise((resolve) => {
    const child = execFile(program, args, { maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
        stdout,
        stderr,
      });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(stdin);
  });
}

/** Waits for something that another process brings about; the test's own timeout ends it. */
export async function until(claim: () => boolean): Promise<void> {
  while (!claim()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A cluster of far hosts; known_hosts of its own, so that the user's stays as it is. */
export function clusterOf(
  far: FarSide,
  key: string,
  nodes: readonly (Omit<Node, 'ssh'> & { readonly host?: FarHost; readonly ssh?: string })[],
  options: { readonly known?: readonly FarHost[]; readonly more?: string } = {},
): Cluster {
  const sshConfig = join(far.folder, `ssh_config-${nodes.map((node) => node.name).join('-')}`);
  const knownHosts = `${sshConfig}-known`;
  const known = options.known ?? nodes.flatMap((node) => node.host ?? []);
  writeFileSync(
    knownHosts,
    known
      .map(
        (host) =>
          `[127.0.0.1]:${host.ssh.port} ${far.publicKey(host.hostKey).split(' ').slice(0, 2).join(' ')}\n`,
      )
      .join(''),
  );
  writeFileSync(sshConfig, `${options.more ?? ''}\nHost *\nUserKnownHostsFile "${knownHosts}"\n`);
  return {
    name: 'test',
    file: join(far.folder, 'cluster.yaml'),
    sshConfig,
    nodes: nodes.map(({ host, ...node }) => ({
      ssh: '127.0.0.1',
      user: USER,
      key,
      ...(host === undefined ? {} : { port: host.ssh.port }),
      ...node,
    })),
  };
}

/** Secrets as a test gives them. */
export function secretsOf(
  values: Readonly<Record<string, string>> = {},
  password?: string,
): Secrets & { asked: number } {
  return {
    asked: 0,
    value: (name) => values[name],
    async sudoPassword() {
      this.asked += 1;
      return password;
    },
    all: () => Object.values(values),
  };
}

/** Ends the masters that a test left, through their own sockets. */
export async function endMasters(folder: string): Promise<void> {
  for (const name of readdirSync(folder).filter((file) => /^[0-9a-f]{16}$/.test(file))) {
    await done(['ssh', '-o', `ControlPath=${join(folder, name)}`, '-O', 'exit', 'x']);
  }
}

export const never = new AbortController().signal;
