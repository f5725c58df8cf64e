import type { UnreachableWhy } from '../domain/command.ts';

/** The closed list's word for a connection that failed; a host that answered before has the right address. */
export function unreachedCause(why: UnreachableWhy, reachedBefore: boolean): string {
  switch (why) {
    case 'key-refused':
    case 'passphrase-needed':
      return 'ssh-key-not-available';
    case 'host-key-unknown':
      return 'ssh-host-key-unknown';
    case 'host-key-changed':
      return 'ssh-host-key-changed';
    case 'too-many-connections':
      return 'ssh-server-limits-connections';
    case 'jump-may-not-forward':
      return 'ssh-jump-forwarding-disabled';
    case 'no-route':
    case 'refused':
    case 'timeout-connect':
    case 'name-unknown':
      return reachedBefore ? 'host-unreachable' : 'ssh-wrong-address';
    default:
      return 'host-unreachable';
  }
}
