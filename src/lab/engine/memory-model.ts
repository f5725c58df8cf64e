import type { Model } from './model-folder.ts';

export const GIB = 2 ** 30;

/**
 * A CUDA context on the device: what set_device itself takes. An H200 with 817 MiB free refused it (captured with
 * torch 2.11, driver 580.159); a GB10 shows 2.6 to 2.7 GiB once NCCL and workspaces are there.
 */
export const CONTEXT_BYTES = 1 * GIB;
export const COMMUNICATOR_BYTES = 1.6 * GIB;

export type Split = { readonly tensor: number; readonly pipeline: number };

/** Weights of one rank: the mixture's experts dominate, and they are split evenly. */
export function rankWeightBytes(model: Model, { tensor, pipeline }: Split): number {
  return model.weightBytes / (tensor * pipeline);
}

/** KV cache bytes one token takes on one rank; MLA's is not divided by the tensor size. */
export function tokenBytes(model: Model, { tensor, pipeline }: Split, elementBytes: number): number {
  const layers = Math.ceil(model.fullLayers / pipeline);
  if (model.latentDim !== undefined) return layers * model.latentDim * elementBytes;
  return layers * 2 * Math.ceil(model.kvHeads / tensor) * model.headDim * elementBytes;
}

/** Recurrent state one sequence takes on one rank: convolution and ssm parts, whatever its length. */
export function sequenceBytes(
  model: Model,
  { tensor, pipeline }: Split,
): { readonly convolution: number; readonly ssm: number } {
  const linear = model.linear;
  if (linear === undefined) return { convolution: 0, ssm: 0 };
  const layers = linear.layers / pipeline;
  const width = 2 * linear.keyHeads * linear.keyDim + linear.valueHeads * linear.valueDim;
  return {
    convolution: layers * (width / tensor) * (linear.convolution - 1) * 2,
    ssm: layers * (linear.valueHeads / tensor) * linear.valueDim * linear.keyDim * linear.stateBytes,
  };
}

/** Bytes of one KV element by `--kv-cache-dtype`. */
export function elementBytes(dtype: string | undefined): number {
  if (dtype === undefined || !/fp8|fp4|nvfp4/.test(dtype)) return 2;
  return dtype.includes('fp4') ? 0.5 : 1;
}

/** SGLang's own default of --mem-fraction-static (server_args.py, v0.5.18; engines.md §5.2). */
export function sglangFraction(totalBytes: number, { tensor, pipeline }: Split, vision: boolean): number {
  const totalMib = totalBytes / 2 ** 20;
  const chunked = totalMib > 160e3 ? 16384 : totalMib > 60e3 ? 8192 : totalMib > 35e3 ? 4096 : 2048;
  const decode = totalMib > 60e3 ? (tensor < 4 ? 256 : 512) : 80;
  const graphs = 2 * decode + 8 * 58;
  const counted = 512 + 1.5 * Math.max(chunked, 2048) + ((tensor * pipeline) / 8) * 1024 + graphs;
  const reserved = totalMib > 60 * 1024 ? Math.max(counted, 10240) : Math.min(counted, totalMib * 0.4);
  return round3(((totalMib - reserved) / totalMib) * (vision ? 0.925 : 1));
}

function round3(value: number): number {
  return Math.round(value * 1000) / 1000;
}
