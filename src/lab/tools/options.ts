export type Options = {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly rest: readonly string[];
  /** First option that is not known, as it was typed. */
  readonly unknown: string | undefined;
};

/**
 * Reads options as docker and systemctl do: `--name value`, `--name=value`, `-n value`, `-nvalue`, and flags that
 * take nothing. `known` maps each spelling to its key; a key in `flags` takes no value. With `stopAtRest`
 * everything from the first plain word on is left alone.
 */
export function readOptions(
  argv: readonly string[],
  known: Readonly<Record<string, string>>,
  flags: ReadonlySet<string>,
  stopAtRest = false,
): Options {
  const values = new Map<string, string[]>();
  const rest: string[] = [];
  let unknown: string | undefined;
  const add = (key: string, value: string): void => {
    values.set(key, [...(values.get(key) ?? []), value]);
  };
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    if (word === '--') {
      rest.push(...argv.slice(at + 1));
      break;
    }
    if (!word.startsWith('-') || word === '-') {
      if (stopAtRest) {
        rest.push(...argv.slice(at));
        break;
      }
      rest.push(word);
      continue;
    }
    const equals = word.indexOf('=');
    const long = word.startsWith('--');
    const name = long && equals > 0 ? word.slice(0, equals) : word;
    const key = known[name];
    if (key !== undefined) {
      if (long && equals > 0) add(key, word.slice(equals + 1));
      else if (flags.has(key)) add(key, 'true');
      else {
        at += 1;
        add(key, argv[at] ?? '');
      }
      continue;
    }
    const short = known[word.slice(0, 2)];
    if (long || short === undefined) {
      unknown ??= word;
      continue;
    }
    if (!flags.has(short)) {
      add(short, word.slice(2).replace(/^=/, ''));
      continue;
    }
    for (const [index, letter] of [...word.slice(1)].entries()) {
      const one = known[`-${letter}`];
      if (one === undefined) unknown ??= `-${letter}`;
      else if (flags.has(one)) add(one, 'true');
      else {
        const glued = word.slice(index + 2);
        if (glued === '') at += 1;
        add(one, glued === '' ? (argv[at] ?? '') : glued);
        break;
      }
    }
  }
  return { values, rest, unknown };
}

export function last(options: Options, key: string): string | undefined {
  return options.values.get(key)?.at(-1);
}

export function all(options: Options, key: string): readonly string[] {
  return options.values.get(key) ?? [];
}

export function given(options: Options, key: string): boolean {
  const value = last(options, key);
  return value !== undefined && value !== 'false';
}
