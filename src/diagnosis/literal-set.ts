/** Finds which of many literals a text holds, in one pass over the text whatever their number. */
export type LiteralSet = {
  /** Indexes of the literals that occur in the text, each once, in no order. */
  in(text: string): readonly number[];
  /** Whether any literal occurs. */
  any(text: string): boolean;
};

const NONE: readonly number[] = [];
const ASCII = 128;

/** Rows of `width` next states, one row a state; `ends` has the literals that end in a state. */
type Automaton = {
  readonly next: Uint32Array;
  readonly width: number;
  /** Column of a character; 0 for those that no literal holds. */
  readonly column: Uint8Array;
  readonly ends: readonly (readonly number[])[];
  /** 1 where `ends` has some: read before `ends` is. */
  readonly ending: Uint8Array;
};

/**
 * Builds the automaton of Aho and Corasick (Communications of the ACM 18, 1975) over ASCII; other characters match
 * nothing. Throws a plain Error for a literal that is empty or not ASCII.
 */
export function literalSet(literals: readonly string[]): LiteralSet {
  const { next, width, column, ends, ending } = automaton(literals);
  return {
    in(text) {
      let found: number[] | undefined;
      let state = 0;
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at);
        state = code < ASCII ? (next[state * width + (column[code] ?? 0)] ?? 0) : 0;
        if (ending[state] !== 1) continue;
        found ??= [];
        for (const index of ends[state] ?? NONE) if (!found.includes(index)) found.push(index);
      }
      return found ?? NONE;
    },
    any(text) {
      let state = 0;
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at);
        state = code < ASCII ? (next[state * width + (column[code] ?? 0)] ?? 0) : 0;
        if (ending[state] === 1) return true;
      }
      return false;
    },
  };
}

function automaton(literals: readonly string[]): Automaton {
  const column = new Uint8Array(ASCII);
  let width = 1;
  for (const literal of literals) {
    if (literal === '' || !/^[\x20-\x7e]+$/.test(literal)) throw new Error(`no such literal: "${literal}"`);
    for (let at = 0; at < literal.length; at++) {
      const code = literal.charCodeAt(at);
      if (column[code] === 0) column[code] = width++;
    }
  }
  const size = literals.reduce((sum, literal) => sum + literal.length, 1);
  const next = new Uint32Array(size * width);
  const ends: number[][] = [[]];
  literals.forEach((literal, index) => {
    let state = 0;
    for (let at = 0; at < literal.length; at++) {
      const cell = state * width + (column[literal.charCodeAt(at)] ?? 0);
      if (next[cell] === 0) {
        next[cell] = ends.length;
        ends.push([]);
      }
      state = next[cell] ?? 0;
    }
    ends[state]?.push(index);
  });
  link(next, width, ends);
  return { next, width, column, ends, ending: Uint8Array.from(ends, (here) => (here.length > 0 ? 1 : 0)) };
}

/** Fills the gaps of the trie: where a state knows no letter, what its longest proper suffix would do. */
function link(next: Uint32Array, width: number, ends: number[][]): void {
  const suffix = new Uint32Array(ends.length);
  const queue: number[] = [];
  for (let letter = 1; letter < width; letter++) {
    const child = next[letter] ?? 0;
    if (child !== 0) queue.push(child);
  }
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] ?? 0;
    const fallback = suffix[state] ?? 0;
    ends[state]?.push(...(ends[fallback] ?? []));
    for (let letter = 1; letter < width; letter++) {
      const cell = state * width + letter;
      const through = next[fallback * width + letter] ?? 0;
      const child = next[cell] ?? 0;
      // No child of a state is the root, so 0 is "none" in the trie.
      if (child === 0) next[cell] = through;
      else {
        suffix[child] = through;
        queue.push(child);
      }
    }
  }
}
