/** Finds which of many literals a text holds, in one pass over the text whatever their number. */
export type LiteralSet = {
  /** Indexes of the literals that occur in the text, each once, in no order. */
  in(text: string): readonly number[];
  /** Whether any literal occurs. */
  any(text: string): boolean;
};

const NONE: readonly number[] = [];
const ALPHABET = 128;

/**
 * Builds the automaton of Aho and Corasick (Communications of the ACM 18, 1975) over ASCII; other characters match
 * nothing. Throws a plain Error for a literal that is empty or not ASCII.
 */
export function literalSet(literals: readonly string[]): LiteralSet {
  const { next, ends } = automaton(literals);
  return {
    in(text) {
      let found: Set<number> | undefined;
      let state = 0;
      for (let at = 0; at < text.length; at++) {
        state = step(next, state, text.charCodeAt(at));
        const here = ends[state];
        if (here === undefined || here.length === 0) continue;
        found ??= new Set();
        for (const index of here) found.add(index);
      }
      return found === undefined ? NONE : [...found];
    },
    any(text) {
      let state = 0;
      for (let at = 0; at < text.length; at++) {
        state = step(next, state, text.charCodeAt(at));
        if ((ends[state]?.length ?? 0) > 0) return true;
      }
      return false;
    },
  };
}

function step(next: Int32Array, state: number, code: number): number {
  return code < ALPHABET ? (next[state * ALPHABET + code] ?? 0) : 0;
}

function automaton(literals: readonly string[]): { next: Int32Array; ends: number[][] } {
  const size = literals.reduce((sum, literal) => sum + literal.length, 1);
  const next = new Int32Array(size * ALPHABET).fill(-1);
  const ends: number[][] = [[]];
  literals.forEach((literal, index) => {
    if (literal === '' || !/^[\x20-\x7e]+$/.test(literal)) throw new Error(`no such literal: "${literal}"`);
    let state = 0;
    for (const letter of literal) {
      const cell = state * ALPHABET + letter.charCodeAt(0);
      if (next[cell] === -1) {
        next[cell] = ends.length;
        ends.push([]);
      }
      state = next[cell] ?? 0;
    }
    ends[state]?.push(index);
  });
  link(next, ends);
  return { next, ends };
}

/** Fills the gaps of the trie: where a state knows no letter, what its longest proper suffix would do. */
function link(next: Int32Array, ends: number[][]): void {
  const suffix = new Int32Array(ends.length);
  const queue: number[] = [];
  for (let letter = 0; letter < ALPHABET; letter++) {
    const child = next[letter] ?? -1;
    if (child === -1) next[letter] = 0;
    else queue.push(child);
  }
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] ?? 0;
    const fallback = suffix[state] ?? 0;
    ends[state]?.push(...(ends[fallback] ?? []));
    for (let letter = 0; letter < ALPHABET; letter++) {
      const cell = state * ALPHABET + letter;
      const through = next[fallback * ALPHABET + letter] ?? 0;
      const child = next[cell] ?? -1;
      if (child === -1) next[cell] = through;
      else {
        suffix[child] = through;
        queue.push(child);
      }
    }
  }
}
