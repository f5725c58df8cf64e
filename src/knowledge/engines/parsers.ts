import type { Software } from '../../domain/recipe.ts';

type Parsers = { readonly reasoning?: string; readonly tools?: string };

/**
 * `model_type` of config.json → the engine's own parser names; the first pattern that matches counts.
 * Names: SGLang v0.5.18 parser/reasoning_parser.py and function_call/function_call_parser.py; vLLM 2026-08
 * vllm/reasoning and vllm/tool_parsers. The Qwen3-Next and Qwen3.5 chat templates write tool calls in Qwen3-Coder's
 * XML form, earlier Qwen3 in the JSON form that SGLang calls qwen25 and vLLM hermes. A family that is not in the
 * table gets no parser: a wrong one hides the answer, none only leaves the reasoning in it.
 */
const FAMILIES: readonly (readonly [RegExp, Readonly<Record<Software, Parsers>>])[] = [
  [
    /^qwen3_(?:next|5|6|7|8)/,
    {
      sglang: { reasoning: 'qwen3', tools: 'qwen3_coder' },
      vllm: { reasoning: 'qwen3', tools: 'qwen3_coder' },
    },
  ],
  [
    /^qwen3/,
    { sglang: { reasoning: 'qwen3', tools: 'qwen25' }, vllm: { reasoning: 'qwen3', tools: 'hermes' } },
  ],
  [
    /^gpt_oss$/,
    {
      sglang: { reasoning: 'gpt-oss', tools: 'gpt-oss' },
      vllm: { reasoning: 'openai_gptoss', tools: 'openai' },
    },
  ],
  [
    /^glm4_moe$/,
    { sglang: { reasoning: 'glm45', tools: 'glm45' }, vllm: { reasoning: 'glm45', tools: 'glm45' } },
  ],
  [
    /^minimax_m2/,
    {
      sglang: { reasoning: 'minimax', tools: 'minimax-m2' },
      vllm: { reasoning: 'minimax_m2', tools: 'minimax_m2' },
    },
  ],
  [
    /^kimi_k2/,
    { sglang: { reasoning: 'kimi_k2', tools: 'kimi_k2' }, vllm: { reasoning: 'kimi_k2', tools: 'kimi_k2' } },
  ],
  [/^nemotron_h/, { sglang: { reasoning: 'nemotron_3', tools: 'qwen3_coder' }, vllm: {} }],
  [/^qwen2/, { sglang: { tools: 'qwen25' }, vllm: { tools: 'hermes' } }],
];

/**
 * What the recipe's `reasoning` and `tools` mean for this engine: `none` and an unknown family → undefined,
 * `auto` → by `model_type`, anything else as written.
 */
export function parsersFor(
  engine: Software,
  modelType: string | undefined,
  wanted: { readonly reasoning: string; readonly tools: string },
): { readonly reasoning: string | undefined; readonly tools: string | undefined } {
  const family: Parsers | undefined =
    modelType === undefined ? undefined : FAMILIES.find(([pattern]) => pattern.test(modelType))?.[1][engine];
  const pick = (asked: string, found: string | undefined): string | undefined =>
    asked === 'none' ? undefined : asked === 'auto' ? found : asked;
  return { reasoning: pick(wanted.reasoning, family?.reasoning), tools: pick(wanted.tools, family?.tools) };
}
