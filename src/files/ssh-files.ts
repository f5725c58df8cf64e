import { accessSync, closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import type { Cluster } from '../domain/cluster.ts';
import { errno } from './read-text.ts';
import { type Problem, refusal, type YamlFile } from './yaml-file.ts';

/** Throws a UserError when the ssh_config that the cluster file names cannot be read. */
export function lookAtSshConfig(path: string, yaml: YamlFile): void {
  const why = unreadable(path);
  if (why === undefined) return;
  const problem = yaml.problem(['sshConfig'], `the ssh_config ${path} ${why}`);
  throw refusal(
    'bad-cluster-file',
    yaml.file,
    [problem],
    'Mend the path (it is relative to the cluster file), or leave it out.',
  );
}

/** Throws a UserError `unreadable-key` that lists each identity file which ssh could not use. */
export function lookAtKeys(cluster: Cluster, yaml: YamlFile): void {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  for (const [index, node] of cluster.nodes.entries()) {
    if (node.key === undefined || seen.has(node.key)) continue;
    seen.add(node.key);
    const why = unreadable(node.key) ?? wrongKey(node.key);
    const own = yaml.problem(['nodes', index, 'key'], `the key ${node.key} of ${node.name} ${why}`);
    if (why !== undefined) problems.push(own);
  }
  if (problems.length === 0) return;
  throw refusal(
    'unreadable-key',
    yaml.file,
    problems,
    'Name a private key that you may read (`ls -l` shows it), or leave `key` out: then ssh takes your agent and its own defaults.',
  );
}

function unreadable(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return 'is not a regular file';
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    // Missing, or not ours to read: both are said.
    const why = errno(error);
    if (why === 'ENOENT' || why === 'ENOTDIR') return 'does not exist';
    return why === 'EACCES' || why === 'EPERM'
      ? 'cannot be read: permission denied'
      : `cannot be read (${why})`;
  }
}

/** What ssh itself refuses about an identity file: a public key, or one that others may read (ssh(1), FILES). */
function wrongKey(path: string): string | undefined {
  const file = openSync(path, 'r');
  try {
    const { mode, uid } = fstatSync(file);
    const head = Buffer.alloc(32);
    const length = readSync(file, head, 0, head.length, 0);
    if (length === 0) return 'is empty';
    if (/^(ssh-|ecdsa-|sk-)/.test(head.toString('latin1')))
      return 'is a public key; the private one is needed';
    if (uid === process.getuid?.() && (mode & 0o077) !== 0)
      return `may be read by others, so ssh refuses it; run: chmod 600 ${path}`;
    return undefined;
  } finally {
    closeSync(file);
  }
}
