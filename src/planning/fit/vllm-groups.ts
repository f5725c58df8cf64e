import type { Cache, CacheKind } from './cache-kinds.ts';

type Attention = Extract<CacheKind, { tokenBytes: number }>;

/** Tokens that the kernels' blocks are whole multiples of; latent attention's are longer (platforms/interface.py). */
const BLOCK_STEP = 16;
const LATENT_STEP = 128;
/** With a state kept for every block, blocks are whole chunks of the Mamba kernel (FORMULAS 5.1). */
const CHUNK_STEP = 128;

/**
 * One page size for layers of several kinds (FORMULAS 5.1, unify_kv_cache_spec_page_size). A hybrid's block grows
 * until one layer's state fits into the page of a full attention layer. A kind with a smaller page takes a whole
 * multiple of the block where the largest page is one of it, else its page is padded.
 */
export function pagesOf(
  { whole, latent }: Cache,
  blockSize: number | undefined,
  everyBlock: boolean,
): {
  readonly page: number;
  /** Tokens of one block before pages are made alike: what the engine prints as its attention block size. */
  readonly block: number;
  readonly tokensOf: (kind: Attention) => number;
} {
  const attention = whole.filter((kind): kind is Attention => kind.name !== 'state');
  const slot = Math.max(0, ...whole.map((kind) => (kind.name === 'state' ? kind.slotBytes : 0)));
  const least = slot > 0 && latent ? LATENT_STEP : everyBlock ? CHUNK_STEP : BLOCK_STEP;
  const step = slot > 0 && latent ? Math.max(least, blockSize ?? 0) : (blockSize ?? least);
  // The state has to fit into a page of the model's own attention, not of a drafter's.
  const own = attention.find(({ name }) => name === 'full') ?? attention[0];
  const tokenBytes = Math.max(1, own?.tokenBytes ?? 1);
  const block = slot === 0 ? step : step * Math.ceil(slot / (step * tokenBytes));
  const page = block * Math.max(tokenBytes, ...attention.map((kind) => kind.tokenBytes));
  return {
    page,
    block,
    tokensOf: (kind) => {
      const times = page / (block * Math.max(1, kind.tokenBytes));
      return block * (Math.abs(times - Math.round(times)) < 1e-9 ? Math.round(times) : 1);
    },
  };
}

/**
 * Into how many groups each kind's layers are dealt: groups as long as the smallest kind has layers, or as the largest
 * where that has less than half as many again.
 */
export function groupCounts(whole: readonly CacheKind[]): ReadonlyMap<string, number> {
  const layers = whole.map((kind) => kind.layers);
  const smallest = Math.max(1, Math.min(...layers));
  const largest = Math.max(1, ...layers);
  const size = largest < 1.5 * smallest ? largest : smallest;
  return new Map(whole.map((kind) => [keyOf(kind), Math.ceil(kind.layers / size)]));
}

/** A kind of layer by its name, the same on every stage. */
export function keyOf(kind: CacheKind): string {
  return kind.name === 'state' ? kind.of : kind.name;
}
