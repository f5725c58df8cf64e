import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UserError } from '../domain/user-error.ts';
import type { Connection } from './connection.ts';
import { placeOf } from './place.ts';
import { runLocal } from './ssh-child.ts';

/** A host key as it was shown by the host, with the line that known_hosts would get. */
export type FetchedKey = { readonly type: string; readonly fingerprint: string; readonly line: string };

/** Fetches a host's key without authenticating and without trusting it, through jumps too. Undefined where none came. */
export async function fetchHostKey(
  connection: Connection,
  signal: AbortSignal,
): Promise<FetchedKey | undefined> {
  const folder = mkdtempSync(join(dirname(connection.link.socket), 'key-'));
  const file = join(folder, 'known');
  try {
    await runLocal(
      connection
        .argv([
          ...['-S', 'none', '-o', 'ControlPath=none', '-o', 'StrictHostKeyChecking=no'],
          ...['-o', `UserKnownHostsFile="${file}"`, '-o', 'GlobalKnownHostsFile=/dev/null'],
          ...[
            '-o',
            'PreferredAuthentications=none',
            '-o',
            'HashKnownHosts=no',
            '-o',
            'UpdateHostKeys=no',
            '-n',
          ],
        ])
        .concat('true'),
      { signal, timeoutMs: 45_000 },
    );
    const line = readIf(file)
      .split('\n')
      .find((text) => text.trim() !== '');
    if (line === undefined) return undefined;
    const listed = await runLocal(['ssh-keygen', '-l', '-f', file], { signal, timeoutMs: 10_000 });
    const fingerprint = /\bSHA256:[A-Za-z0-9+/=]+/.exec(listed.stdout)?.[0];
    const type = /\(([A-Z0-9-]+)\)\s*$/.exec(listed.stdout.trim())?.[1];
    return fingerprint === undefined ? undefined : { type: type ?? 'unknown', fingerprint, line };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Writes a host's key to the user's known_hosts when it is still the one that was shown. Throws a UserError
 * where the host shows another one or none.
 */
export async function acceptKey(
  connection: Connection,
  fingerprint: string,
  signal: AbortSignal,
): Promise<void> {
  const name = connection.link.name;
  const broken = await connection.via?.connect(signal);
  if (broken !== undefined) throw new UserError('host-key-unknown', broken.sentence, broken.remedy);
  const fetched = await fetchHostKey(connection, signal);
  if (fetched === undefined) {
    throw new UserError(
      'host-key-unknown',
      `${name} showed no host key`,
      'Look whether it is reached at all.',
    );
  }
  if (fetched.fingerprint !== fingerprint) {
    throw new UserError(
      'host-key-changed',
      `${name} now shows the host key ${fetched.fingerprint}, not ${fingerprint}`,
      'Do not accept it before you know why: something else may answer at that address.',
    );
  }
  const { knownHosts } = await placeOf(connection, signal);
  const file = knownHosts[0];
  if (file === undefined || file === 'none' || file === '/dev/null') {
    throw new UserError(
      'host-key-unknown',
      `your ssh_config keeps no known_hosts file for ${name}`,
      'Set UserKnownHostsFile for it.',
    );
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const before = readIf(file);
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  appendFileSync(file, `${gap}${fetched.line}\n`, { mode: 0o600 });
}

function readIf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // not there yet
  }
}
