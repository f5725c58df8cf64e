const SHORTEST = 4;

/**
 * Literals of which a text must hold one to match the regex: the longest run of plain characters of each of its
 * alternatives. Undefined where an alternative has none that is long enough to be worth looking for.
 */
export function requiredLiterals({ source, flags }: RegExp): readonly string[] | undefined {
  if (flags.includes('i')) return undefined;
  const found: string[] = [];
  for (const alternative of alternativesOf(source)) {
    const longest = runsOf(alternative).toSorted((a, b) => b.length - a.length)[0] ?? '';
    if (longest.length < SHORTEST) return undefined;
    found.push(longest);
  }
  return found;
}

/** The source split at the bars outside of groups and classes. */
function alternativesOf(source: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < source.length; at++) {
    const letter = source[at];
    if (letter === '\\') at += 1;
    else if (letter === '[') at = endOfClass(source, at);
    else if (letter === '(') depth += 1;
    else if (letter === ')') depth -= 1;
    else if (letter === '|' && depth === 0) {
      parts.push(source.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, source.slice(from)];
}

/** Runs of plain characters that stand outside of groups: whatever is in a group may be one of several. */
function runsOf(source: string): readonly string[] {
  const runs: string[] = [];
  let run = '';
  const end = (): void => {
    runs.push(run);
    run = '';
  };
  for (let at = 0; at < source.length; at++) {
    const letter = source[at] ?? '';
    if (letter === '\\') {
      const next = source[++at] ?? '';
      if (/[A-Za-z0-9]/.test(next)) end();
      else run += next;
    } else if (letter === '[') {
      end();
      at = endOfClass(source, at);
    } else if (letter === '(') {
      end();
      at = endOfGroup(source, at);
    } else if ('?*{'.includes(letter)) {
      // What stands before it need not be there.
      run = run.slice(0, -1);
      end();
      if (letter === '{') at = source.indexOf('}', at);
    } else if ('.^$+'.includes(letter)) end();
    else run += letter;
  }
  end();
  return runs.filter((one) => /^[\x20-\x7e]*$/.test(one));
}

function endOfClass(source: string, from: number): number {
  let at = from + 1;
  while (at < source.length && source[at] !== ']') at += source[at] === '\\' ? 2 : 1;
  return at;
}

function endOfGroup(source: string, from: number): number {
  let depth = 0;
  for (let at = from; at < source.length; at++) {
    const letter = source[at];
    if (letter === '\\') at += 1;
    else if (letter === '[') at = endOfClass(source, at);
    else if (letter === '(') depth += 1;
    else if (letter === ')' && --depth === 0) return at;
  }
  return source.length;
}
