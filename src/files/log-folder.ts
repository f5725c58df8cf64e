import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join, parse } from 'node:path';
import { UserError } from '../domain/user-error.ts';

const LOG = /^\.?(?:log|txt|out|err|stdout|stderr)?$/;
const MOST = 256;

/** What a path that `diagnose` was given is. */
export type Given =
  | {
      readonly kind: 'folder';
      readonly logs: readonly { readonly name: string; readonly path: string }[];
      readonly facts: string | undefined;
    }
  | { readonly kind: 'bundle' }
  | { readonly kind: 'file' }
  | { readonly kind: 'nothing' };

/** Looks at a path: a folder with logs and perhaps facts, an archive (by its first bytes), a file, or nothing. */
export function lookAt(path: string): Given {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return { kind: 'nothing' };
  if (stat.isDirectory()) return folderOf(path);
  return { kind: stat.isFile() && isGzip(path) ? 'bundle' : 'file' };
}

function folderOf(path: string): Given {
  const entries = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isFile());
  const names = entries.map(({ name }) => name).sort();
  const logs = names.filter((name) => LOG.test(parse(unpackedName(name)).ext) && !name.startsWith('.'));
  if (logs.length === 0)
    throw new UserError(
      'bad-input',
      `there is no log in ${path}`,
      'logs end in .log, .txt, .out or .err; name others by --log NAME=FILE',
    );
  if (logs.length > MOST)
    throw new UserError(
      'bad-input',
      `${path} holds more than ${MOST} logs`,
      'name those that matter by --log NAME=FILE',
    );
  const stems = logs.map((name) => parse(unpackedName(name)).name);
  const facts = names.find((name) => /^facts\.(?:json|ya?ml)$/.test(name));
  return {
    kind: 'folder',
    logs: logs.map((name, index) => {
      const stem = stems[index] ?? name;
      // Two files of one stem are two logs: head.out and head.err.
      const shared = stems.filter((other) => other === stem).length > 1;
      return { name: shared ? name : stem, path: join(path, name) };
    }),
    facts: facts === undefined ? undefined : join(path, facts),
  };
}

/** A log's name without that it is packed. */
function unpackedName(name: string): string {
  return name.replace(/\.gz$/, '');
}

function isGzip(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const magic = Buffer.alloc(2);
    return readSync(file, magic, 0, 2, 0) === 2 && magic[0] === 0x1f && magic[1] === 0x8b;
  } finally {
    closeSync(file);
  }
}
