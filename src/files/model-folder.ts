import { closeSync, openSync, readdirSync, readSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isObject, parseObject } from '../domain/json.ts';
import { UserError } from '../domain/user-error.ts';
import { errno, readText } from './read-text.ts';

type Json = Readonly<Record<string, unknown>>;

/** What lies in a model's folder, or in one file that describes it. */
export type ModelOnDisk = {
  readonly name: string;
  /** config.json, or the one file that was named. */
  readonly config: Json;
  readonly modelopt: Json | undefined;
  /** `metadata.total_size` of the index. */
  readonly indexBytes: number | undefined;
  /** Sum of the weight files; undefined without any, and where some are missing. */
  readonly fileBytes: number | undefined;
  /** Headers of all safetensors shards as text; undefined where one is missing or could not be read. */
  readonly headers: readonly string[] | undefined;
  /** The first bytes of every GGUF file, which begin with its header. */
  readonly gguf: readonly { readonly head: Uint8Array; readonly bytes: number }[];
};

const CONFIG_LIMIT = 2 ** 20;
const INDEX_LIMIT = 64 * 2 ** 20;
/** A vocabulary of a quarter million words, its merges and the list of tensors lie well within. */
const GGUF_HEAD = 64 * 2 ** 20;
const HEADER_LIMIT = 100 * 2 ** 20;
/** No model is larger: a larger figure is none. */
const LARGEST = 2 ** 50;
const WEIGHTS = /\.(?:safetensors|bin|gguf)$/;

/**
 * Reads a model's folder (config.json, hf_quant_config.json, the index, and the first bytes of each shard, never the
 * weights), a GGUF file, a config.json, or a description. Throws a UserError `bad-input` for what is none of these.
 */
export function readModel(path: string, index: string | undefined): ModelOnDisk {
  try {
    return read(path, index);
  } catch (error) {
    // Missing rights, a broken disk: the system's own name says which.
    const why = error instanceof UserError ? undefined : errno(error);
    if (why === undefined) throw error;
    throw new UserError(
      'bad-input',
      `${path} cannot be read (${why})`,
      `Look at it with \`ls -l ${path}\`, and name a model's folder, its config.json, or a file that describes it.`,
      error,
    );
  }
}

function read(path: string, index: string | undefined): ModelOnDisk {
  if (path.endsWith('.gguf') && exists(path)) return ggufAlone(path);
  const folder = isFolder(path);
  const files = folder ? weightFiles(path) : [];
  const config =
    folder && files.length > 0 && !exists(join(path, 'config.json'))
      ? {}
      : json(folder ? join(path, 'config.json') : path, 'model description', CONFIG_LIMIT);
  const beside = folder ? path : basename(path) === 'config.json' ? dirname(path) : undefined;
  const named = index ?? (folder ? indexIn(path) : undefined);
  const listed = named === undefined ? undefined : json(named, 'safetensors index', INDEX_LIMIT);
  const { shards, whole } = shardsOf(files, listed);
  const headers = shards.map(({ name }) => headerOf(join(path, name)));
  const known = headers.filter((header) => header !== undefined);
  const total = (shards.length > 0 ? shards : files).reduce((sum, file) => sum + file.bytes, 0);
  return {
    name: folder ? basename(path) : basename(path, '.json'),
    config,
    modelopt:
      beside === undefined || !exists(join(beside, 'hf_quant_config.json'))
        ? undefined
        : json(join(beside, 'hf_quant_config.json'), 'quantisation config', CONFIG_LIMIT * 8),
    indexBytes: listed === undefined ? undefined : totalOf(listed, named ?? ''),
    fileBytes: total > 0 && whole ? total : undefined,
    headers: whole && known.length > 0 && known.length === shards.length ? known : undefined,
    gguf: ggufOf(path, files).map(({ name, bytes }) => ggufHead(join(path, name), bytes)),
  };
}

type File = { readonly name: string; readonly bytes: number };

/**
 * The safetensors files that an engine loads: those that the index names, else all but a second copy in one file
 * ("consolidated"). Not whole where the index or a name such as model-00001-of-00004 tells of others.
 */
function shardsOf(
  files: readonly File[],
  index: Json | undefined,
): { readonly shards: readonly File[]; readonly whole: boolean } {
  const safe = files.filter(({ name }) => name.endsWith('.safetensors'));
  const map = index?.['weight_map'];
  const wanted = new Set(isObject(map) ? Object.values(map).filter((name) => typeof name === 'string') : []);
  const named = safe.filter(({ name }) => wanted.has(name));
  // An index of another folder's files says nothing about these.
  if (named.length > 0) return { shards: named, whole: named.length === wanted.size };
  const sharded = safe.filter(({ name }) => !/^consolidated/.test(name));
  const shards = sharded.length > 0 ? sharded : safe;
  const counts = shards.flatMap(({ name }) => {
    const of = /-of-(\d{1,6})\.safetensors$/.exec(name)?.[1];
    return of === undefined ? [] : [Number(of)];
  });
  return { shards, whole: counts.length === 0 || counts.length >= Math.max(...counts) };
}

/** The parts of the one GGUF model in a folder; projectors of images are none of it. Several models are an error. */
function ggufOf(folder: string, files: readonly File[]): readonly File[] {
  const parts = files.filter(({ name }) => name.endsWith('.gguf') && !/mmproj/i.test(name));
  const models = [...new Set(parts.map(({ name }) => ggufName(name)))];
  if (models.length > 1)
    throw new UserError(
      'bad-input',
      `${folder} holds ${models.length} GGUF models: ${models.slice(0, 4).join(', ')}${models.length > 4 ? ', …' : ''}`,
      'Name the one file that is to be served.',
    );
  return parts;
}

function ggufName(name: string): string {
  return basename(name, '.gguf').replace(/-\d{5}-of-\d{5}$/, '');
}

function ggufAlone(path: string): ModelOnDisk {
  const folder = dirname(path);
  const parts = weightFiles(folder).filter(
    ({ name }) => name.endsWith('.gguf') && ggufName(name) === ggufName(basename(path)),
  );
  return {
    name: ggufName(basename(path)),
    config: {},
    modelopt: undefined,
    indexBytes: undefined,
    fileBytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    headers: undefined,
    gguf: parts.map(({ name, bytes }) => ggufHead(join(folder, name), bytes)),
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
  return statOf(path)?.isDirectory() === true;
}

function exists(path: string): boolean {
  return statOf(path)?.isFile() === true;
}

/** Undefined where there is nothing, a link that leads nowhere, or a name below a file. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (errno(error) === undefined) throw error;
    return undefined; // ENOTDIR, ELOOP, EACCES: what reads it says which
  }
}

function indexIn(folder: string): string | undefined {
  const found = readdirSync(folder).find((name) => name.endsWith('.safetensors.index.json'));
  return found === undefined ? undefined : join(folder, found);
}

function weightFiles(folder: string): readonly File[] {
  return readdirSync(folder)
    .filter((name) => WEIGHTS.test(name))
    .flatMap((name) => {
      const stat = statOf(join(folder, name));
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
  if (typeof total === 'number' && total > 0 && total <= LARGEST) return total;
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
