import { inOrder, theHead } from '../line-signature.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const notEnabled = pattern(
  [
    'requires --enable-auto-tool-choice',
    'requires --tool-call-parser',
    'tool choice requires',
    '--tool-call-parser to be set',
    'enable-auto-tool-choice',
    'tool_call_parser is not',
    'tool call parser is not',
    'no tool call parser',
    'No tool call parser',
    'Tool calling is not enabled',
    'tool calling is not enabled',
  ],
  /tool choice requires|requires --(?:enable-auto-tool-choice|tool-call-parser)|--tool-call-parser to be set|(?:tool[_ ]call[_ ]parser is not (?:set|enabled|configured|specified))|[Nn]o tool call parser|[Tt]ool calling is not enabled/,
);
const cannotFind = pattern(
  'could not locate',
  /(?<parser>[\w .-]{0,400}(?:[Tt]ool|[Mm]istral) ?(?:[Pp]arser|extractor)) could not locate|could not locate.{0,40}tool call/,
);
const failed = pattern(
  [
    'Error in extracting tool call',
    'Error in parsing tool call',
    'rror trying to handle streaming tool call',
    'Failed to parse tool call',
    'xtracting tool call',
    'nable to parse tool call',
    'alid JSON in tool call',
  ],
  /Error (?:in|while) (?:extracting|parsing) tool calls?|Error trying to handle streaming tool call|(?:Failed|Unable) to parse tool calls?|extracting tool calls? (?:failed|from)/i,
);
/** Marks of tool calls of the families of models, as they stand in an answer nobody took them out of. */
const raw = pattern(
  [
    'tool_call',
    'tool_calls_section_begin',
    '[TOOL_CALLS]',
    '<function',
    '<|python_tag|>',
    '<|tool',
    '"content":"<',
    '"content": "<',
    '"content":"[',
    '"content": "[',
    '<invoke name',
    '<tool',
    'DSML',
    'functools[',
    'to=functions.',
    'arguments',
    '<parameter',
    '<arg_key>',
    '<|action_start|>',
  ],
  /["']?(?:content|text)["']?\s*[:=]\s*["'].{0,6000}?(?<mark><\/?tool_call|\\u003c\/?tool_call|\[TOOL_CALLS\]|<function(?:=|_call)|<\|python_tag\|>|<\|tool_calls?|tool_calls_section_begin|<[\w-]{1,400}:tool_call|<｜tool|<invoke name|DSML|functools\[|to=functions\.|<parameter=|<arg_key>|<\|action_start\|>|<tool(?:_use|_code)?>|\{\s*\\*["'](?:name|function)\\*["']\s*:.{0,300}?\\*["'](?:arguments|parameters)\\*["']\s*:)|["']?content["']?\s*[:=]\s*["']\[(?<python>\w{1,80}\(\w{1,80}=)/,
);
/** The same within the calls themselves: cut at the wrong places. */
const garbled = pattern(
  ['"name"', '"arguments"', "name='", "arguments='"],
  /["']?(?:name|arguments)["']?\s*[:=]\s*["'].{0,300}?(?<mark><\/?tool_call|<function=|<parameter=|<\/parameter|<\/function|\[TOOL_CALLS\]|<\|tool|<｜tool|<arg_key>|<invoke)/,
);
/** Words by which somebody says it himself. */
const told = pattern(
  ['parser', 'tool_calls'],
  /tool[_ -]?(?:call )?[_ -]?parser\b.{0,80}(?:does not match|doesn't match|mismatch|expects?\b|wrong|incompatible|different (?:format|model|family))|tool_calls\S{0,4} (?:is |are )?(?:empty|\[\]).{0,80}(?:content|text|markup|raw)/i,
);

/** Tool calls are asked for and no parser is turned on, or the parser is that of another family of models. */
export const toolCalls: Signature = {
  name: 'tool-calls',
  causes: ['tool-parser-not-enabled', 'tool-parser-mismatch'],
  seenOn: 'vLLM 0.6 to 0.32, SGLang 0.4 to 0.5.23',
  source:
    'vLLM entrypoints/openai/chat_completion/serving.py, cli_args.py and tool_parsers; SGLang function_call/function_call_parser.py',
  whileServing: true,
  patterns: [notEnabled, cannotFind, failed, raw, garbled, told],
  looks: ['"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
  match(view) {
    const off = inOrder([notEnabled], view)[0];
    if (off !== undefined) return disabled(view, [off], 0.95);
    const broken = inOrder([cannotFind], view).find(({ message }) => !/[Ff]alling back/.test(message));
    if (broken !== undefined) return mismatched(view, [broken], 0.94);
    const left = [
      ...inOrder([raw], view).filter(isAnswer),
      ...inOrder([garbled], view).filter(({ message }) => /tool_calls/.test(message)),
      ...inOrder([told], view),
    ];
    const errors = inOrder([failed], view).filter(
      ({ message, line }) => /Error/.test(message) || /\bERROR\b/.test(line.text),
    );
    const first = left[0] ?? errors[0];
    if (first === undefined) return undefined;
    if (errors.length > 0)
      return mismatched(view, [...left.slice(0, 2), ...errors.slice(0, 2)], left.length > 0 ? 0.9 : 0.72);
    // vLLM refuses tools without a parser, so raw marks mean a wrong one; SGLang lets them through.
    const parser = parserOf(view);
    if (parser === undefined && view.evidence.engine === 'sglang' && saysArguments(view))
      return disabled(view, left.slice(0, 2), 0.78);
    return mismatched(view, left.slice(0, 2), parser === undefined ? 0.72 : 0.86);
  },
};

function isAnswer({ message }: Found): boolean {
  return (
    !/chat_template|non-default args|server_args/.test(message) &&
    /choices|assistant|ChatCompletion|delta|finish_reason|tool_calls/.test(message) &&
    !/["']tool_calls["']\s*:\s*\[\s*\{/.test(message)
  );
}

function commands(view: View): readonly string[] {
  return view.evidence.ranks.map(({ node }) => view.command(node)).filter((text) => text !== '');
}

function saysArguments(view: View): boolean {
  return commands(view).length > 0;
}

/** The parser that the server was started with, where its arguments are known. */
function parserOf(view: View): string | undefined {
  for (const text of commands(view)) {
    const match = /(?:--tool-call-parser[= ]|tool_call_parser['"]?[:=] ?)['"]?([\w.-]+)/.exec(text);
    if (match?.[1] !== undefined && match[1] !== 'None') return match[1];
  }
  return undefined;
}

function disabled(view: View, shown: readonly Found[], confidence: number): Match {
  const first = shown[0];
  return {
    cause: 'tool-parser-not-enabled',
    ...(first === undefined ? { node: undefined } : theHead(first, shown, view)),
    shown,
    title: 'Tool calls were asked for, and the server has no tool parser turned on',
    why: 'Without one the server does not take tool calls out of what the model writes.',
    advice: [
      'Set serve.tools in the recipe: auto takes the parser that belongs to the model’s type.',
      'By hand: --enable-auto-tool-choice --tool-call-parser NAME for vLLM, --tool-call-parser NAME for SGLang.',
    ],
    confidence,
    specificity: 3,
  };
}

function mismatched(view: View, shown: readonly Found[], confidence: number): Match {
  const first = shown[0];
  const parser = first?.groups['parser']?.trim() ?? parserOf(view);
  const mark = shown.flatMap(({ groups }) => groups['mark']?.slice(0, 24) ?? groups['python'] ?? [])[0];
  return {
    cause: 'tool-parser-mismatch',
    ...(first === undefined ? { node: undefined } : theHead(first, shown, view)),
    shown,
    title: `The tool parser${parser === undefined ? '' : ` ${parser}`} does not fit the model`,
    why:
      mark === undefined
        ? 'It looks for marks that this model does not write.'
        : `The model writes its calls as ${mark}…, and the parser left them in the answer.`,
    advice: [
      'Set serve.tools in the recipe to the parser of the model’s family; auto takes it from the model’s type.',
      'Calls in JSON within <tool_call> want hermes (vLLM) or qwen25 (SGLang); calls as <function=…> want qwen3_coder.',
    ],
    values: { ...(parser === undefined ? {} : { parser }), ...(mark === undefined ? {} : { mark }) },
    confidence,
    specificity: 3,
    alternatives: [{ cause: 'tool-parser-not-enabled', confidence: 0.2 }],
  };
}
