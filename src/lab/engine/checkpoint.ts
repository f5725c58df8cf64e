import { GIB } from './memory-model.ts';
import { type Model, modelOf, readConfig, readWeights, realPath } from './model-folder.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** The model at a path, weights and all. Throws PythonError in the words of the loaders, which both engines share. */
export function openCheckpoint(path: string, env: Env, { dummy }: { readonly dummy: boolean }): Model {
  const folder = realPath(path, env) ?? path;
  const weights = dummy ? { bytes: GIB, shards: ['dummy'] } : readWeights(folder);
  if (!('kind' in weights)) return modelOf(folder, readConfig(folder) ?? {}, weights);
  switch (weights.kind) {
    case 'missing-shard':
      throw new PythonError(
        'load',
        'FileNotFoundError',
        `No such file or directory: ${path}/${weights.shard.replace(/^.*\//, '')}`,
      );
    case 'bad-header':
      throw new PythonError(
        'load',
        'safetensors_rust.SafetensorError',
        'Error while deserializing header: header too large',
      );
    default:
      throw new PythonError('load', 'RuntimeError', `Cannot find any model weights with \`${path}\``);
  }
}
