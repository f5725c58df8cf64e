import type { Cluster } from '../domain/cluster.ts';
import { list } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { readText } from './read-text.ts';

/**
 * The one line of a password file, without its line end. The file must be a regular file of mode 0600 or stricter.
 * Throws a UserError `bad-password-file`; no message ever holds any of the content.
 */
export function readPasswordFile(path: string): string {
  const text = readText(path, {
    code: 'bad-password-file',
    what: 'password file',
    absent: 'Write the password into a file of mode 0600 and name it.',
    limitBytes: 4096,
    forbiddenMode: 0o7177,
  });
  const line = text.replace(/\r?\n$/, '');
  if (line === '')
    throw new UserError('bad-password-file', `${path} is empty`, 'It must hold the password, on one line.');
  if (/[\r\n]/.test(line))
    throw new UserError(
      'bad-password-file',
      `${path} holds more than one line`,
      'It must hold the password alone.',
    );
  return line;
}

/** `NODE=FILE` must name a node of the cluster: a mistyped one would be a password that is never used. */
export function checkPasswordNodes(given: readonly string[], cluster: Cluster): void {
  const names = cluster.nodes.map((node) => node.name);
  for (const one of given) {
    const node = /^([A-Za-z0-9][\w.-]*)=/.exec(one)?.[1];
    if (node !== undefined && !names.includes(node))
      throw new UserError(
        'bad-input',
        `--sudo-password-file names ${node}, which is no node of ${cluster.name}`,
        `Its nodes are ${list(names)}.`,
      );
  }
}
