import type { Vision } from '../../knowledge/models/architecture.ts';
import type { FitInput } from './input.ts';

/** Cards by their MiB: tokens of a prefill's chunk, and the largest batch with a graph, below and from tensor 4 on. */
const CLASSES: readonly (readonly [below: number, chunk: number, small: number, large: number])[] = [
  [20 * 1024, 2048, 8, 8],
  [35 * 1024, 2048, 24, 80],
  [60 * 1024, 4096, 32, 160],
  [160 * 1024, 8192, 256, 512],
  [Number.POSITIVE_INFINITY, 16_384, 512, 512],
];
/** Steps in which graphs for a prefill are captured: from, to, by. */
const PREFILL_SIZES = [
  [4, 32, 4],
  [48, 256, 16],
  [288, 512, 32],
  [576, 1024, 64],
  [1280, 4096, 256],
  [4608, Number.POSITIVE_INFINITY, 512],
] as const;
/** Where the card's size is not known, SGLang takes this share. */
const UNKNOWN_SHARE = 0.88;

/** Tokens of a prefill's chunk where nothing is set (server_args.py, _handle_gpu_memory_settings). */
export function sglangChunk(totalBytes: number | undefined): number {
  return totalBytes === undefined ? 4096 : classOf(totalBytes / 2 ** 20)[1];
}

/**
 * What SGLang takes by itself of the memory that is free: all but 512 MiB, 1.5 for each token of a chunk, a part for
 * many ranks, and graphs; from 60 GiB on it leaves 10 at least. Models that see get less again, by their tower's size.
 */
export function sglangFraction({ layout, settings, model, memory }: FitInput, chunk: number): number {
  const total = memory.totalBytes;
  if (total === undefined || total <= 0) return UNKNOWN_SHARE;
  const { tensor, pipeline, data } = layout;
  const card = total / 2 ** 20;
  const [, , small, large] = classOf(card);
  const batch = tensor < 4 ? small : large;
  const latent = model.architecture?.latent !== undefined;
  // Over several nodes replicas share the tensor ranks, whose attention then keeps more for its graphs.
  const replicas = data > 1 ? batch * data * (batch > 300 ? 4.5 : 3) : 0;
  const graphs =
    settings.eager === true ? 0 : 2 * batch + replicas + (latent ? 1536 : 8 * prefillSizes(chunk));
  const asked = 512 + 1.5 * Math.max(chunk, 2048) + ((tensor * pipeline) / 8) * 1024 + graphs;
  const reserved = card > 60 * 1024 ? Math.max(asked, 10 * 1024) : asked;
  const share = Math.round(((card - reserved) / card) * 1000) / 1000;
  const vision = settings.languageOnly === true ? undefined : model.architecture?.vision;
  return Math.min(0.99, Math.max(0.05, share * (vision === undefined ? 1 : towerFactor(vision))));
}

/** Against a tower of 24 layers of 1024, which is also taken for layers that the config calls otherwise. */
function towerFactor({ namedLayers, hidden }: Vision): number {
  const complexity = ((namedLayers ?? 24) * hidden ** 2) / (24 * 1024 ** 2);
  return 0.95 * Math.min(1.05, Math.max(0.8, 1 - 0.1 * (complexity - 1)));
}

function classOf(mebibytes: number): (typeof CLASSES)[number] {
  return CLASSES.find(([below]) => mebibytes < below) ?? [Number.POSITIVE_INFINITY, 16_384, 512, 512];
}

function prefillSizes(chunk: number): number {
  return PREFILL_SIZES.reduce(
    (sum, [from, to, by]) => (chunk < from ? sum : sum + Math.floor((Math.min(to, chunk) - from) / by) + 1),
    0,
  );
}
