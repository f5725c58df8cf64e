import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import type { SecretInput } from './secret.ts';

/** What lies in the terminal's own buffer comes within this time, ms. */
const BUFFERED = 30;

/** Reads one line in the terminal's own line mode, so that Ctrl-C stays a signal. Undefined at the end of input. */
export function readLine(input: NodeJS.ReadableStream, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const lines = createInterface({ input, terminal: false });
    const end = (): void => {
      signal.removeEventListener('abort', abort);
      lines.removeAllListeners();
      lines.close();
      input.pause();
    };
    const abort = (): void => {
      end();
      reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    lines.once('line', (line) => {
      end();
      resolve(line);
    });
    lines.once('close', () => {
      end();
      resolve(undefined);
    });
  });
}

/**
 * Throws away what was typed before a question stood: it was not meant for it. Whole and unfinished lines go; a Ctrl-C
 * among them calls `interrupt`. Does nothing where the input is no terminal.
 */
export async function discardTyped(input: SecretInput, interrupt: () => void): Promise<void> {
  if (input.isTTY !== true || input.setRawMode === undefined) return;
  const wasRaw = input.isRaw === true;
  const take = (chunk: Buffer | string): void => {
    if (chunk.toString().includes('\x03')) interrupt();
  };
  // In line mode the terminal keeps a line that is not ended yet for the question.
  input.setRawMode(true);
  input.on('data', take);
  input.resume();
  await wait(BUFFERED);
  input.removeListener('data', take);
  input.pause();
  input.setRawMode(wasRaw);
}
