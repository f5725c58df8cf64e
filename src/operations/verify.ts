import { isObject, parseObject, textAt } from '../domain/json.ts';
import type { Service } from '../domain/plan.ts';
import type { Recipe } from '../domain/recipe.ts';
import { httpFrom } from '../remote/http.ts';
import { apiOf, authorization } from './api.ts';
import { type ChatResult, chatWith } from './chat-stream.ts';
import { offerTool } from './offer-tool.ts';
import type { World } from './world.ts';

export type Verified = {
  /** Answers that may show a parser which does not fit the model, as the chat API has them. */
  readonly said: readonly string[];
} & (
  | { readonly kind: 'proved'; readonly chat: ChatResult; readonly speed: ChatResult }
  | {
      readonly kind: 'failed';
      readonly step: 'models' | 'answer' | 'speed';
      readonly why: string;
      readonly text: string;
    }
);

/**
 * The proof: the model is named, a real question is answered as expected with its reasoning told apart, and a
 * single stream is timed by the server's own usage. Nothing is believed from a port or a 200 alone. With
 * `tools`, a tool is offered too.
 */
export async function verify(world: World, recipe: Recipe, head: Service, tools: boolean): Promise<Verified> {
  const api = apiOf(world, recipe, head);
  const models = await httpFrom(api.host, {
    address: api.address,
    port: api.port,
    method: 'GET',
    path: '/v1/models',
    headers: authorization(api),
    timeoutSeconds: 15,
    signal: world.signal,
  });
  if (models.kind === 'failed') return failed('models', 'the list of models did not come', models.why);
  if (models.status === 401 || models.status === 403) {
    return failed('models', `the API refuses the key (${models.status})`, models.body.slice(0, 400));
  }
  if (models.status !== 200)
    return failed('models', `/v1/models answers ${models.status}`, models.body.slice(0, 400));
  if (!modelNames(models.body).includes(api.model)) {
    return failed('models', `/v1/models does not name ${api.model}`, models.body.slice(0, 400));
  }
  const chat = await chatWith(world, api, {
    prompt: recipe.check.prompt,
    maxTokens: withinContext(recipe, ANSWER_TOKENS),
  });
  if (chat.kind === 'failed') return failed('answer', 'the check question got no answer', chat.why);
  if (!chat.answer.toLowerCase().includes(recipe.check.expect.toLowerCase())) {
    const why =
      chat.answer.trim() === ''
        ? 'the answer is empty; all tokens went into the reasoning'
        : 'the answer is not the expected one';
    const text = `expected "${recipe.check.expect}", got: ${(chat.answer || chat.reasoning).slice(0, 300)}`;
    return { ...failed('answer', why, text), said: [asAnswer(chat)] };
  }
  const speed = await chatWith(world, api, {
    prompt: 'Count from 1 to 40, in words, separated by commas.',
    maxTokens: withinContext(recipe, SPEED_TOKENS),
  });
  if (speed.kind === 'failed') return failed('speed', 'the timed question got no answer', speed.why);
  const call = tools ? await offerTool(world, api) : undefined;
  return { kind: 'proved', chat, speed, said: call === undefined ? [] : [call] };
}

/** A streamed answer as the API would have given it whole. */
function asAnswer({ answer, reasoning, finish }: ChatResult): string {
  const message = { role: 'assistant', content: answer === '' ? null : answer, reasoning };
  return JSON.stringify({ choices: [{ message, finish_reason: finish }] });
}

/** Reasoning and answer of the check question. */
const ANSWER_TOKENS = 2048;
const SPEED_TOKENS = 128;

/** vLLM refuses a request whose longest answer alone is longer than the context: half of it is left to the question. */
function withinContext({ context }: Recipe, tokens: number): number {
  return context === undefined ? tokens : Math.max(1, Math.min(tokens, Math.floor(context / 2)));
}

function failed(step: 'models' | 'answer' | 'speed', why: string, text: string): Verified {
  return { kind: 'failed', step, why, text, said: [] };
}

/** Ids in an answer of /v1/models; none where it is not JSON: a proxy's page, or another program behind the port. */
function modelNames(body: string): readonly string[] {
  const data = parseObject(body)?.['data'];
  return Array.isArray(data)
    ? data.flatMap((card: unknown) => (isObject(card) ? textAt(card, 'id') : []))
    : [];
}
