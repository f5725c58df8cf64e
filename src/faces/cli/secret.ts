import { StringDecoder } from 'node:string_decoder';
import { clean } from './clean.ts';

/** The part of a terminal's input that a password prompt needs; `process.stdin` is one. */
export type SecretInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean;
  readonly isRaw?: boolean;
  setRawMode?(raw: boolean): unknown;
};

/** What it is for, where that is known; and whether the one before was not taken. */
export type PasswordWhy = { readonly purpose: string | undefined; readonly again: boolean };

/**
 * Asks for a node's sudo password without showing it. Undefined when nothing was typed, at the end of input, or
 * where the input is no terminal. Ctrl-C puts the terminal back first and then calls `interrupt`.
 */
export async function askPassword(
  node: string,
  why: PasswordWhy,
  io: {
    readonly input: SecretInput;
    readonly write: (text: string) => void;
    readonly interrupt: () => void;
    readonly signal: AbortSignal;
  },
): Promise<string | undefined> {
  const { input } = io;
  if (input.isTTY !== true || input.setRawMode === undefined || io.signal.aborted) return undefined;
  if (why.again) io.write(`sudo on ${node} did not take that password.\n`);
  if (why.purpose !== undefined) io.write(`It is for: ${clean(why.purpose)}\n`);
  io.write(`sudo's password on ${node} (kept in memory only, empty means none): `);
  const wasRaw = input.isRaw === true;
  input.setRawMode(true);
  let interrupted = false;
  try {
    const typed = await keys(input, io.signal, () => {
      interrupted = true;
    });
    return typed === undefined || typed === '' ? undefined : typed;
  } finally {
    input.setRawMode(wasRaw);
    input.pause();
    io.write('\n');
    if (interrupted) io.interrupt();
  }
}

function keys(input: SecretInput, signal: AbortSignal, interrupt: () => void): Promise<string | undefined> {
  return new Promise((resolve) => {
    const decoder = new StringDecoder('utf8');
    let typed: string[] = [];
    const end = (value: string | undefined): void => {
      input.removeListener('data', data);
      input.removeListener('end', closed);
      signal.removeEventListener('abort', closed);
      resolve(value);
    };
    const closed = (): void => end(undefined);
    const data = (chunk: Buffer | string): void => {
      for (const key of typeof chunk === 'string' ? chunk : decoder.write(chunk)) {
        if (key === '\r' || key === '\n' || key === '\x03' || key === '\x04') {
          if (key === '\x03') interrupt();
          end(key === '\x03' ? undefined : typed.join(''));
          return;
        }
        if (key === '\x7f' || key === '\b') typed.pop();
        else if (key === '\x15') typed = [];
        else if (key >= ' ') typed.push(key);
      }
    };
    input.on('data', data);
    input.once('end', closed);
    signal.addEventListener('abort', closed, { once: true });
    input.resume();
  });
}
