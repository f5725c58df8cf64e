import { inOrder, lineSignature, sameLog, theHead } from '../line-signature.ts';
import { headOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

/** An answer of the chat API whose message has reasoning under either of its two names. */
const answer = pattern(
  ['"reasoning', "reasoning='", "reasoning_content='", 'reasoning_content=', "'reasoning"],
  /(?:["']reasoning(?:_content)?["']\s*:\s*["']|reasoning(?:_content)?=["'])(?!["'])/,
);
const ended = pattern(
  ['finish_reason'],
  /["']?finish_reason["']?\s*[:=]\s*["'](?<reason>length|stop|tool_calls)["']/,
);
const tagged = pattern(
  ['<think>', '</think>', '<|channel|>analysis', '[THINK]', '\\u003cthink', '<seed:think>', '<reasoning>'],
  /["']?content["']?\s*[:=]\s*["'][^"']{0,4000}?(?<tag><\/?think>|<\|channel\|>analysis|\[THINK\]|\\u003c\/?think|<seed:think>|<\/?reasoning>)/,
);
const thinkTag = pattern(
  ['<think>', '\\u003cthink'],
  /["']?reasoning(?:_content)?["']?\s*[:=]\s*["']\s*(?:<think>|\\u003cthink)/,
);
const budget = pattern(
  ['thinking_token_budget', 'reasoning_config', 'reasoning-config'],
  /thinking_token_budget is set but reasoning_config is not configured|--reasoning-config to use thinking_token_budget/,
);
const cannotFind = pattern(
  'could not locate',
  /(?<parser>[\w .-]{0,400}[Rr]easoning ?(?:[Pp]arser|extractor)) could not locate|could not locate think/,
);
const emptyNote = pattern(
  [
    'content is empty',
    'empty content',
    'content: null',
    'content=None',
    'empty response',
    'empty answer',
    'content is None',
    'content null',
  ],
  /(?:content (?:is )?(?:empty|null|None)|empty (?:content|response|answer)).{0,600}(?:length|max_tokens|finish_reason|reasoning)/i,
);

const EMPTY = /["']content["']\s*:\s*(?:null|None|""|'')|content=(?:None|''|"")/;

/** The answer is empty: its tokens went into reasoning, or the parser put the answer there. */
export const emptyAnswer: Signature = {
  name: 'empty-answer',
  causes: ['reasoning-consumes-output', 'reasoning-parser-mismatch'],
  seenOn: 'vLLM 0.8 to 0.32, SGLang 0.4 to 0.5.23, openai for Python 1 and 2',
  source: 'OpenAI chat API; vLLM reasoning parsers and protocol; SGLang parser/reasoning_parser.py',
  whileServing: true,
  patterns: [answer, ended, tagged, thinkTag, budget, cannotFind, emptyNote],
  looks: [
    '{"choices":[{"message":{"role":"assistant","content":null,"reasoning":"The user …"},"finish_reason":"length"}]}',
  ],
  match(view) {
    const broken = inOrder([cannotFind], view)[0];
    if (broken !== undefined) return mismatch(view, [broken], 0.94, 'could not locate');
    const empty = inOrder([answer], view).filter(({ message }) => EMPTY.test(message));
    const tags = inOrder([tagged], view).filter(isAnswer);
    const first = empty[0];
    if (first === undefined) {
      const note = inOrder([emptyNote], view)[0];
      if (note !== undefined) return consumed(view, [note], 0.66);
      return tags[0] === undefined ? undefined : mismatch(view, tags.slice(0, 2), 0.8, 'tags');
    }
    const cut = empty.find((found) => reasonOf(found, view) === 'length');
    const whole = empty.find((found) => reasonOf(found, view) === 'stop');
    if (cut !== undefined) return consumed(view, [cut, ...view.find(budget)], 0.9);
    if (whole !== undefined)
      return mismatch(view, [whole], view.find(thinkTag).length > 0 ? 0.9 : 0.84, 'stop');
    return consumed(view, [first], 0.56);
  },
};

/** A line of a log of requests, or an answer: not the server's arguments, in which templates stand. */
function isAnswer({ message }: Found): boolean {
  return (
    !/chat_template|non-default args|server_args/.test(message) &&
    /choices|assistant|ChatCompletion|delta/.test(message)
  );
}

/** Why it ended: in the same line, or in the next ones of an answer that is printed over several. */
function reasonOf(found: Found, view: View): string | undefined {
  const own = /["']?finish_reason["']?\s*[:=]\s*["'](\w+)["']/.exec(found.message)?.[1];
  if (own !== undefined) return own;
  return view
    .find(ended)
    .find((other) => sameLog(other, found) && Math.abs(other.line.line - found.line.line) <= 15)?.groups[
    'reason'
  ];
}

function consumed(view: View, shown: readonly Found[], confidence: number): Match {
  const limited = view.find(budget);
  const head = headOf(view.evidence);
  // Where the server is asked to bound its thinking and cannot, the server is set up wrong; else the request was.
  const server = limited.length > 0;
  return {
    cause: 'reasoning-consumes-output',
    ...(server && head !== undefined ? { node: head } : { node: undefined, atFault: 'client' as const }),
    shown,
    title: 'The answer is empty because all its tokens went into reasoning',
    why: server
      ? 'The model thinks at its longest by default, and the budget that would bound it is not configured on the server.'
      : 'The request ended at its limit of tokens before the answer began; servers return what was thought as reasoning or reasoning_content.',
    advice: [
      'Ask for more: a larger max_tokens (a thinking model wants some thousands), or less thinking: chat_template_kwargs {"enable_thinking": false}, reasoning_effort "low".',
      ...(server
        ? [
            'To bound it on the server, start vLLM with --reasoning-config; else leave thinking_token_budget out.',
          ]
        : []),
      'Read both names: message.reasoning and message.reasoning_content.',
    ],
    confidence,
    specificity: 3,
    alternatives: [{ cause: 'reasoning-parser-mismatch', confidence: 0.1 }],
  };
}

function mismatch(
  view: View,
  shown: readonly Found[],
  confidence: number,
  how: 'could not locate' | 'tags' | 'stop',
): Match {
  const first = shown[0];
  const node = headOf(view.evidence) ?? first?.node;
  const parser = first?.groups['parser']?.trim();
  return {
    cause: 'reasoning-parser-mismatch',
    node,
    shown,
    title: 'The reasoning parser does not fit the model',
    why: {
      'could not locate': `${parser ?? 'The parser'} looks for marks that the model's tokenizer does not have.`,
      tags: 'What the model thinks stands in the answer, with its marks: no parser, or another model’s, takes it out.',
      stop: 'The model ended by itself, and yet all of it was filed as reasoning: the parser waits for an end of thinking that this model does not write.',
    }[how],
    advice: [
      'Choose the parser that belongs to the model, with serve.reasoning in the recipe (auto takes it from the model’s type; none turns it off).',
      'Where thinking is not wanted: chat_template_kwargs {"enable_thinking": false}.',
    ],
    values: parser === undefined ? {} : { parser },
    confidence,
    specificity: 3,
    alternatives: [{ cause: 'reasoning-consumes-output', confidence: 0.12 }],
  };
}

/** The model has no chat template. */
export const chatTemplate = lineSignature({
  name: 'chat-template',
  cause: 'chat-template-missing',
  seenOn: 'transformers 4.44 to 5, vLLM 0.9 to 0.32, SGLang 0.4 to 0.5',
  source:
    'transformers tokenization_utils_base.py; vLLM entrypoints/chat_utils.py; SGLang managers/template_manager.py',
  whileServing: true,
  forms: [
    pattern(
      [
        'default chat template is no longer',
        'chat_template is not set',
        'does not have a chat template',
        'No chat template',
        'chat template could be found',
        'must provide a chat template',
      ],
      /default chat template is no longer\s+allowed|must provide a chat template|chat_template is not set|does not have a chat template|[Nn]o chat template (?:is |was )?(?:available|set|defined|found(?!,? (?:defaulting|using|fall)))/,
    ),
    pattern(
      ['chat template', 'chat_template'],
      /(?:Error|error|cannot|Cannot|ould not).{0,600}(?:looks like a file path, but it failed to be opened|The supplied chat template|chat_template.{0,600}No such file|find (?:a |the )?chat[_ ]template)/,
    ),
  ],
  counts: ({ message, line }) =>
    !/[Dd]efaulting to|[Ff]alling back|Using default/.test(message) &&
    !/\bINFO\b/.test(line.text.slice(0, 60)),
  at: theHead,
  title: (_found, where) => `The model on ${where} has no chat template`,
  why: 'A base model, or a folder without chat_template.jinja and without one in tokenizer_config.json, cannot take chat requests.',
  advice: () => [
    'Serve the instruct checkpoint, give --chat-template FILE in args of the engine, or ask the completions endpoint (/v1/completions).',
    'Look for it in the folder: ls chat_template.*; grep -c chat_template tokenizer_config.json. firstlight up asks a question at its end, which is then answered.',
  ],
  confidence: 0.92,
  specificity: 3,
  looks: [
    'As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template',
  ],
});
