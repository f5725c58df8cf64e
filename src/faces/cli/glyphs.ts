/** Everything that is drawn and is no letter. Each has the same meaning in both sets. */
export type Glyphs = {
  readonly done: string;
  readonly working: string;
  readonly ahead: string;
  readonly waits: string;
  readonly slow: string;
  readonly failed: string;
  readonly unknown: string;
  /** Nothing yet in a cell of the grid. */
  readonly none: string;
  /** Ended because its peer did. */
  readonly peer: string;
  readonly barFull: string;
  readonly barRest: string;
  readonly gutter: string;
  readonly system: string;
  readonly unaccounted: string;
  readonly others: string;
  readonly ours: string;
  readonly cache: string;
  readonly free: string;
  readonly reserve: string;
  readonly planned: string;
  readonly stays: string;
  readonly whisker: string;
  readonly ellipsis: string;
  readonly dot: string;
  readonly unicode: boolean;
};

const UNICODE: Glyphs = {
  done: '✓',
  working: '◔',
  ahead: '○',
  waits: '◐',
  slow: '!',
  failed: '✕',
  unknown: '?',
  none: '·',
  peer: '–',
  barFull: '━',
  barRest: '─',
  gutter: '▏',
  system: '▒',
  unaccounted: '?',
  others: '▓',
  ours: '█',
  cache: '░',
  free: '·',
  reserve: '│',
  planned: '━',
  stays: '─',
  whisker: '╍',
  ellipsis: '…',
  dot: '·',
  unicode: true,
};

const ASCII: Glyphs = {
  done: 'ok',
  working: '..',
  ahead: '-',
  waits: 'ask',
  slow: '!',
  failed: 'x',
  unknown: '?',
  none: '.',
  peer: '-',
  barFull: '=',
  barRest: '-',
  gutter: '|',
  system: '=',
  unaccounted: '?',
  others: '%',
  ours: '#',
  cache: ':',
  free: '.',
  reserve: '|',
  planned: '=',
  stays: '-',
  whisker: '~',
  ellipsis: '...',
  dot: '-',
  unicode: false,
};

/** The set for a terminal that can, or cannot, show Unicode. */
export function glyphs(unicode: boolean): Glyphs {
  return unicode ? UNICODE : ASCII;
}

const WIDE_LOCALE = /^(zh|ja|ko)(?![a-z])/i;

/**
 * Whether to draw in Unicode: not with FIRSTLIGHT_ASCII=1, not in a locale that is not UTF-8, and not in an East
 * Asian one, where terminals may draw the box characters two columns wide.
 */
export function drawsUnicode(env: Readonly<Record<string, string | undefined>>): boolean {
  if (env['FIRSTLIGHT_ASCII'] && env['FIRSTLIGHT_ASCII'] !== '0') return false;
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'];
  if (env['TERM'] === 'linux') return false;
  if (!locale) return true;
  if (WIDE_LOCALE.test(locale)) return false;
  return /utf-?8/i.test(locale);
}

/** Text of ours for a terminal without Unicode: arrows, dots, quotes and dashes become ASCII. */
export function plainAscii(text: string): string {
  return text.replace(/[^\x00-\x7f]/g, (character) => AS_ASCII[character] ?? character);
}

const AS_ASCII: Readonly<Record<string, string>> = {
  '→': '->',
  '·': '-',
  '±': '+-',
  '…': '...',
  '–': '-',
  '—': '-',
  '✓': 'ok',
  '✕': 'x',
  '◐': 'ask',
  '◔': '..',
  '○': '-',
  '≥': '>=',
  '≤': '<=',
  '×': 'x',
  '°': ' ',
  '“': '"',
  '”': '"',
  '’': "'",
};
