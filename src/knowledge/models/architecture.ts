/** What mixes tokens in a layer, and what follows it. */
export type Layer = {
  readonly mixer: 'full' | 'sliding' | 'linear' | 'mamba' | 'none';
  readonly feed: 'dense' | 'experts' | 'none';
};

/** Heads of one kind of attention layer. */
export type Heads = { readonly heads: number; readonly kvHeads: number; readonly headDim: number };

/** What a model's config.json says about its size; every figure is of the whole model, before any layout. */
export type Architecture = {
  readonly type: string;
  /** The publisher's conventions for this type are known here; else only the common fields were read. */
  readonly familiar: boolean;
  readonly layers: readonly Layer[];
  readonly hidden: number;
  readonly full: Heads;
  readonly sliding: Heads;
  readonly window: number;
  /** The query projection is twice as wide, its second half gates the output. */
  readonly gatedAttention: boolean;
  /** Multi-head latent attention: one compressed cache for all heads. */
  readonly latent: Latent | undefined;
  /** DeepSeek-V4: keys and values compressed by this ratio, per layer; 0 is the window alone. */
  readonly compressed: { readonly ratios: readonly number[]; readonly latent: CompressedSizes } | undefined;
  readonly linear: Linear | undefined;
  readonly mamba: Mamba | undefined;
  /** Dense layers' width, and how many matrices a feed-forward part has: three where it is gated. */
  readonly denseWidth: number;
  readonly matrices: 2 | 3;
  readonly experts: Experts | undefined;
  readonly vocab: number;
  readonly tied: boolean;
  readonly maxTokens: number | undefined;
  /** Layers for predicting further tokens; loaded only where speculation uses them. */
  readonly mtpLayers: number;
  readonly vision: Vision | undefined;
  /** Values per position of each table of rotary angles. */
  readonly rotary: readonly number[];
  /** Trailing layers that use an earlier layer's keys and values, and so keep none. */
  readonly sharedKvLayers: number;
  readonly valueBytes: number;
};

export type Latent = {
  readonly rank: number;
  readonly rope: number;
  readonly queryRank: number | undefined;
  readonly nope: number;
  readonly value: number;
  /** Sparse attention's indexer: its heads, width, and how many layers own one. */
  readonly indexer: { readonly heads: number; readonly dim: number; readonly owners: number } | undefined;
};
type CompressedSizes = {
  readonly queryRank: number;
  readonly outputRank: number;
  readonly outputGroups: number;
  readonly indexHeads: number;
  readonly indexDim: number;
};
export type Linear = {
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly kernel: number;
  /** Bytes of one value of the recurrent state. */
  readonly stateBytes: number;
  /** The output gate is a product of two narrow matrices instead of one whole one. */
  readonly lowRankGate: boolean;
};
export type Mamba = {
  readonly heads: number;
  readonly headDim: number;
  readonly groups: number;
  readonly state: number;
  readonly kernel: number;
  readonly stateBytes: number;
};
export type Experts = {
  readonly count: number;
  readonly active: number;
  readonly width: number;
  /** Of all shared experts together; 0 without any. */
  readonly sharedWidth: number;
  /** Experts that work in a narrower space than the model's. */
  readonly latent: number | undefined;
};
export type Vision = {
  readonly depth: number;
  /** The depth where the config calls it `num_hidden_layers`: SGLang knows no other name. */
  readonly namedLayers: number | undefined;
  readonly hidden: number;
  readonly width: number;
  readonly heads: number;
  readonly out: number;
};
