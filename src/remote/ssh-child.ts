import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { UserError } from '../domain/user-error.ts';

export type Ended = {
  /** Exit code; undefined when a signal ended it, ours included. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
};

/**
 * Runs a local program (ssh, ssh-keygen, ssh-add) to its end, in a session of its own like all our ssh children:
 * Ctrl-C on the terminal is for us, who let a step come to its end, and not for connections. Resolves on exit, not
 * on the end of its pipes: a master that goes to the background keeps them. Rejects with the signal's reason; a
 * program that cannot be started is a UserError.
 */
export function runLocal(
  argv: readonly string[],
  options: {
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    readonly stdin?: string;
    /** stderr goes to this file instead, for children that outlive the call. */
    readonly stderrFile?: string;
  },
): Promise<Ended> {
  const { signal, timeoutMs, stdin, stderrFile } = options;
  const [program = '', ...args] = argv;
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const file = stderrFile === undefined ? undefined : openSync(stderrFile, 'w', 0o600);
    const child = spawn(program, args, {
      detached: true,
      stdio: [
        stdin === undefined ? 'ignore' : 'pipe',
        file === undefined ? 'pipe' : 'ignore',
        file ?? 'pipe',
      ],
    });
    if (file !== undefined) closeSync(file);
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => err.push(chunk));
    child.stdin?.on('error', () => undefined); // it ended without reading all of it: its exit says why
    child.stdin?.end(stdin);
    let timedOut = false;
    const stop = (): void => endChild(child);
    const timer = setTimeout(() => {
      timedOut = true;
      stop();
    }, timeoutMs);
    signal.addEventListener('abort', stop, { once: true });
    const finish = (code: number | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      if (signal.aborted) reject(signal.reason);
      else
        resolve({
          code: code ?? undefined,
          stdout: Buffer.concat(out).toString(),
          stderr: Buffer.concat(err).toString(),
          timedOut,
        });
    };
    child.on('error', (error) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      reject(missingProgram(program, error));
    });
    child.on(file === undefined ? 'close' : 'exit', finish);
  });
}

/** What it means that ssh, or a tool beside it, cannot be started here. */
export function missingProgram(program: string, error: Error): UserError {
  return new UserError(
    'ssh-missing',
    `${program} cannot be run on this machine (${error.message})`,
    'Install an OpenSSH client and have it on PATH: sudo apt-get install openssh-client',
    error,
  );
}

/** Ends a child of ours: asked first, and made to a second later. */
export function endChild(child: ChildProcess): void {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 1000);
  timer.unref();
  child.once('exit', () => {
    clearTimeout(timer);
    // A master has them too, and keeps them open for as long as it waits for a host that is gone.
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
  });
}
