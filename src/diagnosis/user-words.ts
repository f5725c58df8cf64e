/** How a record begins in which an engine repeats a user's or the model's words, and how its rest goes on behind them. */
type Repeats = { readonly literal: string; readonly begins: RegExp; readonly ends: RegExp };

/**
 * vLLM's --enable-log-requests and --enable-log-outputs (vllm/entrypoints/logger.py), SGLang's --log-requests
 * (sglang/srt/utils/request_logger.py). Older SGLang writes the text as it came, line ends and all; vLLM's formatter
 * gives every line of a message its own prefix.
 */
const REPEATS: readonly Repeats[] = [
  {
    literal: 'Received request ',
    begins: /\bReceived request \S{1,200}: prompt: /,
    ends: /, (?:(?:sampling_)?params(?:_list)?|prompt_token_ids|lora_request): /,
  },
  {
    literal: ' details: prompt: ',
    begins: /\bRequest \S{1,200} details: prompt: /,
    ends: /, (?:prompt_token_ids|prompt_embeds shape|lora_request): /,
  },
  {
    literal: 'Generated response ',
    begins: /\bGenerated response \S{1,200}(?: \([^)]{1,40}\))?: output: /,
    ends: /, (?:output_token_ids|finish_reason): /,
  },
  {
    literal: 'Receive: obj=',
    begins: /\bReceive: obj=/,
    ends: /, (?:input_ids|input_embeds|image_data|sampling_params|return_logprob)=/,
  },
  {
    literal: 'Finish: obj=',
    begins: /\bFinish: obj=/,
    ends: /\bmeta_info['"]?: ?\{|, sampling_params=.{0,4000}\)$/,
  },
  // A JSON record stands on one line, whatever it holds.
  { literal: '"event": "request.', begins: /^\{.{0,200}"event": "request\.\w+"/, ends: /$/ },
];

/** A line that holds none of these begins no such record. */
export const USER_LITERALS: readonly string[] = REPEATS.map(({ literal }) => literal);

/** Lines that one user's words may take; what is longer ends at the engine's next own line. */
const MOST_LINES = 4000;

/** What a line says of a user's words: `undefined` nothing, else whether the record goes on behind it, and how it ends. */
export function repeatsUser(text: string): { readonly ends: RegExp | undefined } | undefined {
  for (const { literal, begins, ends } of REPEATS) {
    if (!text.includes(literal)) continue;
    const match = begins.exec(text);
    if (match === null) continue;
    return { ends: ends.test(text.slice(match.index + match[0].length)) ? undefined : ends };
  }
  return undefined;
}

type Line = { readonly text: string };

/**
 * Index of the first line at or after `at` that is the engine's own again, where a record is open that ends by `ends`;
 * `open` where the lines end before it does. A record whose end is missing goes on as long as lines have no prefix of
 * the engine's: `isOwn` tells.
 */
export function pastUser(
  lines: readonly Line[],
  at: number,
  ends: RegExp,
  isOwn: (text: string) => boolean,
): { readonly at: number; readonly open: RegExp | undefined } {
  const textAt = (index: number): string => lines[index]?.text ?? '';
  const most = Math.min(lines.length, at + MOST_LINES);
  let next = at;
  while (next < most && repeatsUser(textAt(next)) === undefined) {
    if (ends.test(textAt(next))) return { at: next + 1, open: undefined };
    next++;
  }
  for (let index = at; index < next; index++) if (isOwn(textAt(index))) return { at: index, open: undefined };
  return { at: next, open: next === lines.length ? ends : undefined };
}

/** The engine's own lines: without the records that repeat what a user wrote, wherever they go on. */
export function withoutUsers<Item extends Line>(
  lines: readonly Item[],
  isOwn: (text: string) => boolean,
): readonly Item[] {
  const own: Item[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const repeats = line === undefined ? undefined : repeatsUser(line.text);
    if (line !== undefined && repeats === undefined) own.push(line);
    if (repeats?.ends !== undefined) at = pastUser(lines, at + 1, repeats.ends, isOwn).at - 1;
  }
  return own;
}
