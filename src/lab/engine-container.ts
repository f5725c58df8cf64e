import { type ChildProcess, spawn } from 'node:child_process';
import type { Container } from './docker.ts';
import type { LabImage } from './images.ts';

/** What an engine image has on its PATH, besides shells. */
const PROGRAMS = ['sglang', 'vllm', 'ray', 'python3', 'python', 'sh', 'bash', 'env', '/bin/sh', '/bin/bash'];

/** A child may keep the output open after the main process has ended; so long it is waited for. */
const DRAIN_MS = 500;

/**
 * Starts what a container of an engine image runs, as a real process with the container's own environment; its
 * output is the container's log. Throws in dockerd's words where the image has no such program.
 */
export function startEngine(options: {
  readonly container: Container;
  readonly image: LabImage;
  readonly root: string;
  readonly hostname: string;
  readonly env: Readonly<Record<string, string>>;
  readonly realPath: (path: string) => string;
  readonly over: (bySignal: NodeJS.Signals | null, code: number | null) => void;
}): { readonly pid: number; readonly argv: readonly string[] } {
  const { container, image, root, hostname, realPath, over } = options;
  const { spec, id, log } = container;
  const command = [...(spec.entrypoint ?? image.entrypoint), ...spec.command];
  // The image's own entry script only hands on; here its place is taken by what it would start.
  const argv = command[0]?.endsWith('.sh') ? command.slice(1) : command;
  const [program = ''] = argv;
  if (!PROGRAMS.includes(program) || image.lacks.includes(program)) {
    throw new Error(
      `Error response from daemon: failed to create task for container: exec: "${program}": executable file not found in $PATH`,
    );
  }
  const env = {
    ...options.env,
    HOSTNAME: spec.networkMode === 'host' ? hostname : id.slice(0, 12),
    ...Object.fromEntries(Object.entries(spec.env).filter(([key]) => !image.unsets.includes(key))),
    FIRSTLIGHT_LAB_MOUNTS: [
      ...spec.mounts.map(({ source, target }) => `${target}=${realPath(source)}`),
      ...Object.keys(image.files).map((path) => `${path}=${realPath(imagePath(image, path))}`),
    ].join('\n'),
    ...(image.nccl === undefined ? {} : { FIRSTLIGHT_LAB_NCCL: image.nccl }),
    FIRSTLIGHT_LAB_READ_ONLY: spec.mounts
      .filter(({ readOnly }) => readOnly)
      .map(({ target }) => target)
      .join('\n'),
    FIRSTLIGHT_LAB_DEVICES: spec.devices.join('\n'),
    FIRSTLIGHT_LAB_UID: '0',
    FIRSTLIGHT_LAB_LACKS: image.lacks.join(' '),
    // For tests: how fast the stand-ins' time goes, where the recipe says nothing.
    ...(process.env['FIRSTLIGHT_LAB_SPEED'] === undefined || 'FIRSTLIGHT_LAB_SPEED' in spec.env
      ? {}
      : { FIRSTLIGHT_LAB_SPEED: process.env['FIRSTLIGHT_LAB_SPEED'] }),
  };
  // The image's start script, as far as it matters: variables that it cannot do without, and a second try.
  const script = [
    ...image.requires.map((name) => `: "\${${name}:?}"`),
    image.startsAgain ? '"$@" || { sleep 0.3; exec "$@"; }' : 'exec "$@"',
  ].join('\n');
  const plain = image.requires.length === 0 && !image.startsAgain;
  const [file, ...words] = plain ? argv : ['/bin/sh', '-c', script, '/opt/start.sh', ...argv];
  const child = spawn(file ?? program, words, {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => log.write('stdout', text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => log.write('stderr', text));
  whenClosed(child, over);
  if (child.pid === undefined) throw new Error('Error response from daemon: the container did not start');
  return { pid: child.pid, argv };
}

/** Where a file of an image lies on its host. */
export function imagePath({ id }: LabImage, path: string): string {
  return `/var/lib/docker/image/${id.slice(7, 19)}${path}`;
}

/** Once: when it has ended and its output is through. */
function whenClosed(
  child: ChildProcess,
  over: (bySignal: NodeJS.Signals | null, code: number | null) => void,
): void {
  let done = false;
  const once = (code: number | null, bySignal: NodeJS.Signals | null): void => {
    if (done) return;
    done = true;
    over(bySignal, code);
  };
  child.on('close', once);
  child.on('exit', (code, bySignal) => setTimeout(() => once(code, bySignal), DRAIN_MS).unref());
  child.on('error', () => once(127, null));
}
