import { factsOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { isUnified, memoryOwner } from './memory-owner.ts';
import { holdersIn, isGb10Size, READING_FORMS, saysUnified } from './memory-readings.ts';

const tooLong = pattern(
  'KV cache is needed, which is larger than',
  /max seq len \((?<context>\d{1,20})\),\s{0,60}\(?(?<need>[\d.]{1,200}) GiB KV cache is needed, which is larger than the available KV cache memory \((?<have>-?[\d.]{1,200}) GiB\)/,
);
const tooLongOld = pattern(
  'tokens that can be stored in KV cache',
  /max seq len \((?<context>\d{1,20})\) is larger than the maximum number of tokens that can be stored in KV cache \((?<tokens>\d{1,20})\)/,
);
const estimate = pattern(
  'estimated maximum model length is',
  /estimated maximum model length is (?<tokens>\d{1,20})/,
);
const noBlocks = pattern(
  'No available memory for the cache blocks',
  /No available memory for the cache blocks/,
);
const available = pattern(
  'Available KV cache memory',
  /Available KV cache memory: (?<gib>-?[\d.]{1,200}) GiB/,
);
const sglangNone = pattern(
  [
    'Not enough memory. Please try',
    'Loaded weights leave no GPU memory for the KV cache',
    'Not enough GPU memory for hybrid',
    'max_total_num_tokens',
    'max_total_num_token ',
    'KV pool size',
    'pool size must be',
    'kv_cache size',
  ],
  /Not enough memory\. Please try (?:to increase|increasing) --mem-fraction-static|Loaded weights leave no GPU memory|Not enough GPU memory for hybrid|max_total_num_tokens?\b[^\d\n]{0,200}(?:<= ?0|is not positive|must be positive|=-\d|= ?0\b)|(?:KV|kv_cache|KV cache) pool size[^\d\n]{0,200}(?:<= ?0|not positive|negative|must be positive|-\d)/,
);
/** vLLM's account of its profile: V0 and early V1 in one sentence, later ones at DEBUG. */
const account = pattern(
  ['non_torch_memory takes', 'non-torch forward increase memory'],
  /total_gpu_memory \((?<total>[\d.]{1,200}) ?GiB\) x gpu_memory_utilization \((?<share>[\d.]{1,200})\) = (?<budget>[\d.]{1,200}) ?GiB; model weights take (?<weights>[\d.]{1,200}) ?GiB; non_torch_memory takes (?<other>-?[\d.]{1,200}) ?GiB|non-torch forward increase memory: (?<other2>-?[\d.]{1,200}) ?GiB; weights memory: (?<weights2>[\d.]{1,200}) ?GiB/,
);
const weights = pattern('Model loading took', /^Model loading took (?<gib>[\d.]{1,200}) GiB/);
const share = pattern(
  ['gpu_memory_utilization', '--gpu-memory-utilization'],
  /gpu[_-]memory[_-]utilization['"]?\s{0,60}[=: ]\s{0,60}['"]?(?<share>0?\.\d{1,20}|1\.0)/,
);
const capacity = pattern(
  ['total capacity of', 'GiB) on startup', 'Initial free memory'],
  /total capacity of (?<total>[\d.]{1,200}) GiB|\/(?<total2>[\d.]{1,200}) GiB\) on startup/,
);

/** What a context, NCCL and workspaces take outside torch; more than this is somebody else's. */
const OUTSIDE_TORCH_GIB = 12;
/** Beyond weights, activations and graphs: as much missing is not the engine's own. */
const UNEXPLAINED_GIB = 14;
const GB10_GIB = 120.5;

/** The KV cache is smaller than one request of the wanted context. `values.estimate` is the engine's own. */
export const kvCacheTooSmall: Signature = {
  name: 'kv-cache-too-small',
  causes: ['kv-cache-too-small-for-max-len'],
  seenOn: 'vLLM 0.3 to main of 17 August 2026',
  source: 'vLLM v1/core/kv_cache_utils.py; v0 worker.py, raise_if_cache_size_invalid',
  looks: [
    "ValueError: To serve at least one request with the model's max seq len (65536), 8.00 GiB KV cache is needed, which is larger than the available KV cache memory (6.11 GiB). Based on the available memory, the estimated maximum model length is 50032.",
  ],
  patterns: [tooLong, tooLongOld, estimate, available],
  match({ find }) {
    const first = find(tooLong)[0] ?? find(tooLongOld)[0];
    if (first === undefined) return undefined;
    const { context = '', need, have } = first.groups;
    // The head says it for all ranks; the one with so little left is another, perhaps.
    const short = find(available).findLast((found) => found.groups['gib'] === have);
    const node = short?.node ?? first.node;
    const tokens = first.groups['tokens'] ?? find(estimate)[0]?.groups['tokens'];
    const lacks =
      need === undefined
        ? ''
        : `One request of that length takes ${need} GiB, and ${have} GiB are left beside the weights`;
    return {
      cause: 'kv-cache-too-small-for-max-len',
      node,
      shown: short === undefined || short.node === first.node ? [first] : [first, short],
      title: `${node} has no room for the KV cache of ${context} tokens`,
      why: `${lacks}${lacks !== '' && tokens ? '; the engine estimates that ' : ''}${tokens ? `${lacks === '' ? 'Beside the weights no more than ' : ''}${tokens} tokens fit` : ''}.`,
      advice: [
        tokens ? `Set context: ${tokens} in the recipe, or less.` : 'Set a smaller context in the recipe.',
        'Or give it more: a higher memory.fraction, a KV cache in fp8 (--kv-cache-dtype fp8), or another node.',
      ],
      values: {
        context,
        ...(need === undefined ? {} : { need }),
        ...(have === undefined ? {} : { have }),
        ...(tokens ? { estimate: tokens } : {}),
      },
      confidence: 0.97,
      specificity: 3,
    };
  },
};

/** The engine's share of memory does not even hold weights and workspace, or somebody else's memory was counted as its own. */
export const kvPoolNotPositive: Signature = {
  name: 'kv-pool-not-positive',
  causes: [
    'kv-pool-size-not-positive',
    'gpu-memory-utilization-too-low',
    'kv-cache-negative-other-process-counted',
  ],
  seenOn: 'SGLang 0.4 to 0.5.18, vLLM 0.6 to 0.28, 2025 and 2026',
  source:
    'SGLang kv_cache_configurator.py, model_runner.py; vLLM v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py',
  looks: [
    'Available KV cache memory: -2.26 GiB, then: ValueError: No available memory for the cache blocks.',
    'RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.',
  ],
  patterns: [sglangNone, noBlocks, available, account, weights, share, capacity, ...READING_FORMS],
  match(view) {
    const { find } = view;
    const sglang = find(sglangNone)[0];
    // The head says it for all ranks; the one that has nothing left says how little.
    const short = find(available).find((found) => Number(found.groups['gib']) <= 0);
    const said = find(noBlocks);
    const vllm = said.find((found) => short === undefined || found.node === short.node) ?? short ?? said[0];
    const first = sglang ?? vllm;
    if (first === undefined || view.serves) return undefined;
    const left = short ?? find(available).find((found) => found.rank === first.rank);
    const counted = sglang === undefined ? otherCounted(view, first, left) : undefined;
    if (counted !== undefined) return counted;
    const shown = left && left !== first ? [first, left] : [first];
    return {
      cause: sglang ? 'kv-pool-size-not-positive' : 'gpu-memory-utilization-too-low',
      node: first.node,
      shown,
      title: `On ${first.node} the engine's share of memory leaves nothing for the KV cache`,
      why: `Weights and workspace take all of it${left ? `; ${left.groups['gib']} GiB remain` : ''}.`,
      advice: [
        'Raise memory.fraction in the recipe, or use more nodes or a smaller quantisation.',
        'If it was lowered because of another failure, that one is to be cured instead.',
      ],
      values: left?.groups['gib'] ? { left: left.groups['gib'] } : {},
      confidence: 0.92,
      specificity: 3,
    };
  },
};

/** The sums of the profile show memory that is not the engine's. */
function otherCounted(view: View, first: Found, left: Found | undefined): Match | undefined {
  const { node } = first;
  const on = (found: Found) => found.node === node;
  const told = view.find(account).findLast(on);
  const outside = Number(told?.groups['other'] ?? told?.groups['other2'] ?? 0);
  const holder = holdersIn(view, node).find((one) => one.gib >= 4);
  const gap = unexplainedBudget(view, node, left);
  const owner = memoryOwner(view.evidence, node);
  const seen =
    owner.kind === 'holder'
      ? { found: undefined, gib: owner.sumBytes / 2 ** 30, sure: owner.sure ? 0.88 : 0.7 }
      : undefined;
  const proof =
    told !== undefined && outside > OUTSIDE_TORCH_GIB
      ? { found: told, gib: outside, sure: 0.92 }
      : holder !== undefined
        ? { found: holder.found, gib: holder.gib, sure: 0.85 }
        : (seen ?? gap);
  if (proof === undefined) return undefined;
  return {
    cause: 'kv-cache-negative-other-process-counted',
    node,
    shown: [
      first,
      ...(left && left !== first ? [left] : []),
      ...(proof.found === undefined ? [] : [proof.found]),
    ],
    title: `vLLM on ${node} counted ${proof.gib.toFixed(1)} GiB of somebody else as its own`,
    why: 'It measures how far free memory falls while it loads. Another process that grows meanwhile, or the page cache on unified memory, is taken for its own use, and nothing remains for the KV cache.',
    advice: [
      `On ${node}: nvidia-smi; free -g, and stop or wait for what grows beside the engine.`,
      'Start one engine after the other, not two at once; on unified memory drop the page cache first. --kv-cache-memory-bytes in args sets the size without measuring.',
    ],
    values: { counted: proof.gib.toFixed(1) },
    confidence: proof.sure,
    specificity: 3,
    alternatives: [{ cause: 'gpu-memory-utilization-too-low', confidence: 1 - proof.sure }],
  };
}

/** The budget less weights and what is left: more than an engine needs for itself. */
function unexplainedBudget(
  view: View,
  node: string,
  left: Found | undefined,
): { readonly found: Found; readonly gib: number; readonly sure: number } | undefined {
  const on = (found: Found) => found.node === node;
  const loaded = view.find(weights).findLast(on);
  const asked = view.find(share).findLast(on);
  const part = Number(asked?.groups['share'] ?? Number.NaN);
  const said = view.find(capacity).find(on);
  const shared = saysUnified(view, node) || isUnified(factsOf(view.evidence, node));
  const total = Number(said?.groups['total'] ?? said?.groups['total2'] ?? (shared ? GB10_GIB : Number.NaN));
  if (loaded === undefined || left === undefined || !Number.isFinite(part) || !Number.isFinite(total))
    return undefined;
  const gib = total * part - Number(loaded.groups['gib']) - Number(left.groups['gib']);
  return gib > UNEXPLAINED_GIB
    ? { found: loaded, gib, sure: isGb10Size(total) || shared ? 0.78 : 0.75 }
    : undefined;
}
