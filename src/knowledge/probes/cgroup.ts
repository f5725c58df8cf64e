/** Whose a process is, read from its /proc/PID/cgroup alone; what that means for stopping it is decided elsewhere. */
export type Attribution =
  | {
      readonly kind: 'container';
      /** `container` when the path names none: a driver that writes the bare id. */
      readonly runtime: 'docker' | 'podman' | 'containerd' | 'crio' | 'nerdctl' | 'container';
      readonly id: string;
      /** Set when the runtime runs as that user and the system's daemon does not know the container. */
      readonly rootlessUid?: number;
    }
  /** conmon, which watches a podman container: not the container itself. */
  | { readonly kind: 'monitor'; readonly id: string }
  | { readonly kind: 'pod'; readonly pod: string; readonly runtime: string; readonly id: string }
  | { readonly kind: 'unit'; readonly unit: string; readonly uid?: number }
  /** A scope: programs of a desktop, or of a terminal or `systemd-run`. */
  | { readonly kind: 'scope'; readonly scope: string; readonly uid?: number }
  | { readonly kind: 'session'; readonly session: string; readonly uid: number | undefined }
  /** A virtual machine or nspawn container. */
  | { readonly kind: 'machine'; readonly machine: string }
  /** No cgroup tells: the host has none of these, or we look from inside a cgroup namespace. */
  | { readonly kind: 'none' };

const SCOPED = /^(docker|libpod|cri-containerd|crio|nerdctl)-([0-9a-f]{64})\.scope$/;
const MONITOR = /^(?:libpod|crio)-conmon-([0-9a-f]{64})(?:\.scope)?$/;
const BARE_ID = /^[0-9a-f]{64}$/;
const RUNTIMES: Readonly<Record<string, 'docker' | 'podman' | 'containerd' | 'crio' | 'nerdctl'>> = {
  docker: 'docker',
  libpod: 'podman',
  'cri-containerd': 'containerd',
  crio: 'crio',
  nerdctl: 'nerdctl',
};

/**
 * Lines of /proc/PID/cgroup → whose it is. `own` are the lines of our own shell: what both paths have in common
 * down to a container or machine is where we ourselves live, and says nothing about the process.
 * Forms of systemd, docker, podman, containerd, cri-o and kubelet, cgroup v1, v2 and hybrid.
 */
export function attribute(lines: readonly string[], own: readonly string[] = []): Attribution {
  const parts = beneath(pathOf(lines), pathOf(own));
  // What systemd does inside a container or machine is not known to the host: the outermost one is whom to ask.
  for (const [at, part] of parts.entries()) {
    const found = boundary(part, parts, at);
    if (found !== undefined) return found;
  }
  for (let at = parts.length - 1; at >= 0; at--) {
    const found = unitOrScope(parts[at] ?? '', parts, at);
    if (found !== undefined) return found;
  }
  return { kind: 'none' };
}

/** The unified line where it says something, else the v1 hierarchy that systemd or a runtime uses. */
function pathOf(lines: readonly string[]): readonly string[] {
  const entries = lines.flatMap((line) => {
    const match = /^(\d+):([^:]*):(.*)$/.exec(line);
    return match ? [{ controllers: match[2] ?? '', path: match[3] ?? '' }] : [];
  });
  const pathWith = (names: (controllers: readonly string[]) => boolean) =>
    entries.find((entry) => entry.path.length > 1 && names(entry.controllers.split(',')))?.path;
  const path =
    pathWith((names) => names.length === 1 && names[0] === '') ??
    pathWith((names) => names.includes('name=systemd')) ??
    pathWith((names) => names.includes('pids')) ??
    pathWith((names) => names.includes('memory')) ??
    '/';
  return path.split('/').filter((part) => part !== '');
}

/** The path below the deepest container or machine that both share. */
function beneath(parts: readonly string[], own: readonly string[]): readonly string[] {
  let cut = 0;
  for (let at = 0; at < parts.length && parts[at] === own[at]; at++) {
    if (boundary(parts[at] ?? '', parts, at) !== undefined) cut = at + 1;
  }
  return parts.slice(cut);
}

function boundary(part: string, parts: readonly string[], at: number): Attribution | undefined {
  const monitor = MONITOR.exec(part)?.[1];
  if (monitor !== undefined) return { kind: 'monitor', id: monitor };
  if (/^machine-.+\.scope$/.test(part)) {
    return { kind: 'machine', machine: part.slice('machine-'.length, -'.scope'.length) };
  }
  const scoped = SCOPED.exec(part);
  const id = scoped?.[2] ?? (BARE_ID.test(part) ? part : undefined);
  if (id === undefined) return undefined;
  const before = parts.slice(0, at);
  const runtime = RUNTIMES[scoped?.[1] ?? before.at(-1) ?? ''] ?? 'container';
  const pod = podOf(before);
  if (pod !== undefined) return { kind: 'pod', pod, runtime: runtime === 'container' ? '' : runtime, id };
  const uid = uidOf(before);
  return { kind: 'container', runtime, id, ...(uid === undefined ? {} : { rootlessUid: uid }) };
}

function unitOrScope(part: string, parts: readonly string[], at: number): Attribution | undefined {
  const uid = uidOf(parts.slice(0, at));
  const whose = uid === undefined ? {} : { uid };
  // user@UID.service is the user's own manager, not a unit of the user's.
  if (part.endsWith('.service')) return { kind: 'unit', unit: part, ...whose };
  if (!part.endsWith('.scope')) return undefined;
  const session = /^session-(.+)\.scope$/.exec(part)?.[1];
  if (session === undefined) return { kind: 'scope', scope: part, ...whose };
  const slice = parts.slice(0, at).findLast((each) => /^user-\d+\.slice$/.test(each));
  return { kind: 'session', session, uid: slice ? Number(/\d+/.exec(slice)?.[0]) : undefined };
}

function uidOf(parts: readonly string[]): number | undefined {
  const manager = parts.findLast((part) => /^user@\d+\.service$/.test(part));
  return manager === undefined ? undefined : Number(/\d+/.exec(manager)?.[0]);
}

/** kubelet writes the pod's uid with `_` under the systemd driver. */
function podOf(parts: readonly string[]): string | undefined {
  if (!parts.some((part) => part === 'kubepods' || part.startsWith('kubepods'))) return undefined;
  const named = parts.findLast((part) => /(^|-)pod[0-9a-f]{8}/.test(part));
  return named === undefined ? '' : (/pod([0-9a-f_-]+)/.exec(named)?.[1] ?? '').replaceAll('_', '-');
}
