import { readdirSync, readFileSync } from 'node:fs';

/** Field 22 of /proc/PID/stat, ticks since boot; undefined when there is no such process. */
export function startTicks(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

/** Whether that very process still runs; a zombie does not. */
export function runs(pid: number, ticks: string): boolean {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields !== undefined && fields[19] === ticks && fields[0] !== 'Z';
}

export function parentOf(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  const parent = Number(stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  return Number.isInteger(parent) ? parent : undefined;
}

/** The environment a process was started with. */
export function environmentOf(pid: number): Readonly<Record<string, string>> | undefined {
  const text = read(`/proc/${pid}/environ`);
  if (text === undefined) return undefined;
  const pairs = text.split('\0').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at > 0 ? [[pair.slice(0, at), pair.slice(at + 1)] as const] : [];
  });
  return Object.fromEntries(pairs);
}

export function allPids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Sends a signal to a process, or with `group` to its whole group; a process that is gone is fine. */
export function signal(pid: number, name: NodeJS.Signals, group = false): void {
  try {
    process.kill(group ? -pid : pid, name);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It ended meanwhile, or is somebody else's: both mean that nothing can be said of it.
    return undefined;
  }
}
