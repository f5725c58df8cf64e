import { pattern, type Signature } from './signature.ts';

const tooLong = pattern(
  'KV cache is needed, which is larger than',
  /max seq len \((?<context>\d+)\),\s*\(?(?<need>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory \((?<have>-?[\d.]+) GiB\)/,
);
const estimate = pattern(
  'estimated maximum model length is',
  /estimated maximum model length is (?<tokens>\d+)/,
);
const noBlocks = pattern(
  'No available memory for the cache blocks',
  /No available memory for the cache blocks/,
);
const available = pattern('Available KV cache memory', /Available KV cache memory: (?<gib>-?[\d.]+) GiB/);
const sglangNone = pattern(
  [
    'Not enough memory. Please try to increase --mem-fraction-static',
    'Loaded weights leave no GPU memory for the KV cache',
    'Not enough GPU memory for hybrid',
  ],
  /Not enough memory\. Please try to increase --mem-fraction-static|Loaded weights leave no GPU memory|Not enough GPU memory for hybrid/,
);

/** The KV cache is smaller than one request of the wanted context. `values.estimate` is the engine's own. */
export const kvCacheTooSmall: Signature = {
  name: 'kv-cache-too-small',
  causes: ['kv-cache-too-small-for-max-len'],
  seenOn: 'vLLM 0.24 to main of 17 August 2026',
  source: 'vLLM v1/core/kv_cache_utils.py',
  patterns: [tooLong, estimate],
  match({ find }) {
    const first = find(tooLong)[0];
    if (first === undefined) return undefined;
    const { context = '', need = '', have = '' } = first.groups;
    const tokens = find(estimate)[0]?.groups['tokens'];
    return {
      cause: 'kv-cache-too-small-for-max-len',
      node: first.node,
      shown: [first],
      title: `${first.node} has no room for the KV cache of ${context} tokens`,
      why: `One request of that length takes ${need} GiB, and ${have} GiB are left beside the weights${tokens ? `; the engine estimates that ${tokens} tokens fit` : ''}.`,
      advice: [
        tokens ? `Set context: ${tokens} in the recipe, or less.` : 'Set a smaller context in the recipe.',
        'Or give it more: a higher memory.fraction, or another node.',
      ],
      values: { context, need, have, ...(tokens ? { estimate: tokens } : {}) },
      confidence: 0.97,
      specificity: 3,
    };
  },
};

/** The engine's share of memory does not even hold weights and workspace. */
export const kvPoolNotPositive: Signature = {
  name: 'kv-pool-not-positive',
  causes: ['kv-pool-size-not-positive', 'gpu-memory-utilization-too-low'],
  seenOn: 'SGLang 0.5.18, vLLM 0.24, August 2026',
  source: 'SGLang kv_cache_configurator.py; vLLM v1/core/kv_cache_utils.py',
  patterns: [sglangNone, noBlocks, available],
  match({ find }) {
    const sglang = find(sglangNone)[0];
    const vllm = find(noBlocks)[0];
    const first = sglang ?? vllm;
    if (first === undefined) return undefined;
    const left = find(available).find((found) => found.rank === first.rank);
    return {
      cause: sglang ? 'kv-pool-size-not-positive' : 'gpu-memory-utilization-too-low',
      node: first.node,
      shown: left ? [first, left] : [first],
      title: `On ${first.node} the engine's share of memory leaves nothing for the KV cache`,
      why: `Weights and workspace take all of it${left ? `; ${left.groups['gib']} GiB remain` : ''}.`,
      advice: ['Raise memory.fraction in the recipe, or use more nodes or a smaller quantisation.'],
      values: left?.groups['gib'] ? { left: left.groups['gib'] } : {},
      confidence: 0.92,
      specificity: 3,
    };
  },
};
