import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isJson, type Json, listOf, numberOf, parseJson, textOf } from './json.ts';

/** Linear attention layers of a hybrid (GDN, mamba): their state does not grow with the context. */
type LinearLayers = {
  readonly layers: number;
  readonly keyHeads: number;
  readonly keyDim: number;
  readonly valueHeads: number;
  readonly valueDim: number;
  readonly convolution: number;
  readonly stateBytes: number;
};

/** What an engine learns from a model's folder before it loads anything. */
export type Model = {
  readonly folder: string;
  readonly architecture: string;
  readonly modelType: string;
  readonly layers: number;
  /** Layers whose KV cache grows with the context. */
  readonly fullLayers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** MLA: kv_lora_rank + rope dimension, else undefined. */
  readonly latentDim: number | undefined;
  readonly linear: LinearLayers | undefined;
  readonly maxPositions: number;
  readonly quantization: string | undefined;
  /** Of weights that are quantised in blocks: how many columns share a scale. */
  readonly blockWidth: number | undefined;
  /** Of its vision tower. */
  readonly visionHeads: number | undefined;
  readonly vision: boolean;
  readonly weightBytes: number;
  readonly shards: readonly string[];
};

export type ModelProblem =
  /** No such folder, or no config.json in it: the engines then take the path for a hub name. */
  | { readonly kind: 'no-config' }
  | { readonly kind: 'no-weights' }
  | { readonly kind: 'missing-shard'; readonly shard: string }
  /** A Git LFS pointer lies where the weights should. */
  | { readonly kind: 'bad-header'; readonly shard: string };

/** config.json of a folder, or the problem. Weights are looked at by `readWeights`, later, as engines do. */
export function readConfig(folder: string): Json | undefined {
  try {
    return parseJson(readFileSync(join(folder, 'config.json'), 'utf8'));
  } catch {
    // Not there, or not ours to read.
    return undefined;
  }
}

/** What `readConfig` and `readWeights` found → the shape the memory arithmetic needs. Pure. */
export function modelOf(
  folder: string,
  config: Json,
  weights: { readonly bytes: number; readonly shards: readonly string[] },
): Model {
  const text = isJson(config.text_config) ? config.text_config : config;
  const pick = (...names: readonly string[]): number | undefined =>
    names.map((name) => numberOf(text[name]) ?? numberOf(config[name])).find((value) => value !== undefined);
  const layers = pick('num_hidden_layers', 'n_layer') ?? 1;
  const heads = pick('num_attention_heads', 'n_head') ?? 1;
  const types = listOf(text.layer_types);
  const every = pick('full_attention_interval');
  const fullLayers =
    types.length > 0
      ? types.filter((type) => type !== 'linear_attention').length
      : every === undefined
        ? layers
        : Math.floor(layers / every);
  const latent = pick('kv_lora_rank');
  const quantization = isJson(config.quantization_config) ? config.quantization_config : undefined;
  const valueHeads = pick('linear_num_value_heads');
  return {
    folder,
    architecture: textOf(listOf(config.architectures)[0]) ?? 'LlamaForCausalLM',
    modelType: textOf(config.model_type) ?? 'llama',
    layers,
    fullLayers,
    heads,
    kvHeads: pick('num_key_value_heads') ?? heads,
    headDim: pick('head_dim') ?? Math.floor((pick('hidden_size', 'n_embd') ?? 64) / heads),
    latentDim: latent === undefined ? undefined : latent + (pick('qk_rope_head_dim') ?? 64),
    linear:
      valueHeads === undefined || fullLayers === layers
        ? undefined
        : {
            layers: layers - fullLayers,
            keyHeads: pick('linear_num_key_heads') ?? valueHeads,
            keyDim: pick('linear_key_head_dim') ?? 128,
            valueHeads,
            valueDim: pick('linear_value_head_dim') ?? 128,
            convolution: pick('linear_conv_kernel_dim') ?? 4,
            stateBytes: textOf(text.mamba_ssm_dtype) === 'float32' ? 4 : 2,
          },
    maxPositions: pick('max_position_embeddings') ?? 4096,
    quantization: textOf(quantization?.quant_method),
    blockWidth: numberOf(listOf(quantization?.weight_block_size)[0]),
    visionHeads: isJson(config.vision_config) ? numberOf(config.vision_config.num_heads) : undefined,
    vision: isJson(config.vision_config),
    weightBytes: weights.bytes,
    shards: weights.shards,
  };
}

/** The safetensors index, else the files themselves; each shard's first bytes are looked at. */
export function readWeights(
  folder: string,
): { readonly bytes: number; readonly shards: readonly string[] } | ModelProblem {
  const index = readIndex(join(folder, 'model.safetensors.index.json'));
  const map = isJson(index?.weight_map) ? index.weight_map : undefined;
  const named = map === undefined ? [] : Object.values(map).filter((name) => typeof name === 'string');
  const shards = [...new Set(named.length > 0 ? named : safetensorsIn(folder))].sort();
  if (shards.length === 0) return { kind: 'no-weights' };
  let fileBytes = 0;
  for (const shard of shards) {
    const path = join(folder, shard);
    if (!existsSync(path)) return { kind: 'missing-shard', shard: path };
    if (isPointer(path)) return { kind: 'bad-header', shard: path };
    fileBytes += statSync(path).size;
  }
  const metadata = isJson(index?.metadata) ? index.metadata : undefined;
  return { bytes: numberOf(metadata?.total_size) ?? fileBytes, shards };
}

function readIndex(path: string): Json | undefined {
  return existsSync(path) ? parseJson(readFileSync(path, 'utf8')) : undefined;
}

function safetensorsIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.safetensors'));
}

function isPointer(path: string): boolean {
  const start = Buffer.alloc(24);
  const file = openSync(path, 'r');
  try {
    readSync(file, start, 0, start.length, 0);
  } finally {
    closeSync(file);
  }
  return start.toString('latin1').startsWith('version https://git-lfs');
}

/**
 * Where a path that the engine was given really lies. In the lab a container has only what is mounted
 * (`FIRSTLIGHT_LAB_MOUNTS`: `container path=real path` per line), and a host's files lie under its root prefix.
 */
export function realPath(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (env.FIRSTLIGHT_LAB_MOUNTS !== undefined) {
    const mounts = env.FIRSTLIGHT_LAB_MOUNTS.split('\n')
      .map((line) => line.split('='))
      .filter(
        ([inside = '']) =>
          inside !== '' && (path === inside || path.startsWith(`${inside.replace(/\/$/, '')}/`)),
      )
      .sort(([a = ''], [b = '']) => b.length - a.length);
    const [inside = '', real] = mounts[0] ?? [];
    return real === undefined ? undefined : join(real, path.slice(inside.length));
  }
  const root = env.FIRSTLIGHT_ROOT ?? '';
  if (root === '' || !path.startsWith('/') || path.startsWith(`${root}/`)) return path;
  const home = env.HOME ?? '';
  return home !== '' && path.startsWith(`${home}/`) ? path : join(root, path);
}
