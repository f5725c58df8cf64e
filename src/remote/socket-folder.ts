import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../domain/user-error.ts';

/** A short folder of our own for generated configs and sockets of masters. */
export type SocketFolder = {
  readonly path: string;
  /** Writes a file whole, unless it is there with that content. */
  write(name: string, text: string): void;
  /** The path itself, or that of a link to it where it holds what ssh_config cannot quote. */
  plainPath(path: string): string;
};

/** sun_path holds 107 bytes, and ssh first binds a name that is 17 longer than the socket's (16 of ours). */
const LONGEST = 107 - 17 - 16 - 1;

/**
 * Makes and checks the folder: `wanted`, else `$XDG_RUNTIME_DIR/firstlight`, else `<tmp>/firstlight-<uid>`; the
 * first that is short enough. Throws a UserError where it belongs to somebody else or is open to others.
 */
export function openSocketFolder(
  wanted: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): SocketFolder {
  const uid = process.getuid?.() ?? 0;
  const runtime = env['XDG_RUNTIME_DIR'];
  const candidates = [
    ...(wanted === undefined ? [] : [wanted]),
    ...(runtime?.startsWith('/') && isFolder(runtime) ? [join(runtime, 'firstlight')] : []),
    join(tmpdir(), `firstlight-${uid}`),
    `/tmp/firstlight-${uid}`,
  ];
  const path = candidates.find((candidate) => Buffer.byteLength(candidate) <= LONGEST && plain(candidate));
  if (path === undefined) throw new Error('no folder has a path short enough for a socket');
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const seen = lstatSync(path);
  if (!seen.isDirectory() || seen.uid !== uid) {
    throw new UserError(
      'bad-input',
      `${path} is not a folder of yours, so SSH connections cannot be kept there`,
      `Look at it (ls -ld ${path}) and remove it, or set XDG_RUNTIME_DIR to a folder of your own.`,
    );
  }
  if ((seen.mode & 0o077) !== 0) chmodSync(path, 0o700);
  return {
    path,
    write(name, text) {
      const file = join(path, name);
      if (readIf(file) === text) return;
      const fresh = `${file}.${process.pid}`;
      writeFileSync(fresh, text, { mode: 0o600 });
      renameSync(fresh, file);
    },
    plainPath(target) {
      if (plain(target)) return target;
      const link = join(path, `link-${createHash('sha256').update(target).digest('hex').slice(0, 16)}`);
      try {
        symlinkSync(target, link);
      } catch (error) {
        // Made by an earlier run: the name is a hash over the target.
        if (!exists(link)) throw error;
      }
      return link;
    },
  };
}

/** What stands in ssh_config between double quotes without a second meaning (globs of Include, `$`, escapes). */
function plain(path: string): boolean {
  return !/["\\$*?[\]{}\n\r\t]/.test(path);
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false; // missing
  }
}

function exists(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false; // missing
  }
}

function readIf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // missing
  }
}
