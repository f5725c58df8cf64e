/** The candidate nearest to what was written, if it is near enough to be a slip; never the word itself. */
export function suggest(written: string, candidates: readonly string[]): string | undefined {
  const word = written.toLowerCase();
  // One slip in three letters, two in longer words, three in long ones.
  const limit = word.length <= 3 ? 1 : word.length <= 8 ? 2 : 3;
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    if (candidate === written) continue;
    const distance = editDistance(word, candidate.toLowerCase());
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other. */
export function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = cell(above, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1);
      let least = Math.min(cell(above, column) + 1, cell(current, column - 1) + 1, replaced);
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (row > 1 && column > 1 && swapped) least = Math.min(least, cell(before, column - 2) + 1);
      current.push(least);
    }
    before = above;
    above = current;
  }
  return cell(above, to.length);
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
