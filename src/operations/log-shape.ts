/** What a line looks like where its numbers, hex words and paths are left out of account. */
export type Shape = {
  /** Equal for lines of one shape; 0 where nothing is left of the line to compare. */
  readonly hash: number;
  /** Percent of a progress bar; undefined where the line is none. */
  readonly percent: number | undefined;
};

/** A bar as tqdm draws it, with the words that vLLM puts between: "56% Completed | 5/9", "10%|#    | 5/52". */
const BAR = /(\d{1,3})%\s*(?:Completed\s*)?\|/;
/** What lies behind this is the same or does not matter. */
const READ = 300;
const HEX_WORD = 8;

/** A bar's shape is its label; any other line's shape is the order of its plain words. */
export function shapeOf(text: string): Shape {
  const bar = text.includes('%') ? BAR.exec(text) : null;
  const end = Math.min(bar?.index ?? text.length, READ);
  let hash = bar === null ? 0x811c9dc5 : 0x2f0b4a61;
  let words = bar === null ? 0 : 1;
  for (let at = 0; at < end; ) {
    const code = text.charCodeAt(at);
    if (isWord(code)) {
      const from = at;
      let digits = isDigit(code);
      let hex = isHex(code);
      for (at += 1; at < end; at++) {
        const next = text.charCodeAt(at);
        if (!isWord(next)) break;
        digits ||= isDigit(next);
        hex &&= isHex(next);
      }
      if (digits || (hex && at - from >= HEX_WORD)) continue;
      for (let one = from; one < at; one++) hash = mixed(hash, text.charCodeAt(one));
      hash = mixed(hash, SPACE);
      words++;
    } else if (code === SLASH) at = pathEnd(text, at, end);
    else at++;
  }
  return { hash: words === 0 ? 0 : hash >>> 0 || 1, percent: bar === null ? undefined : Number(bar[1]) };
}

const SPACE = 0x20;
const SLASH = 0x2f;

function pathEnd(text: string, from: number, end: number): number {
  let at = from + 1;
  while (at < end && !BEHIND_PATH.has(text.charCodeAt(at))) at++;
  return at;
}

const BEHIND_PATH = new Set([...' \t"\'`,;:()[]<>{}|'].map((sign) => sign.charCodeAt(0)));

function isWord(code: number): boolean {
  return (
    isDigit(code) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x5f ||
    code > 0x7f
  );
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isHex(code: number): boolean {
  return isDigit(code) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66);
}

/** One step of FNV-1a, 32 bits. */
function mixed(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}
