/** What a tensor is for: decides both how it is quantised and how a layout cuts it. */
export type TensorKind =
  | 'embedding'
  | 'head'
  | 'attention'
  | 'key-value'
  | 'latent-down'
  | 'indexer'
  | 'linear-attention'
  | 'mamba'
  | 'conv'
  | 'dense'
  | 'shared-expert'
  | 'experts'
  | 'router'
  | 'norm'
  | 'vision';

/** Where it lies: the index of a layer, or one of the parts outside the layers. */
export type Place = number | 'first' | 'last' | 'mtp' | 'vision';

/** Bytes of tensors that lie in one place and are cut alike. */
export type WeightGroup = { readonly kind: TensorKind; readonly place: Place; readonly bytes: number };

/** Parameters of a part, before its bytes are known. */
export type ParameterGroup = { readonly kind: TensorKind; readonly place: Place; readonly count: number };
