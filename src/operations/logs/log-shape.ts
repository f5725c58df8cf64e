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
    let kinds = kindOf(code);
    if (kinds === 0) {
      at = code === SLASH ? pathEnd(text, at, end) : at + 1;
      continue;
    }
    const from = at;
    let word = hash;
    for (let one = code, kind = kinds; kind !== 0; kind = kindOf(one)) {
      kinds |= kind;
      word = Math.imul(word ^ one, FNV);
      at += 1;
      if (at === end) break;
      one = text.charCodeAt(at);
    }
    if ((kinds & DIGIT) !== 0 || (kinds === HEX && at - from >= HEX_WORD)) continue;
    hash = Math.imul(word ^ SPACE, FNV);
    words++;
  }
  return { hash: words === 0 ? 0 : hash >>> 0 || 1, percent: bar === null ? undefined : Number(bar[1]) };
}

const SPACE = 0x20;
const SLASH = 0x2f;
/** Prime of the hash FNV-1a, 32 bits. */
const FNV = 0x01000193;

/** What a character may be part of: a word, a hex word, a number; of none where it parts words. */
const LETTER = 1;
const HEX = 2;
const DIGIT = 4;
const KINDS = Uint8Array.from({ length: 0x80 }, (_, code) => {
  const sign = String.fromCharCode(code);
  if (/[0-9]/.test(sign)) return DIGIT;
  if (/[a-fA-F]/.test(sign)) return HEX;
  return /\w/.test(sign) ? LETTER : 0;
});

function kindOf(code: number): number {
  return code < 0x80 ? (KINDS[code] ?? 0) : LETTER;
}

const BEHIND_PATH = /[ \t"'`,;:()[\]<>{}|]/g;

function pathEnd(text: string, from: number, end: number): number {
  BEHIND_PATH.lastIndex = from + 1;
  return Math.min(end, BEHIND_PATH.exec(text)?.index ?? end);
}
