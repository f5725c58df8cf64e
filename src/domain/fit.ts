/** Literally what `firstlight fit` answers: a margin that the error bar covers may boot. */
export type Verdict = 'fits' | 'may boot' | 'does not fit' | 'unknown';

/** Predicted figures of one rank, bytes and tokens; null is unknown, never nothing. */
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

/** One change that would do, alone unless it says `together`. */
export type FitChange = {
  readonly change:
    | 'clearing'
    | 'context'
    | 'fraction'
    | 'sequences'
    | 'layout'
    | 'quantization'
    | 'kvCacheDtype'
    /** Several at once, where none does alone. */
    | 'together';
  readonly to: number | string;
  readonly verdict: Verdict;
  readonly why: string;
};

/** The answer of a fit: what decides, every figure, and what would change it. */
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
