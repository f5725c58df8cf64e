import type { Place, TensorKind } from './weight-group.ts';

type Named = {
  readonly kind: TensorKind;
  /** One of this many matrices of its kind in a layer, as far as quantisation lists name them one by one. */
  readonly of: number;
};

/** Kinds by the end of a tensor's or module's name, first match first. */
const KINDS: readonly (readonly [RegExp, TensorKind, number])[] = [
  [/visual|vision|audio|mm_projector|multi_modal|image_newline/, 'vision', 1],
  [/lm_head|shared_head\.head|^output\b/, 'head', 1],
  [/token_embd|embed_tokens|embeddings?\b|\bwte\b|tok_embeddings|embed_in/, 'embedding', 1],
  [/norm/, 'norm', 1],
  [/shared_experts?_gate/, 'router', 1],
  [/shared_expert|_shexp/, 'shared-expert', 3],
  [/\bexperts\b|_exps\b/, 'experts', 1],
  [/router|ffn_gate_inp|e_score_correction|(?:mlp|moe|ffn)\.gate\b|mixer\.gate\b/, 'router', 1],
  [/indexer|compressor/, 'indexer', 1],
  [/(?:attn_q_a|attn_kv_a|q_a_proj|kv_a_proj|wq_a|wkv\b|latent_proj|fc[12]_latent)/, 'latent-down', 2],
  [/attn_[qkv]v?_b\b/, 'attention', 2],
  [/(?:attn_k\b|attn_v\b|k_proj|v_proj|\bwk\b|\bwv\b)/, 'key-value', 2],
  [/conv1d|conv_1d|\bA_log|dt_bias|in_proj_(?:a|b|ba)\b|\.D$/, 'conv', 1],
  [/linear_attn|delta_net|kda/, 'linear-attention', 3],
  [/mixer\.(?:in_proj|out_proj)|mamba/, 'mamba', 2],
  [/self_attn|attention|attn|mixer\.[qo]_proj|\bw[qo]_/, 'attention', 2],
  [/mlp|feed_forward|ffn|gate_proj|up_proj|down_proj|mixer/, 'dense', 3],
];

/** What a tensor is for, by its name in the checkpoint; a layer's other small tensors count as norms. */
export function kindOf(name: string): Named {
  for (const [pattern, kind, of] of KINDS) if (pattern.test(name)) return { kind, of };
  return { kind: 'norm', of: 1 };
}

/** Whether a name belongs to the block for further tokens: `mtp.…`, or a layer past the last one (DeepSeek, GLM). */
function isMtp(name: string, layers: number | undefined): boolean {
  if (/(?:^|\.)(?:mtp|nextn)/.test(name)) return true;
  const index = layerIndex(name);
  return index !== undefined && layers !== undefined && index >= layers;
}

/** Where a tensor lies, by its name. */
export function placeOf(name: string, layers: number | undefined): Place {
  const { kind } = kindOf(name);
  // A tower may have more blocks than the language model has layers.
  if (kind === 'vision') return 'vision';
  if (isMtp(name, layers)) return 'mtp';
  const index = layerIndex(name);
  if (index !== undefined) return index;
  return kind === 'embedding' ? 'first' : 'last';
}

function layerIndex(name: string): number | undefined {
  const found = /(?:^|\.)(?:layers|h|blocks|blk)\.(\d+)\./.exec(name);
  return found === null ? undefined : Number(found[1]);
}
