import { createInterface } from 'node:readline';

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
