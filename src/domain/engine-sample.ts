/** The engine's own numbers at one moment; what it does not tell is absent. */
export type EngineSample = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly running?: number;
  readonly waiting?: number;
  /** 0 to 1. */
  readonly kvUsed?: number;
  /** Seconds: median and 95th percentile since the sample before. */
  readonly firstToken?: number;
  readonly firstTokenHigh?: number;
  readonly betweenTokens?: number;
  readonly betweenTokensHigh?: number;
  /** Output of all requests. */
  readonly tokensPerSecond?: number;
};
