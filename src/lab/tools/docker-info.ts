import { formatted, runs } from './docker-lists.ts';
import { last, readOptions } from './options.ts';
import { out, type ToolAnswer, type ToolCall } from './tool.ts';

/** `docker version`; says that it is a stand-in. */
export function version(words: readonly string[]): ToolAnswer {
  const server = { Version: '29.2.1', ApiVersion: '1.53', Os: 'linux', Arch: 'arm64' };
  const value = {
    Client: { ...server, Context: 'default' },
    Server: { ...server, Platform: { Name: 'firstlight lab stand-in' } },
  };
  const format = last(readOptions(words, { '-f': 'format', '--format': 'format' }, new Set()), 'format');
  if (format !== undefined) return out(`${formatted(format, value)}\n`);
  return out(
    `Client: Docker Engine - Community (firstlight lab stand-in)\n Version:           29.2.1\n API version:       1.53\n OS/Arch:           linux/arm64\n\nServer: Docker Engine - Community (firstlight lab stand-in)\n Engine:\n  Version:          29.2.1\n  API version:      1.53\n  OS/Arch:          linux/arm64\n`,
  );
}

/** `docker info`. */
export function info(call: ToolCall, words: readonly string[]): ToolAnswer {
  const { list } = call.host.docker;
  const value = {
    Containers: list.length,
    ContainersRunning: list.filter(runs).length,
    Images: call.host.images.length,
    Driver: 'overlay2',
    CgroupDriver: 'systemd',
    CgroupVersion: '2',
    Runtimes: { runc: {}, nvidia: { path: 'nvidia-container-runtime' } },
    DefaultRuntime: 'runc',
    OperatingSystem: 'Ubuntu 24.04.4 LTS',
    OSType: 'linux',
    Architecture: 'aarch64',
    ServerVersion: '29.2.1 (firstlight lab stand-in)',
    SecurityOptions: ['name=apparmor', 'name=cgroupns'],
    CDISpecDirs: ['/etc/cdi', '/var/run/cdi'],
    Name: call.host.name,
    DockerRootDir: '/var/lib/docker',
  };
  const format = last(readOptions(words, { '-f': 'format', '--format': 'format' }, new Set()), 'format');
  if (format !== undefined) return out(`${formatted(format, value)}\n`);
  return out(
    `${Object.entries(value)
      .filter(([, inner]) => typeof inner !== 'object')
      .map(([key, inner]) => ` ${key}: ${String(inner)}`)
      .join('\n')}\n`,
  );
}
