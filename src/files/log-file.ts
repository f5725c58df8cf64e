import { closeSync, constants, createReadStream, fstatSync, openSync, read, readSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { UserError } from '../domain/user-error.ts';

const readBytes = promisify(read);
const PIECE_BYTES = 2 ** 18;
const POLL_MS = 200;

/** What is told of a log before its bytes come: how long ago it last changed, and how long it is then. */
export type LogOpened = { readonly silentSeconds: number; readonly bytes: number };

/**
 * Reads a log file of this machine, `-` being standard input; with `follow` on and on, as it grows, until the signal is aborted. Throws a
 * UserError for what is missing, no regular file, or unreadable.
 */
export async function readLogFile(
  path: string,
  options: {
    readonly follow: boolean;
    readonly signal: AbortSignal;
    readonly opened: (about: LogOpened) => void;
    readonly bytes: (chunk: Uint8Array) => void;
  },
): Promise<void> {
  const { follow, signal } = options;
  if (path === '-') return readStandardInput(options);
  const file = open(path);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile())
      throw new UserError('bad-input', `${path} is not a regular file`, 'name the log file itself');
    options.opened({ silentSeconds: Math.max(0, (Date.now() - stat.mtimeMs) / 1000), bytes: stat.size });
    if (!follow && isGzip(file)) return await unpacked(path, options);
    let at = 0;
    while (!signal.aborted) {
      const { bytesRead, buffer } = await readBytes(file, Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES, at);
      at += bytesRead;
      if (bytesRead > 0) options.bytes(buffer.subarray(0, bytesRead));
      else if (!follow) return;
      // A log that was begun anew is shorter than what was read of it.
      else if (fstatSync(file).size < at) at = 0;
      else await wait(POLL_MS, undefined, { signal }).catch(() => undefined); // the loop ends by the signal
    }
  } finally {
    closeSync(file);
  }
}

/** Whether it begins as gzip's files do: rotated logs are packed. */
function isGzip(file: number): boolean {
  const magic = Buffer.alloc(2);
  return readSync(file, magic, 0, 2, 0) === 2 && magic[0] === 0x1f && magic[1] === 0x8b;
}

async function unpacked(
  path: string,
  { signal, bytes }: { readonly signal: AbortSignal; readonly bytes: (chunk: Uint8Array) => void },
): Promise<void> {
  try {
    await pipeline(
      createReadStream(path),
      createGunzip(),
      async (chunks: AsyncIterable<Uint8Array>) => {
        for await (const chunk of chunks) bytes(chunk);
      },
      { signal },
    );
  } catch (error) {
    if (signal.aborted) return;
    throw new UserError(
      'bad-input',
      `${path} cannot be unpacked to its end`,
      'give it as it was before it was packed',
      error,
    );
  }
}

/** Standard input is read to its end, whether it is followed or not: nobody can see it grow. */
async function readStandardInput(options: {
  readonly signal: AbortSignal;
  readonly opened: (about: LogOpened) => void;
  readonly bytes: (chunk: Uint8Array) => void;
}): Promise<void> {
  options.opened({ silentSeconds: 0, bytes: 0 });
  try {
    for await (const chunk of process.stdin.iterator({ destroyOnReturn: false })) {
      if (options.signal.aborted) return;
      options.bytes(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
    }
  } catch (error) {
    throw new UserError('bad-input', 'standard input cannot be read', 'give a log as a file', error);
  }
}

function open(path: string): number {
  try {
    // Without O_NONBLOCK the open of a pipe would wait for a writer.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? error.code : undefined;
    const gone = why === 'ENOENT' || why === 'ENOTDIR';
    throw new UserError(
      'bad-input',
      gone ? `there is no log file ${path}` : `${path} cannot be read: ${String(why)}`,
      'a log on a node is named NODE:/path; one on this machine by its path',
      error,
    );
  }
}
