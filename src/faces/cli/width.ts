const SGR = /\x1b\[[0-9;]*m/g;
const SEGMENTS = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const PLAIN_ASCII = /^[\x20-\x7e]*$/;

/** Columns that a text takes on a terminal: East Asian wide and emoji two, combining marks and our colours none. */
export function width(text: string): number {
  const bare = text.includes('\x1b') ? text.replace(SGR, '') : text;
  if (PLAIN_ASCII.test(bare)) return bare.length;
  let columns = 0;
  for (const { segment } of SEGMENTS.segment(bare)) columns += graphemeWidth(segment);
  return columns;
}

/** The text, at most `columns` wide; what is cut ends in `ellipsis`. Colours of ours inside are closed again. */
export function truncate(text: string, columns: number, ellipsis = '…'): string {
  if (columns <= 0) return '';
  if (width(text) <= columns) return text;
  const tail = width(ellipsis) <= columns ? ellipsis : '';
  const room = columns - width(tail);
  let out = '';
  let used = 0;
  let coloured = false;
  for (const part of text.split(/(\x1b\[[0-9;]*m)/)) {
    if (part.startsWith('\x1b')) {
      out += part;
      coloured = true;
      continue;
    }
    for (const { segment } of SEGMENTS.segment(part)) {
      const wide = graphemeWidth(segment);
      if (used + wide > room) return out + tail + (coloured ? '\x1b[0m' : '');
      out += segment;
      used += wide;
    }
  }
  return out + tail;
}

/** Exactly `columns` wide: cut, or filled with spaces on the right. */
export function fill(text: string, columns: number, ellipsis = '…'): string {
  const cut = truncate(text, columns, ellipsis);
  return cut + ' '.repeat(Math.max(0, columns - width(cut)));
}

/** At least `columns` wide: filled with spaces on the right, never cut. */
export function pad(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

/** Words into lines of at most `columns`; a word that is longer stands alone and is not broken (it may be a command). */
export function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    if (width(paragraph) <= columns) {
      lines.push(paragraph);
      continue;
    }
    let line = '';
    for (const [, gap = '', word = ''] of paragraph.matchAll(/( *)([^ ]+)/g)) {
      if (line === '') line = word;
      else if (width(line) + gap.length + width(word) <= columns) line += `${gap}${word}`;
      else {
        lines.push(line);
        line = word;
      }
    }
    lines.push(line);
  }
  return lines;
}

const COMMAND =
  /^(.*?[:;]\s+|)((?:firstlight|ssh|ssh-copy-id|ssh-keygen|rsync|scp|sudo|docker|podman|systemctl|hf|cp|mkdir|chmod)\s.*)$/s;

/** `firstlight up --replace stops it first; …` is a sentence about a command, and two side by side may part. */
const SENTENCE = /[a-z]\.$|[;,] [a-z]+ [a-z]| {3}/;

/** As `wrap`, but a command at the end of the sentence stands whole on a line of its own, to be copied. */
export function wrapAdvice(text: string, columns: number): readonly string[] {
  const parts = width(text) > columns ? COMMAND.exec(text) : null;
  const [, prose, command] = parts ?? [];
  if (prose === undefined || command === undefined || SENTENCE.test(command)) return wrap(text, columns);
  return [...(prose === '' ? [] : wrap(prose.trimEnd(), columns)), ...command.split('\n')];
}

function graphemeWidth(segment: string): number {
  const code = segment.codePointAt(0) ?? 0;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return 0;
  if (segment.includes('\ufe0f') || isWide(code)) return 2;
  return /^[\p{Mark}\p{Cf}]+$/u.test(segment) ? 0 : 1;
}

/** Unicode East Asian Width W and F, as ranges wide enough for what terminals do; emoji included. */
function isWide(code: number): boolean {
  return (
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x231a && code <= 0x231b) ||
    (code >= 0x23e9 && code <= 0x23ec) ||
    (code >= 0x2614 && code <= 0x2615) ||
    (code >= 0x2648 && code <= 0x2653) ||
    code === 0x26a1 ||
    code === 0x2705 ||
    (code >= 0x270a && code <= 0x270b) ||
    code === 0x2728 ||
    code === 0x274c ||
    code === 0x274e ||
    (code >= 0x2753 && code <= 0x2757 && code !== 0x2756) ||
    (code >= 0x2e80 && code <= 0x303e) ||
    (code >= 0x3041 && code <= 0xa4cf) ||
    (code >= 0xa960 && code <= 0xa97f) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x16fe0 && code <= 0x18aff) ||
    (code >= 0x1b000 && code <= 0x1b2ff) ||
    (code >= 0x1f004 && code <= 0x1f0cf) ||
    (code >= 0x1f18e && code <= 0x1f265) ||
    (code >= 0x1f300 && code <= 0x1f64f) ||
    (code >= 0x1f680 && code <= 0x1f6ff) ||
    (code >= 0x1f7e0 && code <= 0x1f7eb) ||
    (code >= 0x1f900 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd)
  );
}
