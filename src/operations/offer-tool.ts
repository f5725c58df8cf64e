import { argsOf, type EngineName, type Recipe } from '../domain/recipe.ts';
import { httpFrom } from '../remote/http.ts';
import { type Api, authorization } from './api.ts';
import type { World } from './world.ts';

/** A call is a few dozen tokens; one who thinks first is cut off, and nothing is said of its parser then. */
const CALL_TOKENS = 512;

/**
 * Whether somebody named a tool parser: the table of models is believed, and what a person wrote is tried, for a wrong
 * one leaves each call in the answer as text and no line says so.
 */
export function namesToolParser(recipe: Recipe, engine: EngineName): boolean {
  const { tools } = recipe.serve;
  return (
    (tools !== 'auto' && tools !== 'none') ||
    argsOf(recipe, engine).some((word) => word.split('=')[0] === '--tool-call-parser')
  );
}

/** The API's answer to a question that wants a tool, as it came; undefined where none came. */
export async function offerTool(world: World, api: Api): Promise<string | undefined> {
  const answer = await httpFrom(api.host, {
    address: api.address,
    port: api.port,
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'Content-Type': 'application/json', ...authorization(api) },
    body: JSON.stringify({
      model: api.model,
      messages: [{ role: 'user', content: 'What is the weather in Oslo? Use the tool.' }],
      tools: [WEATHER],
      tool_choice: 'auto',
      max_tokens: CALL_TOKENS,
      temperature: 0,
      chat_template_kwargs: { enable_thinking: false },
    }),
    timeoutSeconds: 120,
    signal: world.signal,
  });
  return answer.kind === 'answered' ? answer.body : undefined;
}

const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather in a city, now.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
