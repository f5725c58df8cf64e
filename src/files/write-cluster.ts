import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import type { z } from 'zod';
import type { clusterSchema } from '../domain/cluster.ts';
import { UserError } from '../domain/user-error.ts';
import { parseClusterText } from './cluster-file.ts';
import { errno } from './read-text.ts';

/** What a person writes into a cluster file. */
export type WrittenCluster = z.input<typeof clusterSchema>;

/** The text of a cluster file, checked as if it had been read from `file`: throws the same UserError. */
export function clusterText(cluster: WrittenCluster, file: string): string {
  const text = stringify(cluster);
  parseClusterText(text, file);
  return text;
}

/**
 * Writes a cluster file; one that exists is kept unless `replace` is true. Throws a UserError `bad-input` when it
 * exists or cannot be written.
 */
export function writeClusterFile(path: string, text: string, replace: boolean): void {
  try {
    writeFileSync(path, text, { mode: 0o644, flag: replace ? 'w' : 'wx' });
  } catch (error) {
    // It exists, or its folder is missing or not ours.
    const code = errno(error);
    if (code === 'EEXIST')
      throw new UserError(
        'bad-input',
        `${path} exists already; it was not changed`,
        'Write elsewhere with --cluster FILE, or over it with --force.',
        error,
      );
    throw new UserError(
      'bad-input',
      `${path} cannot be written (${code})`,
      'Name another with --cluster FILE.',
      error,
    );
  }
}
