import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseObject } from '../domain/json.ts';
import { UserError } from '../domain/user-error.ts';
import { readText } from './read-text.ts';

type Json = Readonly<Record<string, unknown>>;

/** What lies in a model's folder, or in one file that describes it. */
export type ModelOnDisk = {
  readonly name: string;
  /** config.json, or the one file that was named. */
  readonly config: Json;
  readonly modelopt: Json | undefined;
  /** `metadata.total_size` of the index. */
  readonly indexBytes: number | undefined;
  /** Sum of the weight files; undefined without any. */
  readonly fileBytes: number | undefined;
  /** Headers of all safetensors shards as text; undefined where one could not be read, so that none is missing. */
  readonly headers: readonly string[] | undefined;
  /** The first bytes of every GGUF file, which begin with its header. */
  readonly gguf: readonly { readonly head: Uint8Array; readonly bytes: number }[];
};

const CONFIG_LIMIT = 2 ** 20;
const INDEX_LIMIT = 64 * 2 ** 20;
/** A vocabulary of a quarter million words, its merges and the list of tensors lie well within. */
const GGUF_HEAD = 64 * 2 ** 20;
const HEADER_LIMIT = 100 * 2 ** 20;
const WEIGHTS = /\.(?:safetensors|bin|gguf)$/;

/**
 * Reads a model's folder (config.json, hf_quant_config.json, the index, and the first bytes of each shard, never the
 * weights), a GGUF file, a config.json, or a description. Throws a UserError `bad-input` for what is none of these.
 */
export function readModel(path: string, index: string | undefined): ModelOnDisk {
  if (path.endsWith('.gguf') && exists(path)) return ggufAlone(path);
  const folder = isFolder(path);
  const lone =
    folder &&
    !exists(join(path, 'config.json')) &&
    weightFiles(path).some(({ name }) => name.endsWith('.gguf'));
  const config = lone
    ? {}
    : json(folder ? join(path, 'config.json') : path, 'model description', CONFIG_LIMIT);
  const beside = folder ? path : basename(path) === 'config.json' ? dirname(path) : undefined;
  const files = folder ? weightFiles(path) : [];
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  const shards = files.filter(({ name }) => name.endsWith('.safetensors'));
  const headers = shards.map(({ name }) => headerOf(join(path, name)));
  const read = headers.filter((header) => header !== undefined);
  const named = index ?? (folder ? indexIn(path) : undefined);
  return {
    name: folder ? basename(path) : basename(path, '.json'),
    config,
    modelopt:
      beside === undefined || !exists(join(beside, 'hf_quant_config.json'))
        ? undefined
        : json(join(beside, 'hf_quant_config.json'), 'quantisation config', CONFIG_LIMIT * 8),
    indexBytes: named === undefined ? undefined : totalOf(json(named, 'index', INDEX_LIMIT), named),
    fileBytes: total > 0 ? total : undefined,
    headers: read.length > 0 && read.length === shards.length ? read : undefined,
    gguf: files
      .filter(({ name }) => name.endsWith('.gguf'))
      .map(({ name, bytes }) => ggufHead(join(path, name), bytes)),
  };
}

function ggufAlone(path: string): ModelOnDisk {
  const { size } = statSync(path);
  return {
    name: basename(path, '.gguf'),
    config: {},
    modelopt: undefined,
    indexBytes: undefined,
    fileBytes: size,
    headers: undefined,
    gguf: [ggufHead(path, size)],
  };
}

function ggufHead(path: string, bytes: number): { readonly head: Uint8Array; readonly bytes: number } {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(Math.min(bytes, GGUF_HEAD));
    let at = 0;
    while (at < buffer.length) {
      const count = readSync(file, buffer, at, buffer.length - at, at);
      if (count === 0) break;
      at += count;
    }
    return { head: buffer.subarray(0, at), bytes };
  } finally {
    closeSync(file);
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function indexIn(folder: string): string | undefined {
  const found = readdirSync(folder).find((name) => name.endsWith('.safetensors.index.json'));
  return found === undefined ? undefined : join(folder, found);
}

function weightFiles(folder: string): readonly { readonly name: string; readonly bytes: number }[] {
  return readdirSync(folder)
    .filter((name) => WEIGHTS.test(name))
    .flatMap((name) => {
      const stat = statSync(join(folder, name), { throwIfNoEntry: false });
      return stat?.isFile() ? [{ name, bytes: stat.size }] : [];
    });
}

function json(path: string, what: string, limitBytes: number): Json {
  const text = readText(path, {
    code: 'bad-input',
    what,
    absent: "Name a model's folder, its config.json, or a file that describes it.",
    limitBytes,
  });
  const parsed = parseObject(text);
  if (parsed !== undefined) return parsed;
  throw new UserError('bad-input', `${path} is no JSON object`, `Name a ${what} in JSON.`);
}

function totalOf(index: Json, path: string): number | undefined {
  const { metadata } = index;
  const total =
    typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'total_size') : undefined;
  if (typeof total === 'number' && Number.isFinite(total) && total > 0) return total;
  if (typeof index['weight_map'] === 'object') return undefined;
  throw new UserError(
    'bad-input',
    `${path} is no index of safetensors files`,
    'Name model.safetensors.index.json.',
  );
}

/** The JSON before a shard's tensors: eight bytes of its length, then itself. Undefined where there is none. */
function headerOf(path: string): string | undefined {
  const file = openSync(path, 'r');
  try {
    const first = Buffer.alloc(8);
    if (readSync(file, first, 0, 8, 0) < 8) return undefined;
    const length = Number(first.readBigUInt64LE());
    if (length < 2 || length > HEADER_LIMIT) return undefined;
    const text = Buffer.alloc(length);
    let at = 0;
    while (at < length) {
      const count = readSync(file, text, at, length - at, 8 + at);
      if (count === 0) return undefined;
      at += count;
    }
    return text.toString('utf8');
  } finally {
    closeSync(file);
  }
}
