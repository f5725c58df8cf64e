import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createTar, parseTar } from 'nanotar';
import { UserError } from '../domain/user-error.ts';

/** Far above what a run leaves; an archive that unfolds to more is not read. */
const LIMIT_BYTES = 512 * 2 ** 20;

/** Files by their paths within an archive. */
export type Archive = ReadonlyMap<string, Uint8Array>;

/** Writes files as one .tar.gz that only its owner may read. Throws a UserError where the path cannot be written. */
export function writeBundle(path: string, files: Archive): void {
  const tar = createTar(
    [...files].map(([name, data]) => ({ name, data })),
    { attrs: { mode: '600', uid: 0, gid: 0 } },
  );
  try {
    writeFileSync(path, gzipSync(tar), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new UserError(
      'bad-input',
      why === 'EEXIST' ? `${path} exists already` : `${path} cannot be written: ${why}`,
      'name another file with --output FILE',
      error,
    );
  }
}

/**
 * The files of a .tar.gz, or the one file that a .gz holds (under the name ''). Nothing is written anywhere. Throws a
 * UserError for what is neither, is cut, or unfolds to more than 512 MiB.
 */
export function readBundle(path: string): Archive {
  const refuse = (what: string, cause?: unknown): UserError =>
    new UserError('bad-input', `${path} ${what}`, 'a bundle is what firstlight bundle RUN writes', cause);
  if (statSync(path).size > LIMIT_BYTES) throw refuse('is too large for a bundle');
  let bytes: Uint8Array;
  try {
    bytes = gunzipSync(readFileSync(path), { maxOutputLength: LIMIT_BYTES });
  } catch (error) {
    throw refuse('cannot be unpacked', error);
  }
  const magic = Buffer.from(bytes.subarray(257, 262)).toString('latin1');
  if (magic !== 'ustar') return new Map([['', bytes]]);
  try {
    return new Map(
      parseTar(bytes)
        .filter(({ type, data }) => type === 'file' && data !== undefined)
        .map(({ name, data }) => [name.replace(/^\.\//, ''), data ?? new Uint8Array()]),
    );
  } catch (error) {
    throw refuse('is no whole tar archive', error);
  }
}
