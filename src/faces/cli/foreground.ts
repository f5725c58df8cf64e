import { readFileSync } from 'node:fs';

/**
 * Whether this process may read its terminal and set its modes: in the background either would stop it. Where the
 * kernel does not tell (no /proc) it is taken to be in front.
 */
export function inForeground(stat: () => string = ownStat): boolean {
  let text: string;
  try {
    text = stat();
  } catch {
    return true; // no /proc here
  }
  // proc_pid_stat(5): after the name in brackets come state, parent, process group, session, terminal, its front group.
  const [, , group, , , front] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return front === undefined || front === '-1' || group === front;
}

function ownStat(): string {
  return readFileSync('/proc/self/stat', 'latin1');
}
