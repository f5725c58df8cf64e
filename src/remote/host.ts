import type { Duplex } from 'node:stream';
import type { Node } from '../domain/cluster.ts';
import type { Command, Ran, Unreachable } from '../domain/command.ts';

export type RunOptions = { readonly signal: AbortSignal };

export type StreamOptions = {
  readonly signal: AbortSignal;
  /** Bytes of the remote stdout after the frame's begin marker. */
  readonly stdout: (chunk: Buffer) => void;
  readonly stderrLine: (line: string) => void;
};

/** One host behind one multiplexed SSH connection. Outcomes are values; only bugs and aborts throw. */
export interface Host {
  readonly node: Node;
  /** Opens the connection, or finds it open. Undefined when the host is reached. */
  connect(options: RunOptions): Promise<Unreachable | undefined>;
  /** Runs to the end; the whole output is kept (16 MiB at most, then cut from the front). */
  run(command: Command, options: RunOptions): Promise<Ran>;
  /** Runs and hands the output on as it comes; stdout and stderr of the result are empty. */
  stream(command: Command, options: StreamOptions): Promise<Ran>;
  /**
   * Takes no new commands over the connection that is open; what runs on it goes on. The next use logs in anew, with
   * the groups and the server's settings of then.
   */
  leave(options: RunOptions): Promise<void>;
  /** A TCP connection from that host to an address it can reach, through the open connection (`ssh -W`). */
  dial(address: string, port: number): Duplex;
}

export interface Hosts {
  readonly all: readonly Host[];
  /** Throws a plain Error for a name that the cluster does not have. */
  of(node: string): Host;
  /** Writes the fetched key of a node to the user's known_hosts; the fingerprint must be the one shown. */
  acceptHostKey(node: string, fingerprint: string, options: RunOptions): Promise<void>;
}

/** Where values of secrets come from. Nothing here is ever written, logged or put into argv. */
export interface Secrets {
  /** Value of a named secret (an API key, say), or undefined. */
  value(name: string): string | undefined;
  /** sudo's password for a node; asked once per run, with what it is for. Undefined where none is to be had. */
  sudoPassword(node: string, purpose?: string): Promise<string | undefined>;
  /** Another one than that, which the node did not take: asked anew a few times. Absent where nobody can be asked. */
  readonly otherSudoPassword?: (node: string, refused: string) => Promise<string | undefined>;
  /** All values known so far, for scrubbing. */
  readonly all: () => readonly string[];
}
