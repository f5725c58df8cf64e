import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Container } from './docker.ts';
import { SESSION_CGROUP } from './holder-processes.ts';
import type { LabHost } from './lab-host.ts';
import { parentOf } from './real-process.ts';
import type { LabWorld } from './world.ts';

/** getaddrinfo: the host's own hosts file, then the addresses by which the lab's hosts are known. */
export function resolve(world: LabWorld, host: LabHost, name: string): readonly string[] {
  if (/^\d+\.\d+\.\d+\.\d+$/.test(name)) return [name];
  const inFile = readFileSync(join(host.root, 'etc/hosts'), 'utf8')
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
    .filter(([, ...names]) => names.includes(name))
    .map(([address = '']) => address);
  if (inFile.length > 0) return inFile;
  const other = world.story.hosts.find((candidate) => candidate.name === name);
  return other === undefined ? [] : [other.management.address];
}

/** The control group of a process, by the nearest one above it that the lab knows. */
export function cgroupOf(host: LabHost, pid: number): string {
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = parentOf(at)) {
    const known = host.processes.find(at);
    if (known !== undefined) return known.cgroup;
  }
  return SESSION_CGROUP;
}

/** The container that the process runs in. */
export function containerAbove(host: LabHost, pid: number): Container | undefined {
  return host.docker.list.find((container) => container.pid !== 0 && isBelow(pid, container.pid));
}

function isBelow(pid: number, ancestor: number): boolean {
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = parentOf(at)) {
    if (at === ancestor) return true;
  }
  return false;
}
