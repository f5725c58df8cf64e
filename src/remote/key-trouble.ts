import { existsSync } from 'node:fs';
import { quote } from '../domain/quote.ts';
import type { Connection } from './connection.ts';
import type { Place } from './place.ts';
import { BOOT, boot } from './shell.ts';
import { runLocal } from './ssh-child.ts';

/** The first identity file that is there, has a passphrase, and lies in no agent. */
export async function keyWithPassphrase(
  files: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const agent = await runLocal(['ssh-add', '-l'], { signal, timeoutMs: 5000 }).catch(() => undefined); // no ssh-add: no agent
  signal.throwIfAborted();
  for (const file of files.filter((path) => existsSync(path))) {
    const opened = await runLocal(['ssh-keygen', '-y', '-P', '', '-f', file], { signal, timeoutMs: 5000 });
    if (opened.code === 0 || !/passphrase/i.test(opened.stderr)) continue;
    const listed = await runLocal(['ssh-keygen', '-l', '-f', file], { signal, timeoutMs: 5000 });
    const fingerprint = /SHA256:\S+/.exec(listed.stdout)?.[0];
    if (fingerprint === undefined || !(agent?.stdout ?? '').includes(fingerprint)) return file;
  }
  return undefined;
}

/** Whatever the user's own configuration says: no open connection is taken or left, nothing is lent, nobody is trusted. */
export const ALONE = [
  ...['-S', 'none', '-o', 'ControlMaster=no', '-o', 'ForwardAgent=no', '-o', 'ClearAllForwardings=yes'],
  ...['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'UpdateHostKeys=no'],
];

/** No key is shown either: what is met on the way is all that is to be learned. */
export const NO_KEY = ['-o', 'PreferredAuthentications=none'];

/**
 * What the jump host's own ssh meets on the way to the node: `with-its-key` whether that gets in where ours does not
 * (many clusters have keys between their hosts only), `no-key` what it says where we only see silence. Nothing is
 * written there. Undefined where that could not be found out.
 */
export async function askJump(
  jump: Connection,
  place: Place,
  how: 'with-its-key' | 'no-key',
  signal: AbortSignal,
): Promise<{ readonly getsIn: boolean; readonly text: string } | undefined> {
  const words = [
    ...['ssh', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=5', ...ALONE, '-p', String(place.port)],
    ...(how === 'no-key' ? NO_KEY : []),
    ...(place.user === '' ? [] : ['-l', place.user]),
    ...['--', place.host, 'true'],
  ];
  const script = `${words.map(quote).join(' ')} </dev/null 2>&1; echo "ssh-ended:$?"\n`;
  const ran = await runLocal(jump.argv().concat(`exec sh -c '${BOOT}'`), {
    signal,
    timeoutMs: 20_000,
    stdin: boot(script),
  });
  const code = /^ssh-ended:(\d+)$/m.exec(ran.stdout)?.[1];
  // 127: no ssh client there.
  if (code === undefined || code === '127') return undefined;
  return { getsIn: code === '0', text: ran.stdout.replace(/^ssh-ended:\d+\n?/m, '') };
}
