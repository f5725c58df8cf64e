import type { Unreachable } from '../domain/command.ts';
import { UserError } from '../domain/user-error.ts';

/** For a host key that a person must accept or look into: the error with the key that was shown. Else undefined. */
export function hostKeyError({ why, sentence, remedy, hostKey }: Unreachable): UserError | undefined {
  if (why !== 'host-key-unknown' && why !== 'host-key-changed') return undefined;
  const shown = hostKey === undefined ? '' : ` (${hostKey.type} ${hostKey.fingerprint})`;
  return new UserError(why, `${sentence.replace(/\.$/, '')}${shown}`, remedy);
}
