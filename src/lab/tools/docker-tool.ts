import type { Container } from '../docker.ts';
import { signalNamed } from '../exit-code.ts';
import { info, version } from './docker-info.ts';
import { imageInspect, images, inspect, ps, runs } from './docker-lists.ts';
import { readRun } from './docker-run.ts';
import { given, last, type Options, readOptions } from './options.ts';
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
    await call.host.docker.kill(container, signalNamed(text));
  };
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
