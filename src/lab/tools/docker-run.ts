import { readFileSync } from 'node:fs';
import type { ContainerSpec, RestartPolicy } from '../docker.ts';
import { all, given, last, readOptions } from './options.ts';
import type { ToolCall } from './tool.ts';

const OPTIONS = {
  '-d': 'detach',
  '--detach': 'detach',
  '--rm': 'rm',
  '-i': 'interactive',
  '--interactive': 'interactive',
  '-t': 'tty',
  '--tty': 'tty',
  '--init': 'init',
  '--privileged': 'privileged',
  '--read-only': 'read-only',
  '--name': 'name',
  '-l': 'label',
  '--label': 'label',
  '-e': 'env',
  '--env': 'env',
  '--env-file': 'env-file',
  '-v': 'volume',
  '--volume': 'volume',
  '--mount': 'mount',
  '--tmpfs': 'tmpfs',
  '--network': 'network',
  '--net': 'network',
  '--ipc': 'ipc',
  '--pid': 'pid',
  '--gpus': 'gpus',
  '--device': 'device',
  '--runtime': 'runtime',
  '--shm-size': 'shm-size',
  '--ulimit': 'ulimit',
  '--cap-add': 'cap-add',
  '--cap-drop': 'cap-drop',
  '--security-opt': 'security-opt',
  '--restart': 'restart',
  '--entrypoint': 'entrypoint',
  '-w': 'workdir',
  '--workdir': 'workdir',
  '-u': 'user',
  '--user': 'user',
  '-h': 'hostname',
  '--hostname': 'hostname',
  '--pull': 'pull',
  '-p': 'publish',
  '--publish': 'publish',
  '--stop-timeout': 'stop-timeout',
  '--stop-signal': 'stop-signal',
  '-m': 'memory',
  '--memory': 'memory',
  '--memory-swap': 'memory-swap',
  '--oom-score-adj': 'oom-score-adj',
  '--pids-limit': 'pids-limit',
  '--log-driver': 'log-driver',
  '--log-opt': 'log-opt',
  '--add-host': 'add-host',
  '--group-add': 'group-add',
  '--cpuset-cpus': 'cpuset-cpus',
  '--platform': 'platform',
  '--cidfile': 'cidfile',
  '--label-file': 'label-file',
} as const;

const FLAGS = new Set(['detach', 'rm', 'interactive', 'tty', 'init', 'privileged', 'read-only']);

export type RunWish = { readonly spec: ContainerSpec; readonly detach: boolean };

/** Words after `docker run` or `docker create` → what to make, or docker's own complaint. */
export function readRun(words: readonly string[], call: ToolCall): RunWish | string {
  const options = readOptions(words, OPTIONS, FLAGS, true);
  if (options.unknown !== undefined) return `unknown flag: ${options.unknown}`;
  const [image, ...command] = options.rest;
  if (image === undefined) return '"docker run" requires at least 1 argument.';
  const mounts = [
    ...all(options, 'volume').map(volume),
    ...all(options, 'mount').flatMap((text) => mount(text) ?? []),
  ];
  const targets = mounts.map(({ target }) => target);
  const twice = targets.find((target, at) => targets.indexOf(target) !== at);
  if (twice !== undefined) return `Error response from daemon: Duplicate mount point: ${twice}`;
  let env: Readonly<Record<string, string>>;
  try {
    env = { ...envFiles(all(options, 'env-file'), call), ...pairs(all(options, 'env'), call.env) };
  } catch {
    return `open ${all(options, 'env-file').join(', ')}: no such file or directory`;
  }
  const [policy = 'no', retries = '0'] = (last(options, 'restart') ?? 'no').split(':');
  if (!isPolicy(policy))
    return `Error response from daemon: invalid restart policy: unknown policy '${policy}'`;
  if (policy !== 'no' && given(options, 'rm'))
    return 'conflicting options: cannot specify both --restart and --rm';
  return {
    detach: given(options, 'detach'),
    spec: {
      name: last(options, 'name') ?? `lab_${call.pid}`,
      image,
      command,
      entrypoint: last(options, 'entrypoint') === undefined ? undefined : [last(options, 'entrypoint') ?? ''],
      env,
      labels: pairs(all(options, 'label'), {}),
      mounts,
      networkMode: last(options, 'network') ?? 'bridge',
      restart: policy,
      maximumRetries: Number(retries) || 0,
      autoRemove: given(options, 'rm'),
      stopSeconds: Number(last(options, 'stop-timeout') ?? 10),
      shmBytes: size(last(options, 'shm-size') ?? '64m'),
      ipcMode: last(options, 'ipc') ?? 'private',
      gpus:
        all(options, 'gpus').length > 0 ||
        all(options, 'device').some((one) => one.startsWith('nvidia.com/')),
      devices: all(options, 'device'),
    },
  };
}

function isPolicy(text: string): text is RestartPolicy {
  return text === 'no' || text === 'always' || text === 'unless-stopped' || text === 'on-failure';
}

function volume(text: string): ContainerSpec['mounts'][number] {
  const [source = '', target = '', mode = ''] = text.split(':');
  return { source, target: target.replace(/(.)\/$/, '$1'), readOnly: mode.split(',').includes('ro') };
}

function mount(text: string): ContainerSpec['mounts'][number] | undefined {
  const part = (names: readonly string[]): string | undefined =>
    text
      .split(',')
      .map((pair) => pair.split('='))
      .find(([key = '']) => names.includes(key))?.[1];
  const source = part(['source', 'src']);
  const target = part(['target', 'dst', 'destination']);
  if (source === undefined || target === undefined) return undefined;
  return { source, target, readOnly: /(^|,)(readonly|ro)(,|=|$)/.test(text) };
}

/** `KEY=value`, or `KEY` to take it over from the caller, where it has one. */
function pairs(
  list: readonly string[],
  outer: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    list.flatMap((text) => {
      const at = text.indexOf('=');
      if (at > 0) return [[text.slice(0, at), text.slice(at + 1)] as const];
      const inherited = outer[text];
      return inherited === undefined ? [] : [[text, inherited] as const];
    }),
  );
}

function envFiles(files: readonly string[], call: ToolCall): Readonly<Record<string, string>> {
  return Object.assign(
    {},
    ...files.map((file) =>
      pairs(
        readFileSync(call.host.realPath(file, call.cwd), 'utf8')
          .split('\n')
          .filter((line) => line !== '' && !line.startsWith('#')),
        call.env,
      ),
    ),
  );
}

const UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

function size(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([bkmg]?)/i.exec(text);
  return Math.round(Number(match?.[1] ?? 0) * (UNITS[(match?.[2] ?? '').toLowerCase()] ?? 1));
}
