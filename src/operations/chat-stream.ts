import { z } from 'zod';
import { httpFrom } from '../remote/http.ts';
import { type Api, authorization } from './api.ts';
import type { World } from './world.ts';

export type ChatResult = {
  readonly kind: 'answered';
  readonly answer: string;
  readonly reasoning: string;
  readonly finish: string;
  /** Seconds from sending to the first token of any kind. */
  readonly firstTokenSeconds: number | undefined;
  /** Tokens after the first, by the server's own usage, over the time from first to last. */
  readonly tokensPerSecond: number | undefined;
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
};

export type ChatQuestion = {
  readonly prompt: string;
  readonly system?: string;
  readonly maxTokens: number;
  readonly onText?: (part: { readonly kind: 'answer' | 'reasoning'; readonly text: string }) => void;
};

const chunkSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z
          .looseObject({
            content: z.string().nullish(),
            reasoning_content: z.string().nullish(),
            // vLLM renamed the field in 2026; both are in use (corpus case 141).
            reasoning: z.string().nullish(),
          })
          .nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .default([]),
  usage: z
    .looseObject({ prompt_tokens: z.number().nullish(), completion_tokens: z.number().nullish() })
    .nullish(),
  error: z.unknown().optional(),
});

/** Characters of one event of the stream; a chunk has some hundred. */
const LONGEST_LINE = 2 ** 20;

/** One streamed chat completion through the head's own port. Tokens are the server's usage, never counted chunks. */
export async function chatWith(
  world: World,
  api: Api,
  question: ChatQuestion,
): Promise<ChatResult | { readonly kind: 'failed'; readonly why: string }> {
  const started = world.clock.now();
  let first: number | undefined;
  let last: number | undefined;
  let answer = '';
  let reasoning = '';
  let finish = '';
  let promptTokens: number | undefined;
  let outputTokens: number | undefined;
  let rest = '';
  let trouble = '';
  const take = (text: string) => {
    const lines = (rest + text).split(/\r?\n/);
    // Whatever answers there may be no model at all, and never end its line.
    rest = (lines.pop() ?? '').slice(0, LONGEST_LINE);
    for (const line of lines) {
      if (!line.startsWith('data:')) {
        if (line.trim() !== '' && trouble.length < 400) trouble += line;
        continue;
      }
      const chunk = readChunk(line.slice(5).trim());
      if (chunk === undefined) continue;
      if (chunk.error !== undefined) trouble += JSON.stringify(chunk.error).slice(0, 400);
      promptTokens = chunk.usage?.prompt_tokens ?? promptTokens;
      outputTokens = chunk.usage?.completion_tokens ?? outputTokens;
      for (const choice of chunk.choices) {
        finish = choice.finish_reason ?? finish;
        const thought = choice.delta?.reasoning_content ?? choice.delta?.reasoning ?? '';
        const said = choice.delta?.content ?? '';
        if (thought === '' && said === '') continue;
        last = world.clock.now();
        first ??= last;
        reasoning += thought;
        answer += said;
        if (thought !== '') question.onText?.({ kind: 'reasoning', text: thought });
        if (said !== '') question.onText?.({ kind: 'answer', text: said });
      }
    }
  };
  const response = await httpFrom(api.host, {
    address: api.address,
    port: api.port,
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...authorization(api) },
    body: JSON.stringify({
      model: api.model,
      messages: [
        ...(question.system ? [{ role: 'system', content: question.system }] : []),
        { role: 'user', content: question.prompt },
      ],
      max_tokens: question.maxTokens,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
    timeoutSeconds: 300,
    signal: world.signal,
    onData: take,
  });
  take('\n');
  if (response.kind === 'failed') return { kind: 'failed', why: response.why };
  if (response.status !== 200)
    return {
      kind: 'failed',
      why: `/v1/chat/completions answers ${response.status} ${trouble.slice(0, 300)}`.trim(),
    };
  if (first === undefined)
    return { kind: 'failed', why: trouble === '' ? 'the stream ended without a token' : trouble };
  const apart = splitThinking(answer, reasoning);
  const seconds = last === undefined ? 0 : (last - first) / 1000;
  return {
    kind: 'answered',
    ...apart,
    finish,
    firstTokenSeconds: (first - started) / 1000,
    tokensPerSecond:
      outputTokens !== undefined && outputTokens > 1 && seconds > 0
        ? (outputTokens - 1) / seconds
        : undefined,
    promptTokens,
    outputTokens,
  };
}

function readChunk(text: string): z.output<typeof chunkSchema> | undefined {
  if (text === '' || text === '[DONE]') return undefined;
  try {
    return chunkSchema.parse(JSON.parse(text));
  } catch {
    // A comment line or a chunk of another shape: it carries no token for us.
    return undefined;
  }
}

/** Without a reasoning parser the thoughts stand in the content as <think>…</think>: told apart here. */
function splitThinking(
  answer: string,
  reasoning: string,
): { readonly answer: string; readonly reasoning: string } {
  const match = /^\s*(?:<think>)?([\s\S]*?)<\/think>([\s\S]*)$/.exec(answer);
  if (match) return { answer: match[2]?.trim() ?? '', reasoning: reasoning + (match[1] ?? '').trim() };
  if (/^\s*<think>/.test(answer))
    return { answer: '', reasoning: reasoning + answer.replace(/^\s*<think>/, '') };
  return { answer: answer.trim(), reasoning };
}
