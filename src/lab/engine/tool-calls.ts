import { isJson, type Json, listOf, textOf } from './json.ts';

/** A call of a tool that a request offered. */
export type ToolCall = { readonly name: string; readonly parameter: string; readonly value: string };

/** Parsers of both engines that read the form of Qwen's models from Qwen3-Coder on. */
export const READS_XML = /^qwen3_(?:coder|xml)$/;
/** vLLM, entrypoints/openai/chat_completion/serving.py. */
export const NO_TOOL_PARSER =
  '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set';

/** The model calls the first tool that it is offered, for the place that it is asked about. */
export function toolCall(body: Json, prompt: string): ToolCall | undefined {
  const [tool] = listOf(body.tools).filter(isJson);
  const offered = isJson(tool?.function) ? tool.function : undefined;
  const name = textOf(offered?.name);
  if (name === undefined || body.tool_choice === 'none') return undefined;
  const parameters = isJson(offered?.parameters) ? offered.parameters : {};
  const parameter = textOf(listOf(parameters.required)[0]) ?? 'input';
  return { name, parameter, value: /\bin (\w+)/.exec(prompt)?.[1] ?? prompt };
}

/** As the lab's model writes it. */
export function written({ name, parameter, value }: ToolCall): string {
  return `<tool_call>\n<function=${name}>\n<parameter=${parameter}>\n${value}\n</parameter>\n</function>\n</tool_call>`;
}

/** As the API has it. */
export function asCall({ name, parameter, value }: ToolCall): Json {
  return {
    id: `call_${name}`,
    type: 'function',
    function: { name, arguments: JSON.stringify({ [parameter]: value }) },
  };
}
