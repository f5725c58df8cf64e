import type { Cured } from './cured.ts';
import { run, serve } from './sparks.ts';

const SGLANG = { engines: ['sglang'] } as const;
const VLLM = { engines: ['vllm'] } as const;
const TOKENIZER = 'Qwen/Qwen3.5-122B-A10B-FP8';
/** A cache of the hub with the tokenizer in it, mounted where the engine looks for it. */
const WITH_CACHE = {
  ...VLLM,
  args: { vllm: ['--tokenizer', TOKENIZER] },
  run: run('/home/aurora/.cache/huggingface:/root/.cache/huggingface:ro'),
};

/** Flags, layouts, files and parsers that do not go with the model, the engine's version or the nodes. */
export const curedModels: readonly Cured[] = [
  {
    name: 'newer-flag',
    title: 'The image’s SGLang is older than a flag of the recipe; it refuses it, and it is left out',
    cause: 'flag-unknown-to-this-version',
    remedy: 'drop-flag',
    recipe: { ...SGLANG, args: { sglang: ['--disable-flashinfer-autotune'] } },
    images: { lacks: ['--disable-flashinfer-autotune'] },
  },
  {
    name: 'misspelled-value',
    title: 'The reasoning parser is called otherwise in SGLang; it is written right',
    cause: 'flag-misspelled',
    remedy: 'right-value',
    recipe: { ...SGLANG, serve: serve({ reasoning: 'qwen_3' }) },
  },
  {
    name: 'odd-heads',
    title: 'The model’s vision tower has 25 heads, which two ranks cannot share; its layers are put in a row',
    cause: 'tp-size-not-divisible',
    remedy: 'tensor-that-divides',
    recipe: VLLM,
    a: { model: { vision_config: { num_heads: 25 } } },
    b: { model: { vision_config: { num_heads: 25 } } },
  },
  {
    name: 'half-blocks',
    title: 'Two ranks would cut the keys’ weights through a block of their scales; layers are put in a row',
    cause: 'tp-breaks-quantization-blocks',
    remedy: 'tensor-that-divides',
    recipe: SGLANG,
    a: { model: { text_config: { head_dim: 64, num_attention_heads: 128 } } },
    b: { model: { text_config: { head_dim: 64, num_attention_heads: 128 } } },
  },
  {
    name: 'long-context',
    title: 'More context is asked for than the model was trained for; its own limit is served',
    cause: 'context-longer-than-model',
    remedy: 'shorter-context',
    recipe: { ...SGLANG, context: 300_000, sequences: 2 },
  },
  {
    name: 'hub-away',
    title: 'The tokenizer is named by its repository, and the hub is not reached; its cached copy is used',
    cause: 'hf-unreachable',
    remedy: 'offline-hub',
    recipe: WITH_CACHE,
    a: { hubCache: [TOKENIZER] },
    b: { hubCache: [TOKENIZER] },
  },
  {
    name: 'hub-limits',
    title: 'The hub takes no more requests for the tokenizer’s files; its cached copy is used',
    cause: 'hf-rate-limited',
    remedy: 'offline-hub',
    recipe: WITH_CACHE,
    a: { hub: 'rate-limits', hubCache: [TOKENIZER] },
    b: { hub: 'rate-limits', hubCache: [TOKENIZER] },
  },
  {
    name: 'read-only-cache',
    title: 'The cache of kernels lies in a folder that is mounted read-only; each rank gets one of its own',
    cause: 'cache-directory-not-writable',
    remedy: 'own-caches',
    recipe: { ...VLLM, env: { VLLM_CACHE_ROOT: '/home/aurora/models/.cache/vllm' } },
  },
  {
    name: 'strange-reasoning',
    title:
      'The reasoning parser looks for marks that the model’s tokenizer has not; the model’s own is taken',
    cause: 'reasoning-parser-mismatch',
    remedy: 'reasoning-parser',
    node: 'spark-a',
    recipe: { ...VLLM, serve: serve({ reasoning: 'seed_oss' }) },
  },
  {
    name: 'thoughtless',
    title: 'A parser for models that always think is given to one that never does; the model’s own is taken',
    cause: 'reasoning-parser-mismatch',
    remedy: 'reasoning-parser',
    node: 'spark-a',
    recipe: { ...SGLANG, serve: serve({ reasoning: 'deepseek-r1' }) },
    a: { unthinking: true },
    b: { unthinking: true },
  },
  {
    name: 'tools-without-parser',
    title: 'Tools are turned on without a parser for them; the model’s own is taken',
    cause: 'tool-parser-not-enabled',
    remedy: 'tool-parser',
    node: 'spark-a',
    recipe: {
      ...VLLM,
      args: { vllm: ['--enable-auto-tool-choice'] },
      serve: serve({ tools: 'none' }),
    },
  },
  {
    name: 'strange-tools',
    title:
      'The tool parser is that of older models, and a call is left in the answer; the model’s own is taken',
    cause: 'tool-parser-mismatch',
    remedy: 'tool-parser',
    node: 'spark-a',
    recipe: { ...VLLM, serve: serve({ tools: 'hermes' }) },
  },
  {
    name: 'broken-drafts',
    title: 'This build’s code for drafting tokens is broken; it serves without drafts',
    cause: 'engine-bug-speculative-decoding',
    remedy: 'no-speculation',
    recipe: {
      ...VLLM,
      args: { vllm: ['--speculative-config', '{"method":"mtp","num_speculative_tokens":2}'] },
    },
    images: { lacks: ['speculative-decoding'] },
  },
];
