export type Part = { readonly text: string; readonly option: boolean };

/** Above this a narrow screen has no line for it. */
const LONGEST = 30;

/**
 * A text in parts, of which those that are options of a command are to stay in one piece: a browser may end a line at
 * each of their dashes. Joined they are the text, so that what is copied is what was shown.
 */
export function optionParts(text: string): readonly Part[] {
  const parts: Part[] = [];
  for (const piece of text.split(/(\S+)/)) {
    if (piece === '') continue;
    const option = /^\W?--?[A-Za-z]/.test(piece) && piece.length <= LONGEST;
    const last = parts.at(-1);
    if (!option && last?.option === false) parts[parts.length - 1] = { text: last.text + piece, option };
    else parts.push({ text: piece, option });
  }
  return parts;
}
