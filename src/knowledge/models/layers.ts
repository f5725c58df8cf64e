import type { Layer } from './architecture.ts';
import { type Fields, fieldsOf } from './fields.ts';

/** Words for layers that keep keys and values of all tokens. */
const FULL = /full|global|dense|sparse|^(?:self_)?att(?:entio)?n$/;

/** What every layer is, by whichever of the publishers' ways the config says it; undefined for a kind not known here. */
export function layersOf(from: Fields, count: number): readonly Layer[] | undefined {
  const pattern = from.text('hybrid_override_pattern');
  if (pattern !== undefined) return nemotronLayers(pattern, count);
  const mixers = mixersOf(from, count);
  if (mixers === undefined) return undefined;
  const feeds = feedsOf(from, count);
  return Array.from({ length: count }, (_, index) => ({
    mixer: mixers[index] ?? 'full',
    feed: feeds[index] ?? 'dense',
  }));
}

/** Nemotron-H: one letter per layer, each either a mixer or a feed-forward part: M mamba, * attention, E experts, - dense. */
export function nemotronLayers(pattern: string, count: number): readonly Layer[] {
  return Array.from({ length: count }, (_, index): Layer => {
    switch (pattern[index]) {
      case 'M':
        return { mixer: 'mamba', feed: 'none' };
      case '*':
        return { mixer: 'full', feed: 'none' };
      case 'E':
        return { mixer: 'none', feed: 'experts' };
      default:
        return { mixer: 'none', feed: 'dense' };
    }
  });
}

function mixersOf(from: Fields, count: number): readonly Layer['mixer'][] | undefined {
  const types = from.list('layer_types');
  if (types?.length === count) {
    const mixers = types.flatMap((type): readonly Layer['mixer'][] => {
      const name = String(type);
      if (/sliding|local|chunked/.test(name)) return ['sliding'];
      if (/linear|kda|delta|recurrent/.test(name)) return ['linear'];
      if (/mamba|ssm/.test(name)) return ['mamba'];
      return FULL.test(name) ? ['full'] : [];
    });
    return mixers.length === count ? mixers : undefined;
  }
  const own = from.object('linear_attn_config');
  if (own !== undefined) {
    // Kimi Linear counts its layers from 1.
    const full = new Set(fieldsOf(own).list('full_attn_layers') ?? []);
    return Array.from({ length: count }, (_, index) => (full.has(index + 1) ? 'full' : 'linear'));
  }
  const interval = from.number('full_attention_interval');
  if (interval !== undefined && interval > 0 && from.number('linear_num_value_heads') !== undefined)
    return Array.from({ length: count }, (_, index) => ((index + 1) % interval === 0 ? 'full' : 'linear'));
  return slidingMixers(from, count);
}

/** A window alone says little: Qwen2 names one that it does not use, Gemma 2 and 3 use theirs in a rhythm. */
function slidingMixers(from: Fields, count: number): readonly Layer['mixer'][] {
  const window = from.number('sliding_window');
  const type = from.text('model_type') ?? '';
  const rhythm =
    from.number('sliding_window_pattern') ?? (/^gemma3/.test(type) ? 6 : /^gemma2/.test(type) ? 2 : 0);
  const uses = window !== undefined && window > 0 && from.flag('use_sliding_window') !== false;
  if (uses && rhythm > 1)
    return Array.from({ length: count }, (_, index) => ((index + 1) % rhythm === 0 ? 'full' : 'sliding'));
  const always = uses && /^(?:mistral|phi3)$/.test(type);
  return Array.from({ length: count }, () => (always ? 'sliding' : 'full'));
}

function feedsOf(from: Fields, count: number): readonly Layer['feed'][] {
  const experts = from.number('num_experts', 'n_routed_experts', 'num_local_experts') ?? 0;
  if (experts < 2) return Array.from({ length: count }, () => 'dense');
  const types = from.list('mlp_layer_types');
  if (types?.length === count) return types.map((type) => (type === 'dense' ? 'dense' : 'experts'));
  const dense = new Set(from.list('mlp_only_layers') ?? []);
  const firstDense =
    from.number('first_k_dense_replace') ?? (/^deepseek_v2/.test(from.text('model_type') ?? '') ? 1 : 0);
  const every = Math.max(1, from.number('decoder_sparse_step', 'moe_layer_freq') ?? 1);
  return Array.from({ length: count }, (_, index) =>
    index < firstDense || dense.has(index) || (every > 1 && (index + 1) % every !== 0) ? 'dense' : 'experts',
  );
}
