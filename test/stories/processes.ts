import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allPids, environmentOf } from '../../src/lab/real-process.ts';

export type Seen = { readonly pid: number; readonly command: string };

/** What runs on one host of a lab, read from this machine's own process table and from the host's. */
export type HostLook = {
  readonly host: string;
  readonly processes: readonly Seen[];
  /** Processes that are an engine's main process. */
  readonly engines: readonly Seen[];
  /** Command lines as the host's own /proc shows them: stand-ins under the names of what they stand for. */
  readonly shown: readonly string[];
};

/** Looks at every host of the lab in that folder. Its processes are told by their environment, as the lab does. */
export function looks(folder: string): readonly HostLook[] {
  const hosts = join(folder, 'hosts');
  if (!existsSync(hosts)) return [];
  const all = allPids().flatMap((pid) => {
    const root = environmentOf(pid)?.['FIRSTLIGHT_ROOT'];
    return root?.startsWith(`${hosts}/`) === true && alive(pid)
      ? [{ pid, root, command: commandOf(`/proc/${pid}/cmdline`) }]
      : [];
  });
  return readdirSync(hosts).map((host) => {
    const root = join(hosts, host);
    const processes = all.filter((one) => one.root === root);
    return {
      host,
      processes,
      engines: processes.filter(({ command }) => / \S*engine\/main\.js (sglang|vllm) /.test(command)),
      shown: readdirSync(join(root, 'proc'))
        .filter((name) => /^\d+$/.test(name) && alive(Number(name)))
        .map((name) => commandOf(join(root, 'proc', name, 'cmdline'))),
    };
  });
}

function alive(pid: number): boolean {
  const stat = read(`/proc/${pid}/stat`);
  const state = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[0];
  return state !== undefined && state !== '' && state !== 'Z' && state !== 'X';
}

function commandOf(file: string): string {
  return read(file).replaceAll('\0', ' ').trim();
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It ended meanwhile.
    return '';
  }
}
