import { always, lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** JSON that lost its quotes on the way: `{method:mtp,num_speculative_tokens:2}`, or a piece of it. */
const BARE_JSON =
  /\{\s*\\?["']?\s*[A-Za-z_][\w.-]{0,400}\s*:(?!\/\/)|^[A-Za-z_][\w.-]{0,400}:[^\s/]{0,400}[,}\]]|[^\s"']{1,400}:\S{1,300}\}$/;

/** Whether these words are what a shell left of a JSON value: keys without quotes, or braces taken apart. */
export function isBareJson(words: string): boolean {
  const text = words.trim().replace(/^['"]|['"]$/g, '');
  if (/\{\s*"/.test(text) && /"\s*:/.test(text)) return false;
  return (
    BARE_JSON.test(text) ||
    text.split(/\s+/).some((word) => /^\{?[A-Za-z_]\w*:[^/]*[,}]?$/.test(word) || /^[^{]*\}$/.test(word))
  );
}

/** ssh hands its words to a shell, which takes quotes off a second time; JSON arguments arrive without them. */
export const reparsedArguments = lineSignature({
  name: 'reparsed-arguments',
  cause: 'remote-shell-reparsed-arguments',
  seenOn: 'OpenSSH 8 to 10, bash 5, vLLM 0.8 to 0.32, Python 3.10 to 3.13',
  source:
    'ssh(1): the command is given to the login shell; vLLM engine/arg_utils.py parse_type; json.decoder',
  forms: [
    pattern(
      [
        'cannot be converted to',
        'invalid loads value',
        'invalid JSON',
        'Invalid JSON',
        'not valid JSON',
        'not a valid JSON',
      ],
      /argument (?<flag>[^\s:]{1,400}(?:[/,] ?[^\s:]{1,400})*): (?:Value (?<value>.+?) cannot be converted to|invalid .{1,60}? value: (?<other>.+?)$)|(?:[Ii]nvalid|not (?:a )?valid) JSON.{0,600}?(?<json>\{.{0,600})/,
    ),
    pattern(
      ['JSON', 'json', 'unexpected extra argument'],
      /(?:[Ee]rror|[Ii]nvalid|[Ff]ail|[Cc]annot|[Cc]ould not|[Ee]xpect).{0,600}?(?<json>\{\\?\s*[A-Za-z_][\w-]{0,400}\s*:(?!\/\/).{0,600})|unexpected extra arguments? \((?<words>[^)]{1,400})\)/,
    ),
    pattern(
      ['config {', 'config={', 'overrides {', 'overrides={', 'args {', 'kwargs {', 'kwargs={', 'args={'],
      /--[\w-]{1,400}(?:config|overrides|args|kwargs)[= ](?<json>\{[A-Za-z_]\w{0,80}:.{0,600})/,
    ),
    pattern(
      [
        'looking for beginning of',
        'parse error: Invalid',
        'json_invalid',
        "Expecting ',' delimiter",
        'JSON decode error',
      ],
      /invalid character '.' looking for beginning of (?:object key string|value)|parse error: Invalid (?:literal|numeric literal)|json_invalid|JSON decode error|JSONDecodeError: Expecting ',' delimiter/,
    ),
    pattern(
      'Expecting property name enclosed in double quotes',
      /JSONDecodeError: Expecting property name enclosed in double quotes/,
    ),
    pattern('error: unrecognized arguments: ', /error: unrecognized arguments: (?<words>.+)$/),
    pattern(
      [
        'syntax error near unexpected token',
        'unexpected EOF while looking for matching',
        'Unterminated quoted string',
        'no matches found: ',
      ],
      /^(?:\S{0,300}(?:bash|sh|zsh|dash): )?(?:-c: )?(?:line \d+: |eval: |\d+: )*(?:syntax error near unexpected token `(?<token>.+?)'|unexpected EOF while looking for matching|Syntax error: Unterminated quoted string)|^zsh:\d*: ?no matches found: (?<glob>\{.{0,600})/i,
    ),
    pattern(
      'command not found',
      /^(?:\S{0,300}(?:bash|sh|zsh): )(?:-c: )?(?:line \d+: )?(?<word>\{?["']?\w{1,80}["']?:\S{0,300}|[\w-]{1,400}:[^/]\S{0,300}): command not found/,
    ),
  ],
  counts: ({ groups, message }) => {
    const { value, other, json, words } = groups;
    const text = value ?? other ?? json ?? words;
    if (text !== undefined) return isBareJson(text) && !/^\w+:\/\//.test(text);
    return !/\\r|\.sh: /.test(message);
  },
  at: always('launcher'),
  title: ({ groups }) =>
    `A shell on the way took the quotes off an argument${groups['flag'] ? ` of ${groups['flag'].split(/[/,]/)[0]}` : ''}`,
  why: 'ssh joins its words and gives them to a shell on the other side, which parses them once more: JSON in quotes arrives without them.',
  advice: () => [
    'Quote once more for the far side (printf %q, or shlex.quote in Python), or put the value into a file there; firstlight passes every word unchanged: give it under args of the recipe.',
    "See what arrives: ssh HOST printf '%s\\n' THE WORDS",
  ],
  confidence: ({ groups, message }) =>
    (groups['value'] ?? groups['other'] ?? groups['words'] ?? groups['json'])
      ? 0.9
      : /property name/.test(message)
        ? 0.66
        : 0.62,
  specificity: 3,
  looks: [
    'vllm serve: error: argument --speculative-config: Value {method:mtp} cannot be converted to <function loads at 0x7f00>.',
  ],
});
