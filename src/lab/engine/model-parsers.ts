import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJson, parseJson, textOf } from './json.ts';

/** vLLM's reasoning parsers that look for their marks in the vocabulary when they are made (vllm/reasoning). */
const REASONING: Readonly<Record<string, { readonly name: string; readonly marks: readonly string[] }>> = {
  qwen3: { name: 'Qwen3ReasoningParser', marks: ['<think>', '</think>'] },
  deepseek_r1: { name: 'DeepSeekR1ReasoningParser', marks: ['<think>', '</think>'] },
  seed_oss: { name: 'SeedOSSReasoningParser', marks: ['<seed:think>', '</seed:think>'] },
  mistral: { name: 'MistralReasoningParser', marks: ['[THINK]', '[/THINK]'] },
};

/** What the engine core raises while it makes the parser, or undefined where the model's tokenizer has its marks. */
export function reasoningProblem(parser: string | undefined, folder: string): string | undefined {
  const known = parser === undefined ? undefined : REASONING[parser];
  if (known === undefined) return undefined;
  const words = addedTokens(folder);
  return known.marks.every((mark) => words.includes(mark))
    ? undefined
    : `${known.name} reasoning parser could not locate think start/end tokens in the tokenizer!`;
}

/** SGLang's parsers that take all for thoughts until an end mark comes (reasoning_parser.py, force_reasoning). */
const FORCED = ['deepseek-r1', 'qwen3-thinking', 'step3'];

/** How a reasoning parser goes on with what the model writes: not at all, by its marks, or all of it until an end mark. */
export function readsThoughts(
  parser: string | undefined,
  engine: 'sglang' | 'vllm',
): 'not' | 'marked' | 'all' {
  if (parser === undefined) return 'not';
  return engine === 'sglang' && FORCED.includes(parser) ? 'all' : 'marked';
}

/** Whether the model thinks before it answers: its tokenizer has marks for that. */
export function modelThinks(folder: string): boolean {
  return addedTokens(folder).includes('</think>');
}

/** Words beyond the vocabulary that the model's tokenizer has. */
function addedTokens(folder: string): readonly string[] {
  const file = join(folder, 'tokenizer_config.json');
  // A folder without one, as tests make them, is taken for the lab's usual model.
  const config = existsSync(file) ? parseJson(readFileSync(file, 'utf8')) : undefined;
  if (config === undefined) return ['<think>', '</think>'];
  const added = isJson(config?.added_tokens_decoder) ? Object.values(config.added_tokens_decoder) : [];
  return added.filter(isJson).flatMap((token) => textOf(token.content) ?? []);
}
