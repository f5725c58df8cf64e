import type { Container } from '../docker.ts';
import { imageInspected, imageName, inspected, psRow, table } from './docker-views.ts';
import { goTemplate } from './go-template.ts';
import { all, given, last, type Options, readOptions } from './options.ts';
import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

/** `docker ps`. */
export function ps(call: ToolCall, words: readonly string[]): ToolAnswer {
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

/** It has a process, or will have one again. */
export function runs(container: Container): boolean {
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

/** `--format`: json, or a Go template. */
export function formatted(format: string, value: unknown): string {
  return format === 'json' ? JSON.stringify(value) : goTemplate(format, value);
}

/** `docker inspect`, of containers and images. */
export function inspect(call: ToolCall, words: readonly string[]): ToolAnswer {
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

/** `docker image inspect`. */
export function imageInspect(call: ToolCall, words: readonly string[]): ToolAnswer {
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

/** `docker images`. */
export function images(call: ToolCall, words: readonly string[]): ToolAnswer {
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
