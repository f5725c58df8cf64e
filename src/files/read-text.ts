import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { UserError, type UserErrorCode } from '../domain/user-error.ts';

/** Far above what people write, and parsed within a second. */
const LIMIT_BYTES = 256 * 2 ** 10;

export type Wanted = {
  readonly code: UserErrorCode;
  /** As a person calls it: "cluster file". */
  readonly what: string;
  /** What to do when there is none. */
  readonly absent: string;
  readonly limitBytes?: number;
  /** Permission bits that the file must not have. */
  readonly forbiddenMode?: number;
  /** The mode that it should have instead, in words; 0600 where left out. */
  readonly wantedMode?: string;
  /** It must belong to this user, or to root. */
  readonly ownOnly?: boolean;
};

/**
 * A small UTF-8 text file. Its kind and size are looked at before anything is read. Throws a UserError with the
 * wanted code for what is missing, no regular file, unreadable, too large, or no text; it never quotes the content.
 */
export function readText(path: string, wanted: Wanted): string {
  const { code, what } = wanted;
  const limit = wanted.limitBytes ?? LIMIT_BYTES;
  const file = open(path, wanted);
  try {
    const stat = fstatSync(file);
    if (stat.isDirectory())
      throw new UserError(code, `${path} is a directory, not a ${what}`, 'Name the file inside it.');
    if (!stat.isFile())
      throw new UserError(code, `${path} is not a regular file`, `Copy the ${what} to a file and name that.`);
    const loose = stat.mode & (wanted.forbiddenMode ?? 0);
    if (loose !== 0) {
      const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0');
      const right = wanted.wantedMode ?? '0600';
      const chmod = `Run: chmod ${right.replace(/^0/, '')} ${path}`;
      throw new UserError(code, `${path} has mode ${mode}; it must be ${right}`, chmod);
    }
    const mine = process.getuid?.() ?? stat.uid;
    if (wanted.ownOnly === true && stat.uid !== mine && stat.uid !== 0)
      throw new UserError(
        code,
        `${path} belongs to another user (uid ${stat.uid})`,
        `Look at what it says, then take it over: chown ${mine} ${path}`,
      );
    if (stat.size > limit) throw tooLarge(path, wanted, stat.size, limit);
    const bytes = readUpTo(file, limit + 1);
    // The size above is 0 for files of /proc, and a file may grow meanwhile.
    if (bytes.length > limit) throw tooLarge(path, wanted, bytes.length, limit);
    return decode(bytes, path, wanted);
  } finally {
    closeSync(file);
  }
}

/** Whether there is anything of that name, a link that leads nowhere too. */
export function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function open(path: string, { code, what, absent }: Wanted): number {
  try {
    // Without O_NONBLOCK the open of a pipe would wait for a writer.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    // Missing files and missing rights are expected; the rest is named by its errno.
    const why = errno(error);
    if (why === 'ENOENT' || why === 'ENOTDIR')
      throw new UserError(code, `there is no ${what} ${path}`, absent, error);
    if (why === 'EACCES' || why === 'EPERM')
      throw new UserError(
        code,
        `${path} cannot be read: permission denied`,
        'Run `ls -l` on it, and give yourself the right to read it.',
        error,
      );
    throw new UserError(
      code,
      `${path} cannot be read (${why ?? 'unknown error'})`,
      `Look at ${path}.`,
      error,
    );
  }
}

function readUpTo(file: number, limit: number): Buffer {
  const buffer = Buffer.alloc(limit);
  let length = 0;
  while (length < limit) {
    const count = readSync(file, buffer, length, limit - length, null);
    if (count === 0) break;
    length += count;
  }
  return buffer.subarray(0, length);
}

function decode(bytes: Buffer, path: string, { code, what }: Wanted): string {
  const hint = `A ${what} is UTF-8 text; name that file, or save it as UTF-8.`;
  if (bytes.includes(0)) throw new UserError(code, `${path} is binary (it holds NUL bytes)`, hint);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    // The decoder throws on the first bytes that are no UTF-8.
    throw new UserError(code, `${path} is not UTF-8 text`, hint, error);
  }
}

function tooLarge(path: string, { code, what }: Wanted, bytes: number, limit: number): UserError {
  const size = readable(bytes);
  const most = readable(limit);
  return new UserError(
    code,
    `${path} is too large for a ${what}: ${size}, at most ${most}`,
    'Look whether that is the right file.',
  );
}

function readable(bytes: number): string {
  return bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(0)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** The errno name of a system error, such as ENOENT. */
export function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
