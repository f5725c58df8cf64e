import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Command, Unreachable } from '../domain/command.ts';
import type { Connection } from './connection.ts';
import { Frame, type FrameEnd } from './frame.ts';
import type { Secrets } from './host.ts';
import type { Keep } from './limit.ts';
import { render, type SudoMode } from './shell.ts';
import { endChild, missingProgram } from './ssh-child.ts';

export type SessionEnd =
  | { readonly kind: 'ended'; readonly end: FrameEnd; readonly milliseconds: number; readonly noise: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'broken'; readonly text: string }
  | { readonly kind: 'gone'; readonly failure: Unreachable };

/** Our own patience goes past the node's `timeout`, which also ends what runs there. */
const GRACE_MS = 4000;
/** A background process of the command may hold the channel open; its frame has ended all the same. */
const LINGER_MS = 300;

/**
 * One command over one session of an open connection. Its answer comes with its frame; the session itself, which `keep`
 * hears of, may last a little longer. A host that says nothing at first is asked whether it is still there: the session
 * would wait for minutes where an open connection leads to nobody any more. Rejects with the signal's reason, after the
 * child was told to end.
 */
export function runSession(
  connection: Connection,
  command: Command,
  options: {
    readonly sudo: SudoMode;
    readonly secrets: Secrets;
    readonly signal: AbortSignal;
    readonly keep: Keep;
    readonly stdout: (bytes: Buffer) => void;
    readonly stderr: (bytes: Buffer) => void;
  },
): Promise<SessionEnd> {
  const { signal, secrets } = options;
  const marker = `~firstlight-${randomBytes(12).toString('hex')}`;
  const { remote, stdin } = render(command, {
    marker,
    sudo: options.sudo,
    secret: (name) => {
      const value = secrets.value(name);
      if (value === undefined) throw new Error(`the secret ${name} has no value here`);
      return value;
    },
  });
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const started = performance.now();
    const [program = '', ...args] = [...connection.argv(), remote];
    const child = spawn(program, args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    options.keep(new Promise((gone) => child.once('exit', () => gone()).once('error', () => gone())));
    const out = new Frame(marker, options.stdout);
    const err = new Frame(marker, options.stderr);
    let settled = false;
    const heard = new AbortController();
    const quiet = setTimeout(() => {
      connection.quiet();
      connection.gone(AbortSignal.any([signal, heard.signal])).then(
        (failure) => {
          if (failure === undefined || settled || heard.signal.aborted) return;
          settle({ kind: 'gone', failure });
          endChild(child);
        },
        () => undefined, // it was heard meanwhile, or the session is over
      );
    }, connection.quietMs);
    const hear = (): void => {
      clearTimeout(quiet);
      heard.abort();
    };
    const settle = (end: SessionEnd): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      hear();
      signal.removeEventListener('abort', abort);
      resolve(end);
    };
    const abort = (): void => {
      settled = true;
      clearTimeout(timer);
      hear();
      endChild(child);
      reject(signal.reason);
    };
    const timer =
      command.timeoutSeconds === undefined
        ? undefined
        : setTimeout(
            () => {
              settle({ kind: 'timeout' });
              endChild(child);
            },
            command.timeoutSeconds * 1000 + GRACE_MS,
          );
    signal.addEventListener('abort', abort, { once: true });
    const look = (): void => {
      if (settled || out.end === undefined || err.end === undefined) return;
      const milliseconds = Math.round(performance.now() - started);
      settle({ kind: 'ended', end: out.end, milliseconds, noise: err.noise });
      setTimeout(() => endChild(child), LINGER_MS).unref();
    };
    child.stdout.once('data', hear);
    child.stdout.on('data', (chunk: Buffer) => {
      if (!settled) out.feed(chunk);
      look();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (!settled) err.feed(chunk);
      look();
    });
    child.stdin.on('error', () => undefined); // the session ended before it read all: its end says why
    child.stdin.end(stdin);
    child.on('error', (error) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      hear();
      signal.removeEventListener('abort', abort);
      reject(missingProgram('ssh', error));
    });
    child.on('close', () =>
      settle({ kind: 'broken', text: `${err.noise}\n${out.begun ? '' : out.noise}`.trim() }),
    );
  });
}
