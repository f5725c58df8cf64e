import type { ContainerSpec } from './docker.ts';
import type { Program } from './processes.ts';
import { GIB, type StoryHolder } from './story.ts';
import type { UnitSpec } from './systemd.ts';

/** A program that holds nothing of its own accord. */
export const NOTHING = { gpuBytes: 0, residentBytes: 0, leavesBytes: undefined, stubborn: false } as const;

/** A holder of a story as a process. */
export function programOf(
  holder: StoryHolder,
  place: {
    readonly cgroup: string;
    readonly cwd: string;
    readonly env: Readonly<Record<string, string>>;
  },
): Program {
  return {
    ...place,
    argv: holder.argv,
    comm: baseName(holder.argv[0] ?? holder.name),
    user: holder.user,
    uid: holder.uid,
    gpuBytes: holder.gpuGiB * GIB,
    residentBytes: holder.residentGiB * GIB,
    leavesBytes: holder.leavesGiB === undefined ? undefined : holder.leavesGiB * GIB,
    stubborn: holder.stubborn === true,
  };
}

/** The unit that a holder is, if it is one. */
export function unitOf(holder: StoryHolder): readonly UnitSpec[] {
  if (holder.kind !== 'unit') return [];
  const { name, description, user, uid, restart, restartSeconds, argv } = holder;
  return [
    { name, description, user, uid, restart, restartSeconds, argv, userUnit: holder.userUnit === true },
  ];
}

/** The container that a holder is. */
export function containerOf(holder: Extract<StoryHolder, { kind: 'container' }>): ContainerSpec {
  return {
    name: holder.name,
    image: holder.image,
    command: holder.argv,
    entrypoint: undefined,
    env: {},
    labels: holder.labels,
    mounts: [],
    networkMode: 'host',
    restart: holder.restart,
    maximumRetries: 0,
    autoRemove: holder.autoRemove,
    stopSeconds: 10,
    shmBytes: 2 ** 26,
    ipcMode: 'private',
    gpus: true,
    devices: [],
  };
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
