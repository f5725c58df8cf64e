import type { Container } from '../docker.ts';
import { readRun } from './docker-run.ts';
import { imageInspected, imageName, inspected, psRow, table } from './docker-views.ts';
import { goTemplate } from './go-template.ts';
import { all, given, last, type Options, readOptions } from './options.ts';
import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

/** docker's command line over the lab host's dockerd. */
export async function docker(call: ToolCall): Promise<ToolAnswer> {
  const [verb = '', ...words] = call.argv;
  if (call.uid !== 0 && !call.host.dockerGroup) return bad(NOT_IN_GROUP);
  try {
    switch (verb) {
      case 'container':
        return await docker({ ...call, argv: words[0] === 'ls' ? ['ps', ...words.slice(1)] : words });
      case 'ps':
        return ps(call, words);
      case 'inspect':
        return inspect(call, words);
      case 'image':
        return words[0] === 'inspect'
          ? imageInspect(call, words.slice(1))
          : words[0] === 'ls'
            ? images(call, words.slice(1))
            : bad(`unknown command: docker image ${words[0] ?? ''}`);
      case 'images':
        return images(call, words);
      case 'run':
        return await run(call, words);
      case 'create':
        return create(call, words);
      case 'start':
        return each(call, words, {}, new Set(), (container) => {
          call.host.docker.start(container);
          return Promise.resolve();
        });
      case 'stop':
      case 'restart': {
        const known = {
          '-t': 'time',
          '--time': 'time',
          '--timeout': 'time',
          '-s': 'signal',
          '--signal': 'signal',
        };
        return await each(call, words, known, new Set(), async (container, options) => {
          const time = last(options, 'time');
          await call.host.docker.stop(container, time === undefined ? undefined : Number(time));
          if (verb === 'restart') call.host.docker.start(container);
        });
      }
      case 'kill':
        return await each(call, words, { '-s': 'signal', '--signal': 'signal' }, new Set(), kill(call));
      case 'rm': {
        const known = { '-f': 'force', '--force': 'force', '-v': 'volumes', '--volumes': 'volumes' };
        return await each(call, words, known, new Set(['force', 'volumes']), async (container, options) => {
          if (container.state === 'running' && !given(options, 'force')) {
            throw new Error(
              `Error response from daemon: cannot remove container "${container.spec.name}": container is running: stop the container before removing or force remove`,
            );
          }
          await call.host.docker.remove(container);
        });
      }
      case 'update':
        return await each(call, words, { '--restart': 'restart' }, new Set(), (container, options) => {
          const policy = last(options, 'restart')?.split(':')[0];
          if (
            policy === 'no' ||
            policy === 'always' ||
            policy === 'unless-stopped' ||
            policy === 'on-failure'
          ) {
            if (container.spec.autoRemove && policy !== 'no') {
              throw new Error(
                'Error response from daemon: Restart policy cannot be updated because AutoRemove is enabled for the container',
              );
            }
            container.restart = policy;
          }
          return Promise.resolve();
        });
      case 'wait':
        return await waitFor(call, words);
      case 'logs':
        return await logs(call, words);
      case 'top':
      case 'stats':
      case 'exec':
      case 'pull':
      case 'build':
      case 'compose':
        return bad(`Error response from daemon: ${verb} is not supported by this firstlight lab stand-in`);
      case 'version':
        return version(words);
      case '-v':
      case '--version':
        return out('Docker version 29.2.1, build firstlight lab stand-in\n');
      case 'info':
        return info(call, words);
      default:
        return bad(`docker: unknown command: docker ${verb}\n\nRun 'docker --help' for more information`);
    }
  } catch (error) {
    return bad(error instanceof Error ? error.message : String(error));
  }
}

const NOT_IN_GROUP =
  'permission denied while trying to connect to the docker API at unix:///var/run/docker.sock';

function missing(reference: string): Error {
  return new Error(`Error response from daemon: No such container: ${reference}`);
}

async function each(
  call: ToolCall,
  words: readonly string[],
  known: Readonly<Record<string, string>>,
  flags: ReadonlySet<string>,
  act: (container: Container, options: Options) => Promise<void>,
): Promise<ToolAnswer> {
  const options = readOptions(words, known, flags);
  if (options.unknown !== undefined) return bad(`unknown flag: ${options.unknown}`, 125);
  let stdout = '';
  let stderr = '';
  for (const reference of options.rest) {
    try {
      const container = call.host.docker.find(reference);
      if (container === undefined) throw missing(reference);
      await act(container, options);
      stdout += `${reference}\n`;
    } catch (error) {
      stderr += `${error instanceof Error ? error.message : String(error)}\n`;
    }
  }
  return { stdout, stderr, code: stderr === '' ? 0 : 1 };
}

function kill(call: ToolCall) {
  return async (container: Container, options: Options): Promise<void> => {
    if (container.state !== 'running') {
      throw new Error(
        `Error response from daemon: cannot kill container: ${container.spec.name}: container ${container.id} is not running`,
      );
    }
    const text = last(options, 'signal') ?? 'KILL';
    await call.host.docker.kill(container, call.host.signalNamed(text));
  };
}

function ps(call: ToolCall, words: readonly string[]): ToolAnswer {
  const options = readOptions(
    words,
    {
      '-a': 'all',
      '--all': 'all',
      '-q': 'quiet',
      '--quiet': 'quiet',
      '--no-trunc': 'whole',
      '--format': 'format',
      '-f': 'filter',
      '--filter': 'filter',
      '-n': 'last',
      '--last': 'last',
      '-s': 'size',
      '--size': 'size',
    },
    new Set(['all', 'quiet', 'whole', 'size']),
  );
  if (options.unknown !== undefined) return bad(`unknown flag: ${options.unknown}`, 125);
  const filters = all(options, 'filter');
  const shown = call.host.docker.list.filter(
    (container) =>
      (given(options, 'all') || filters.some((filter) => filter.startsWith('status=')) || runs(container)) &&
      filters.every((filter) => passes(container, filter)),
  );
  const whole = given(options, 'whole');
  const rows = shown.map((container) => psRow(container, call.host.imageNamed(container.spec.image), whole));
  if (given(options, 'quiet')) return out(rows.map((row) => `${String(row['ID'])}\n`).join(''));
  const format = last(options, 'format');
  if (format === undefined || format === 'table') {
    const columns = ['ID', 'Image', 'Command', 'Status', 'Names'];
    return out(
      table([
        ['CONTAINER ID', 'IMAGE', 'COMMAND', 'STATUS', 'NAMES'],
        ...rows.map((row) => columns.map((column) => String(row[column]))),
      ]),
    );
  }
  return out(rows.map((row) => `${formatted(format, row)}\n`).join(''));
}

function runs(container: Container): boolean {
  return container.state === 'running' || container.state === 'restarting';
}

function passes(container: Container, filter: string): boolean {
  const at = filter.indexOf('=');
  const key = filter.slice(0, at);
  const value = filter.slice(at + 1);
  switch (key) {
    case 'name':
      return new RegExp(value).test(`/${container.spec.name}`) || new RegExp(value).test(container.spec.name);
    case 'id':
      return container.id.startsWith(value);
    case 'status':
      return container.state === value;
    case 'label': {
      const [label = '', wanted] = value.split('=');
      const found = container.spec.labels[label];
      return found !== undefined && (wanted === undefined || found === wanted);
    }
    case 'ancestor':
      return container.spec.image === value;
    default:
      throw new Error(`Error response from daemon: invalid filter '${key}'`);
  }
}

function formatted(format: string, value: unknown): string {
  return format === 'json' ? JSON.stringify(value) : goTemplate(format, value);
}

function inspect(call: ToolCall, words: readonly string[]): ToolAnswer {
  const options = readOptions(
    words,
    { '-f': 'format', '--format': 'format', '--type': 'type', '-s': 'size', '--size': 'size' },
    new Set(['size']),
  );
  const type = last(options, 'type');
  return inspectAll(
    options,
    (reference) => {
      const container = type === 'image' ? undefined : call.host.docker.find(reference);
      if (container !== undefined) return inspected(container, call.host.imageNamed(container.spec.image));
      const image = type === 'container' ? undefined : call.host.imageNamed(reference);
      return image === undefined ? undefined : imageInspected(image);
    },
    'object',
  );
}

function imageInspect(call: ToolCall, words: readonly string[]): ToolAnswer {
  const options = readOptions(
    words,
    { '-f': 'format', '--format': 'format', '--platform': 'platform' },
    new Set(),
  );
  return inspectAll(
    options,
    (reference) => {
      const image = call.host.imageNamed(reference);
      return image === undefined ? undefined : imageInspected(image);
    },
    'image',
  );
}

function inspectAll(
  options: Options,
  find: (reference: string) => Record<string, unknown> | undefined,
  what: 'object' | 'image',
): ToolAnswer {
  const found = options.rest.map((reference) => ({ reference, value: find(reference) }));
  const values = found.flatMap(({ value }) => (value === undefined ? [] : [value]));
  const stderr = found
    .filter(({ value }) => value === undefined)
    .map(({ reference }) =>
      what === 'image'
        ? `Error response from daemon: No such image: ${reference}\n`
        : `error: no such object: ${reference}\n`,
    )
    .join('');
  const format = last(options, 'format');
  const stdout =
    format === undefined || format === 'json'
      ? `${JSON.stringify(values, null, format === undefined ? 4 : undefined)}\n`
      : values.length === 0
        ? '\n'
        : values.map((value) => `${formatted(format, value)}\n`).join('');
  return { stdout, stderr, code: stderr === '' ? 0 : 1 };
}

function images(call: ToolCall, words: readonly string[]): ToolAnswer {
  const options = readOptions(
    words,
    {
      '-a': 'all',
      '--all': 'all',
      '-q': 'quiet',
      '--quiet': 'quiet',
      '--no-trunc': 'whole',
      '--format': 'format',
      '--filter': 'filter',
      '--digests': 'digests',
    },
    new Set(['all', 'quiet', 'whole', 'digests']),
  );
  const rows = call.host.images
    .filter(({ reference }) => options.rest.length === 0 || options.rest.includes(reference))
    .map((image) => {
      const { repository, tag } = imageName(image.reference);
      return {
        Repository: repository,
        Tag: tag,
        ID: given(options, 'whole') ? image.id : image.id.slice(7, 19),
        Digest: image.id,
        CreatedAt: '2026-09-20 08:00:00 +0000 UTC',
        CreatedSince: '2 months ago',
        Size: `${(image.bytes / 1e9).toFixed(1)}GB`,
      };
    });
  if (given(options, 'quiet')) return out(rows.map((row) => `${row.ID}\n`).join(''));
  const format = last(options, 'format');
  if (format === undefined) {
    return out(
      table([
        ['REPOSITORY', 'TAG', 'IMAGE ID', 'CREATED', 'SIZE'],
        ...rows.map((row) => [row.Repository, row.Tag, row.ID, row.CreatedSince, row.Size]),
      ]),
    );
  }
  return out(rows.map((row) => `${formatted(format, row)}\n`).join(''));
}

function create(call: ToolCall, words: readonly string[]): ToolAnswer {
  const wish = readRun(words, call);
  if (typeof wish === 'string') return bad(`docker: ${wish}`, 125);
  return out(`${make(call, wish.spec).id}\n`);
}

function make(call: ToolCall, spec: Container['spec']): Container {
  const { docker: dockerd } = call.host;
  if (call.host.imageNamed(spec.image) === undefined) {
    throw new Error(`docker: Error response from daemon: No such image: ${spec.image}`);
  }
  const other = dockerd.list.find((container) => container.spec.name === spec.name);
  if (other !== undefined) {
    throw new Error(
      `docker: Error response from daemon: Conflict. The container name "/${spec.name}" is already in use by container "${other.id}". You have to remove (or rename) that container to be able to reuse that name.`,
    );
  }
  return dockerd.create(spec);
}

/** Attached, its output is passed on, and signals of the client go to the container, as docker's sig-proxy does. */
async function run(call: ToolCall, words: readonly string[]): Promise<ToolAnswer> {
  const wish = readRun(words, call);
  if (typeof wish === 'string')
    return bad(`docker: ${wish}\n\nRun 'docker run --help' for more information`, 125);
  let container: Container;
  try {
    container = make(call, wish.spec);
  } catch (error) {
    return bad(error instanceof Error ? error.message : String(error), 125);
  }
  const { docker: dockerd } = call.host;
  const stop = container.log.follow(({ stream, text }) => {
    if (!wish.detach) call.print(stream, `${text}\n`);
  });
  try {
    dockerd.start(container);
  } catch (error) {
    stop();
    return bad(`docker: ${error instanceof Error ? error.message : String(error)}`, 127);
  }
  if (wish.detach) {
    stop();
    return out(`${container.id}\n`);
  }
  call.onSignal((name) => call.host.signalContainer(container, name));
  const code = await dockerd.wait(container);
  stop();
  return { stdout: '', stderr: '', code };
}

async function waitFor(call: ToolCall, words: readonly string[]): Promise<ToolAnswer> {
  for (const reference of words) {
    const container = call.host.docker.find(reference);
    if (container === undefined) return bad(missing(reference).message);
    call.print('stdout', `${await call.host.docker.wait(container)}\n`);
  }
  return out('');
}

async function logs(call: ToolCall, words: readonly string[]): Promise<ToolAnswer> {
  const options = readOptions(
    words,
    {
      '-f': 'follow',
      '--follow': 'follow',
      '-t': 'timestamps',
      '--timestamps': 'timestamps',
      '--since': 'since',
      '--until': 'until',
      '-n': 'tail',
      '--tail': 'tail',
      '--details': 'details',
    },
    new Set(['follow', 'timestamps', 'details']),
  );
  const [reference = ''] = options.rest;
  const container = call.host.docker.find(reference);
  if (container === undefined) return bad(missing(reference).message);
  const print = (line: { at: string; stream: 'stdout' | 'stderr'; text: string }): void =>
    call.print(line.stream, `${given(options, 'timestamps') ? `${line.at} ` : ''}${line.text}\n`);
  const since = moment(last(options, 'since'));
  const old = container.log.lines.filter(({ at }) => since === undefined || at >= since);
  const tail = last(options, 'tail');
  const count = tail === undefined || tail === 'all' ? old.length : Number(tail);
  for (const line of count === 0 ? [] : old.slice(-count)) print(line);
  if (!given(options, 'follow') || !runs(container)) return out('');
  const stop = container.log.follow(print);
  await Promise.race([
    call.host.docker.wait(container),
    new Promise<void>((resolve) => call.gone.addEventListener('abort', () => resolve())),
  ]);
  stop();
  return out('');
}

/** `--since`: RFC 3339, seconds since the epoch, or how long ago → a stamp that compares with a line's. */
function moment(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (text.includes('T')) return text;
  const ago = /^(\d+)([smh])$/.exec(text);
  const unit = { s: 1000, m: 60_000, h: 3_600_000 }[ago?.[2] ?? ''];
  const at = unit === undefined ? Number(text) * 1000 : Date.now() - Number(ago?.[1]) * unit;
  return Number.isFinite(at) ? new Date(at).toISOString().replace('Z', '000000Z') : undefined;
}

function version(words: readonly string[]): ToolAnswer {
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

function info(call: ToolCall, words: readonly string[]): ToolAnswer {
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
