/** What a key shows in place of the rest; only one is open at a time. */
export type Panel = 'log' | 'memory' | 'plan' | 'keys';

/** What one key press asks for; undefined for a key that means nothing here. */
export type KeyPress =
  | { readonly kind: 'panel'; readonly panel: Panel }
  | { readonly kind: 'close' }
  | { readonly kind: 'move'; readonly rows: number }
  | { readonly kind: 'redraw' }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'quit' };

const PANELS: Readonly<Record<string, Panel>> = { l: 'log', m: 'memory', p: 'plan', '?': 'keys' };
const PAGE_ROWS = 10;

const PRESSES: Readonly<Record<string, KeyPress>> = {
  '\x03': { kind: 'interrupt' },
  '\x1a': { kind: 'suspend' },
  '\x1c': { kind: 'quit' },
  '\x0c': { kind: 'redraw' },
  '\x1b': { kind: 'close' },
  '\x1b[A': { kind: 'move', rows: -1 },
  '\x1bOA': { kind: 'move', rows: -1 },
  '\x1b[B': { kind: 'move', rows: 1 },
  '\x1bOB': { kind: 'move', rows: 1 },
  '\x1b[5~': { kind: 'move', rows: -PAGE_ROWS },
  '\x1b[6~': { kind: 'move', rows: PAGE_ROWS },
};

/** A key of a terminal in raw mode: one character, or what an arrow or a function key sends. */
const KEY = /\x1b\[200~[\s\S]*?(?:\x1b\[201~|$)|\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\x1b[O])?|[\s\S]/gu;

/** The presses in what was read at once. Pasted text means nothing; no key changes anything on a host. */
export function pressesIn(text: string): readonly KeyPress[] {
  return [...text.matchAll(KEY)].flatMap(([key]) => {
    const panel = PANELS[key];
    const press: KeyPress | undefined = panel === undefined ? PRESSES[key] : { kind: 'panel', panel };
    return press === undefined ? [] : [press];
  });
}

const WORDS: readonly (readonly [string, string, Panel])[] = [
  ['l', 'log', 'log'],
  ['m', 'memory', 'memory'],
  ['p', 'plan', 'plan'],
  ['?', 'keys', 'keys'],
];

/** "l log   m memory   p plan   ? keys" in at most so many columns; the open one says how to go back. */
export function keysLine(open: Panel | undefined, columns: number): string {
  const words = WORDS.map(([key, word, panel]) =>
    panel === open ? `${key} ${'back'.padEnd(word.length)}` : `${key} ${word}`,
  );
  const fitting = [
    words.join('   '),
    words.join('  '),
    open === undefined ? '? keys' : `${keyOf(open)} back`,
  ];
  return fitting.find((line) => line.length <= columns) ?? '';
}

function keyOf(panel: Panel): string {
  return WORDS.find(([, , one]) => one === panel)?.[0] ?? '?';
}

/** What every key does, as rows; glyphs and what they say stand below them. */
export const KEY_HELP: readonly (readonly [string, string])[] = [
  ['l', 'more of the log'],
  ['m', 'who holds the memory of each node'],
  ['p', 'the plan: its steps, and what it needs of memory'],
  ['?', 'these keys'],
  ['Esc', 'back, as the same key again'],
  ['up, down', 'move in what does not fit; page up and page down by ten rows'],
  ['Ctrl-L', 'draw anew'],
  ['Ctrl-Z', 'to the shell; fg comes back, and until then nobody follows the ranks'],
  ['Ctrl-C', 'what the last row says'],
];
