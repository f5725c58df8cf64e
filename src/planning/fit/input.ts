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
  readonly what: 'weightsBytes' | 'overheadBytes' | 'availableKvBytes' | 'peakBytes';
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
  };
  readonly context: number | undefined;
  readonly sequences: number | undefined;
  readonly settings: FitSettings;
  /** Names of the nodes in order; numbered where left out. */
  readonly nodeNames?: readonly string[] | undefined;
  readonly learned?: readonly Measured[] | undefined;
};

export type FitRank = {
  readonly node: string;
  readonly rank: number;
  readonly weightsBytes: number | null;
  readonly kvBytesPerToken: number | null;
  readonly stateBytesPerSequence: number | null;
  readonly overheadBytes: number | null;
  readonly peakBytes: number | null;
  readonly poolTokens: number | null;
  readonly blockTokens: number | null;
  readonly maxConcurrency: number | null;
};

/** A number's origin: which figure, how it comes about, and how far it may be off. */
export type FitRule = {
  readonly about: string;
  readonly rule: string;
  readonly errorBytes: number | null;
};

/** One thing that has to hold for the launch to come up. */
export type FitCheck = {
  readonly name: 'layout' | 'start' | 'cache' | 'state' | 'graphs' | 'load' | 'host' | 'free';
  readonly what: string;
  readonly marginBytes: number;
  readonly errorBytes: number;
};

export type FitChange = {
  readonly change: 'context' | 'fraction' | 'sequences' | 'layout' | 'quantization' | 'kvCacheDtype';
  readonly to: number | string;
  readonly verdict: Verdict;
  readonly why: string;
};

export type Verdict = 'fits' | 'may boot' | 'does not fit' | 'unknown';

export type Fit = {
  readonly verdict: Verdict;
  /** One sentence: what decides. */
  readonly why: string;
  readonly ranks: readonly FitRank[];
  readonly startCheck: {
    readonly needsBytes: number | null;
    readonly hasBytes: number | null;
    readonly passes: boolean | null;
  };
  readonly checks: readonly FitCheck[];
  /** What the engine was taken to run with, its own defaults filled in. */
  readonly assumed: {
    readonly context: number | null;
    readonly sequences: number;
    readonly fraction: number;
    readonly batchedTokens: number;
  };
  /** Of a model that is not known: what its files say of the weights of one rank. */
  readonly bound: { readonly atLeastBytes: number; readonly atMostBytes: number } | null;
  readonly changes: readonly FitChange[];
  readonly rules: readonly FitRule[];
};
