import type { Software } from '../../domain/recipe.ts';
import type { ModelDescription } from '../../knowledge/models/describe.ts';

export type FitLayout = {
  readonly nodes: number;
  readonly tensor: number;
  readonly pipeline: number;
  readonly expert: number;
  readonly data: number;
};

/** What a user may set; what is undefined is the engine's own default. Sizes in bytes. */
export type FitSettings = {
  /** vLLM's gpu-memory-utilization, SGLang's mem-fraction-static. */
  readonly fraction?: number | undefined;
  readonly kvCacheDtype?: string | undefined;
  readonly kvCacheBytes?: number | undefined;
  /** vLLM's max-num-batched-tokens, SGLang's chunked-prefill-size. */
  readonly batchedTokens?: number | undefined;
  readonly speculative?: { readonly method: string; readonly tokens: number } | undefined;
  readonly draftBytes?: number | undefined;
  readonly eager?: boolean | undefined;
  readonly blockSize?: number | undefined;
  readonly prefixCaching?: boolean | undefined;
  readonly languageOnly?: boolean | undefined;
  readonly cpuOffloadBytes?: number | undefined;
  readonly swapBytes?: number | undefined;
  /** Decode context parallel: the cache of a sequence is dealt out over that many ranks. */
  readonly dcp?: number | undefined;
  /** Weights per rank, known from elsewhere; and what a rank has for its cache. */
  readonly weightsBytes?: number | undefined;
  readonly availableKvBytes?: number | undefined;
};

/**
 * What an earlier run of the same model and engine measured on one rank. It takes the place of the prediction it
 * names, on its node where `node` is given, else everywhere; its error bar is the spread of boots.
 */
export type Measured = {
  readonly what: 'weightsBytes' | 'overheadBytes';
  readonly bytes: number;
  readonly node?: string | undefined;
  /** Times it was measured, and how far the measurements lay apart. */
  readonly times: number;
  readonly spreadBytes: number;
  /** "run 42 of 3 Nov": where it is told to have come from. */
  readonly from: string;
};

export type FitInput = {
  readonly model: ModelDescription;
  readonly engine: Software;
  readonly layout: FitLayout;
  /** Per GPU, per node where unified. Undefined is unknown, not none. */
  readonly memory: {
    readonly unified: boolean;
    readonly totalBytes: number | undefined;
    readonly availableBytes: number | undefined;
    /** Why the total is not known, where a look tells. */
    readonly why?: string | undefined;
    /** Of what is available, what ranks of this very recipe hold now, on the node where that is most. */
    readonly ownBytes?: number | undefined;
  };
  readonly context: number | undefined;
  readonly sequences: number | undefined;
  readonly settings: FitSettings;
  /** Where a fraction comes from that no user set, in a clause. */
  readonly fractionFrom?: string | undefined;
  /** Names of the nodes in order; numbered where left out. */
  readonly nodeNames?: readonly string[] | undefined;
  readonly learned?: readonly Measured[] | undefined;
};
