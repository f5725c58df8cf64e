import type { IncomingMessage, ServerResponse } from 'node:http';
import { answer, tokens } from './answer.ts';
import type { Served } from './api.ts';
import type { Piece } from './generation.ts';
import { isJson, type Json, listOf, numberOf, textOf } from './json.ts';
import { asCall, NO_TOOL_PARSER, READS_XML, type ToolCall, toolCall, written } from './tool-calls.ts';

export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Json;
};

/** /v1/completions and /v1/chat/completions, whole or as server-sent events. */
export async function complete(served: Served, { response, body }: Exchange, chat: boolean): Promise<void> {
  const name = textOf(body.model) ?? served.names[0] ?? '';
  if (served.engine === 'vllm' && !served.names.includes(name))
    return send(response, 404, failure(served, `The model \`${name}\` does not exist.`, 404));
  const prompt = chat ? lastUserText(body.messages) : promptText(body.prompt);
  if (prompt === undefined)
    return send(response, 400, failure(served, `${chat ? 'messages' : 'prompt'}: Field required`, 400));
  served.firstRequest();
  const promptTokens = tokens(prompt).length + (chat ? 11 : 0);
  const maxTokens = numberOf(body.max_completion_tokens) ?? numberOf(body.max_tokens) ?? (chat ? 8192 : 16);
  if (promptTokens + maxTokens > served.contextTokens && promptTokens >= served.contextTokens)
    return send(
      response,
      400,
      failure(
        served,
        `This model's maximum context length is ${served.contextTokens} tokens. However, your request has ${promptTokens} input tokens. Please reduce the length of the input messages.`,
        400,
      ),
    );
  const call = chat ? toolCall(body, prompt) : undefined;
  if (call !== undefined && served.engine === 'vllm' && served.toolParser === undefined)
    return send(response, 400, failure(served, NO_TOOL_PARSER, 400));
  const pieces = piecesOf(
    served,
    call === undefined ? { prompt, chat, thinks: served.thinks && thinks(body) } : { call },
  );
  const work = { promptTokens, pieces, maxTokens, endless: body.ignore_eos === true };
  const wanted = pieces.reduce((sum, piece) => sum + tokens(piece.text).length, 0);
  const finish = work.endless || wanted > maxTokens ? 'length' : 'stop';
  let aborted = false;
  response.on('close', () => {
    aborted = true;
  });
  const stream = served.generator.generate(work, () => aborted);
  const head = {
    id: `${chat ? 'chatcmpl' : 'cmpl'}-${Math.random().toString(16).slice(2).padEnd(16, '0')}`,
    created: Math.floor(Date.now() / 1000),
    model: name,
  };
  if (body.stream !== true)
    return answerWhole(served, { response, head, stream, promptTokens, finish, chat, call });
  const include = isJson(body.stream_options) && body.stream_options.include_usage === true;
  return answerStream(served, { response, head, stream, promptTokens, finish, chat, include });
}

type Work = {
  readonly response: ServerResponse;
  readonly head: { readonly id: string; readonly created: number; readonly model: string };
  readonly stream: AsyncGenerator<Piece>;
  readonly promptTokens: number;
  readonly finish: 'stop' | 'length';
  readonly chat: boolean;
};

async function answerWhole(
  served: Served,
  work: Work & { readonly call: ToolCall | undefined },
): Promise<void> {
  let reasoning = '';
  let content = '';
  let count = 0;
  for await (const piece of work.stream) {
    count += 1;
    if (piece.kind === 'reasoning') reasoning += piece.text;
    else content += piece.text;
  }
  const { call } = work;
  const taken = call !== undefined && READS_XML.test(served.toolParser ?? '') ? call : undefined;
  const message = {
    role: 'assistant',
    content: taken !== undefined || (content === '' && reasoning !== '') ? null : content,
    ...thinking(served, reasoning === '' ? null : reasoning),
    tool_calls: taken === undefined ? null : [asCall(taken)],
  };
  send(work.response, 200, {
    ...work.head,
    object: work.chat ? 'chat.completion' : 'text_completion',
    choices: [
      {
        index: 0,
        ...(work.chat ? { message } : { text: content }),
        logprobs: null,
        finish_reason: taken === undefined ? work.finish : 'tool_calls',
      },
    ],
    usage: usage(work.promptTokens, count),
  });
}

async function answerStream(served: Served, work: Work & { readonly include: boolean }): Promise<void> {
  const { response, head, chat } = work;
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
  });
  const object = chat ? 'chat.completion.chunk' : 'text_completion';
  const event = (choices: readonly Json[], more: Json = {}): void => {
    response.write(`data: ${JSON.stringify({ ...head, object, choices, ...more })}\n\n`);
  };
  const choice = (part: Json, finish: string | null): Json => ({
    index: 0,
    ...part,
    logprobs: null,
    finish_reason: finish,
  });
  if (chat) event([choice({ delta: { role: 'assistant', content: '' } }, null)]);
  let count = 0;
  for await (const piece of work.stream) {
    count += 1;
    const delta =
      piece.kind === 'reasoning'
        ? { content: null, ...thinking(served, piece.text) }
        : { content: piece.text };
    event([choice(chat ? { delta } : { text: piece.text }, null)]);
  }
  event([choice(chat ? { delta: {} } : { text: '' }, work.finish)]);
  if (work.include) event([], { usage: usage(work.promptTokens, count) });
  response.end('data: [DONE]\n\n');
}

/** SGLang and older clients read `reasoning_content`; vLLM has renamed it to `reasoning` and fills both here. */
function thinking(served: Served, text: string | null): Json {
  return served.engine === 'vllm'
    ? { reasoning: text, reasoning_content: text }
    : { reasoning_content: text };
}

function usage(prompt: number, completion: number): Json {
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    completion_tokens: completion,
    prompt_tokens_details: null,
  };
}

function piecesOf(
  served: Served,
  asked:
    | { readonly prompt: string; readonly chat: boolean; readonly thinks: boolean }
    | { readonly call: ToolCall },
): readonly Piece[] {
  if ('call' in asked) return [{ kind: 'content', text: written(asked.call) }];
  const { prompt, chat, thinks } = asked;
  const said = answer(prompt);
  if (!chat) return [{ kind: 'content', text: ` ${said.content}` }];
  if (!thinks) return [{ kind: served.thoughts === 'all' ? 'reasoning' : 'content', text: said.content }];
  if (served.thoughts !== 'not')
    return [
      { kind: 'reasoning', text: said.reasoning },
      { kind: 'content', text: said.content },
    ];
  return [{ kind: 'content', text: `<think>\n${said.reasoning}\n</think>\n\n${said.content}` }];
}

function thinks(body: Json): boolean {
  const template = isJson(body.chat_template_kwargs) ? body.chat_template_kwargs : {};
  return template.enable_thinking !== false && template.thinking !== false;
}

function lastUserText(messages: unknown): string | undefined {
  const list = listOf(messages).filter(isJson);
  if (list.length === 0) return undefined;
  const last = list.filter((message) => message.role === 'user').at(-1) ?? list.at(-1);
  const content = last?.content;
  if (typeof content === 'string') return content;
  return listOf(content)
    .filter(isJson)
    .map((part) => textOf(part.text) ?? '')
    .join(' ');
}

function promptText(prompt: unknown): string | undefined {
  if (typeof prompt === 'string') return prompt;
  return textOf(listOf(prompt)[0]);
}

/** An error body in the engine's own form. */
export function failure(served: Served, message: string, code: number): Json {
  const type = code === 404 ? 'NotFoundError' : 'BadRequestError';
  return served.engine === 'vllm'
    ? { error: { message, type, param: null, code } }
    : { object: 'error', message, type, param: null, code };
}

/** Answers once; a body of undefined is an empty one. */
export function send(response: ServerResponse, status: number, body: Json | undefined): void {
  if (response.writableEnded || response.destroyed) return;
  if (body === undefined) {
    response.writeHead(status, { 'content-length': 0 });
    response.end();
    return;
  }
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
