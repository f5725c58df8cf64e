import type { Options } from './command-line.ts';
import type { EngineWorld } from './engine-world.ts';
import { modelOf, readConfig, realPath } from './model-folder.ts';
import { SglangLog } from './output.ts';
import type { Pace } from './pace.ts';
import type { Env } from './rank.ts';
import { mainException } from './sglang-frames.ts';

export type SglangRun = {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly env: Env;
  readonly options: Options;
};

/** Which rank this is, where the ranks meet, and how its lines begin. */
export type SglangPlace = {
  readonly rank: number;
  readonly nnodes: number;
  readonly tensor: number;
  readonly pipeline: number;
  readonly address: string;
  readonly port: number;
  readonly log: SglangLog;
};

/** Arguments → place; a node is one rank. */
export function placeOf(options: Options): SglangPlace {
  const tensor = options.number('tp-size') ?? 1;
  const pipeline = options.number('pp-size') ?? 1;
  const nnodes = options.number('nnodes') ?? 1;
  const rank = options.number('node-rank') ?? 0;
  const init = /^(?:tcp:\/\/)?\[?(.+?)\]?:(\d+)$/.exec(options.text('dist-init-addr') ?? '');
  const pp = pipeline > 1 ? ` PP${Math.floor(rank / Math.max(1, nnodes / pipeline))}` : '';
  const tp = tensor > 1 ? ` TP${rank % tensor}` : '';
  return {
    rank,
    nnodes,
    tensor,
    pipeline,
    address: init?.[1] ?? '127.0.0.1',
    port: Number(init?.[2] ?? options.number('nccl-port') ?? 20_000 + Math.floor(Math.random() * 9000)),
    log: new SglangLog(`${pp}${tp}${(options.number('ep-size') ?? 1) > 1 ? ` EP${rank % tensor}` : ''}`),
  };
}

/** What the main process checks before it starts a scheduler; its words, or undefined. */
export function earlyProblem({ options, env }: SglangRun, place: SglangPlace): string | undefined {
  const path = options.text('model-path') ?? '';
  if ((options.text('served-model-name') ?? '').includes(':'))
    return mainException(
      'ValueError',
      'Invalid served model name: the served model name cannot contain a colon (":") character.',
    );
  if ((place.tensor * place.pipeline) % place.nnodes !== 0)
    return mainException('AssertionError', 'tp_size must be divisible by number of nodes');
  const folder = realPath(path, env);
  const config = folder === undefined ? undefined : readConfig(folder);
  if (config === undefined || folder === undefined) return mainException('OSError', noConfig(path));
  const asked = options.number('context-length');
  const { maxPositions } = modelOf(folder, config, { bytes: 0, shards: [] });
  if (asked !== undefined && asked > maxPositions && env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN !== '1')
    return mainException(
      'ValueError',
      `User-specified context_length (${asked}) is greater than the derived context_length (${maxPositions}). This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1`,
    );
  return undefined;
}

function noConfig(path: string): string {
  return `Can't load the configuration of '${path}'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name. Otherwise, make sure '${path}' is the correct path to a directory containing a config.json file`;
}

/** `model_path='…', tp_size=2, …`: what was given, in Python's spelling; a key is never shown. */
export function argumentsText(options: Options, place: SglangPlace): string {
  const shown = options.entries().map(([key, values]) => {
    const value = values[0];
    const python =
      value === undefined
        ? 'True'
        : key.endsWith('api-key')
          ? "'********'"
          : /^-?\d+(\.\d+)?$/.test(value)
            ? value
            : `'${value}'`;
    return `${key.replaceAll('-', '_')}=${python}`;
  });
  const missing = [
    ['host', "'127.0.0.1'"],
    ['port', '30000'],
    ['nnodes', String(place.nnodes)],
    ['node-rank', String(place.rank)],
  ].filter(([key = '']) => !options.has(key));
  return [...shown, ...missing.map(([key = '', value]) => `${key.replaceAll('-', '_')}=${value}`)].join(', ');
}
