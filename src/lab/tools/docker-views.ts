import type { Container } from '../docker.ts';
import type { LabImage } from '../images.ts';

/** `docker inspect` of a container: the parts of the real thing that people and tools read. */
export function inspected(container: Container, image: LabImage | undefined): Record<string, unknown> {
  const { spec } = container;
  const command = [...(spec.entrypoint ?? image?.entrypoint ?? []), ...spec.command];
  return {
    Id: container.id,
    Created: container.created,
    Path: command[0] ?? '',
    Args: command.slice(1),
    State: {
      Status: container.state,
      Running: container.state === 'running' || container.state === 'restarting',
      Paused: false,
      Restarting: container.state === 'restarting',
      OOMKilled: false,
      Dead: false,
      Pid: container.pid,
      ExitCode: container.exitCode,
      Error: '',
      StartedAt: container.startedAt,
      FinishedAt: container.finishedAt,
    },
    Image: image?.id ?? '',
    Name: `/${spec.name}`,
    RestartCount: container.restartCount,
    Driver: 'overlay2',
    Platform: 'linux',
    LogPath: `/var/lib/docker/containers/${container.id}/${container.id}-json.log`,
    HostConfig: {
      Binds: spec.mounts.map(({ source, target, readOnly }) => `${source}:${target}${readOnly ? ':ro' : ''}`),
      LogConfig: { Type: 'json-file', Config: {} },
      NetworkMode: spec.networkMode,
      RestartPolicy: { Name: container.restart, MaximumRetryCount: spec.maximumRetries },
      AutoRemove: spec.autoRemove,
      IpcMode: spec.ipcMode,
      Privileged: false,
      ShmSize: spec.shmBytes,
      Runtime: 'runc',
      Devices: spec.devices.map((path) => ({
        PathOnHost: path,
        PathInContainer: path,
        CgroupPermissions: 'rwm',
      })),
      DeviceRequests: spec.gpus ? [{ Driver: '', Count: -1, Capabilities: [['gpu']] }] : [],
    },
    Mounts: spec.mounts.map(({ source, target, readOnly }) => ({
      Type: 'bind',
      Source: source,
      Destination: target,
      Mode: readOnly ? 'ro' : '',
      RW: !readOnly,
      Propagation: 'rprivate',
    })),
    Config: {
      Hostname: container.id.slice(0, 12),
      User: '',
      Tty: false,
      Env: Object.entries(spec.env).map(([key, value]) => `${key}=${value}`),
      Cmd: spec.command,
      Image: spec.image,
      WorkingDir: '',
      Entrypoint: spec.entrypoint ?? image?.entrypoint ?? null,
      Labels: spec.labels,
      StopTimeout: spec.stopSeconds,
    },
    NetworkSettings: { Ports: {}, Networks: { [spec.networkMode]: {} } },
  };
}

/** One row of `docker ps`, under the names of its `--format json`. */
export function psRow(
  container: Container,
  image: LabImage | undefined,
  whole: boolean,
): Record<string, unknown> {
  const { spec } = container;
  const command = [...(spec.entrypoint ?? image?.entrypoint ?? []), ...spec.command].join(' ');
  const cut = whole || command.length <= 20 ? command : `${command.slice(0, 19)}…`;
  return {
    Command: `"${cut}"`,
    CreatedAt: container.created.replace('T', ' ').replace(/\.\d+Z$/, ' +0000 UTC'),
    ID: whole ? container.id : container.id.slice(0, 12),
    Image: spec.image,
    Labels: Object.entries(spec.labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    LocalVolumes: '0',
    Mounts: spec.mounts.map(({ source }) => source).join(','),
    Names: spec.name,
    Networks: spec.networkMode,
    Platform: null,
    Ports: '',
    RunningFor: `${ago(container.created)} ago`,
    Size: '0B',
    State: container.state,
    Status: status(container),
  };
}

function status(container: Container): string {
  switch (container.state) {
    case 'created':
      return 'Created';
    case 'running':
      return `Up ${ago(container.startedAt)}`;
    case 'restarting':
      return `Restarting (${container.exitCode}) ${ago(container.finishedAt)} ago`;
    case 'exited':
      return `Exited (${container.exitCode}) ${ago(container.finishedAt)} ago`;
  }
}

function ago(stamp: string): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(stamp.replace(/\d{6}Z$/, 'Z'))) / 1000));
  if (seconds < 1) return 'Less than a second';
  if (seconds < 60) return `${seconds} second${seconds === 1 ? '' : 's'}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes === 1 ? 'About a minute' : `${minutes} minutes`;
  const hours = Math.floor(minutes / 60);
  return hours === 1 ? 'About an hour' : `${hours} hours`;
}

export function imageInspected(image: LabImage): Record<string, unknown> {
  return {
    Id: image.id,
    RepoTags: [image.reference],
    RepoDigests: [`${image.reference.replace(/:[^:/]*$/, '')}@${image.id}`],
    Created: '2026-09-20T08:00:00Z',
    Architecture: image.arch,
    Variant: image.arch === 'arm64' ? 'v8' : '',
    Os: 'linux',
    Size: image.bytes,
    Config: {
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      Entrypoint: image.entrypoint.length === 0 ? null : image.entrypoint,
      Cmd: ['/bin/bash'],
      Labels: image.labels,
    },
  };
}

/** Splits `name:tag` of an image, tag `latest` where there is none. */
export function imageName(reference: string): { readonly repository: string; readonly tag: string } {
  const at = reference.lastIndexOf(':');
  return at > reference.lastIndexOf('/')
    ? { repository: reference.slice(0, at), tag: reference.slice(at + 1) }
    : { repository: reference, tag: 'latest' };
}

export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd((widths[column] ?? 0) + 3)))
        .join(''),
    )
    .join('\n')
    .concat('\n');
}
