/** One option of an engine. The first name, less its dashes, is the key its value is found under. */
export type Flag = {
  readonly names: readonly string[];
  readonly takes: 'nothing' | 'one' | 'many' | 'maybe';
  readonly type: 'text' | 'int' | 'float';
};

export type Parsed =
  | {
      readonly ok: true;
      readonly values: ReadonlyMap<string, readonly string[]>;
      readonly positionals: readonly string[];
    }
  /** `unknown` holds what argparse reports as unrecognized, from the top parser; else `message` is the sub-parser's. */
  | { readonly ok: false; readonly unknown: boolean; readonly message: string };

/**
 * `tp-size tensor-parallel-size:int` one a line → flags. No colon: a switch; `+` after the type: one or more
 * values; `?`: none or one. A name that begins with a dash is taken as written, every other gets `--`.
 */
export function parseFlagTable(table: string): readonly Flag[] {
  return table
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [names = '', type] = line.split(':');
      const kind = type?.replace(/[+?]$/, '');
      return {
        names: names.split(/\s+/).map((name) => (name.startsWith('-') ? name : `--${name}`)),
        takes:
          type === undefined ? 'nothing' : type.endsWith('+') ? 'many' : type.endsWith('?') ? 'maybe' : 'one',
        type: kind === 'int' || kind === 'float' ? kind : 'text',
      };
    });
}

/** Parses as Python's argparse does: long names by unique prefix, `--a=b`, negative numbers as values. Pure. */
export function parseArguments(
  flags: readonly Flag[],
  argv: readonly string[],
  { positionals: allowed }: { readonly positionals: number },
): Parsed {
  const values = new Map<string, readonly string[]>();
  const positionals: string[] = [];
  const unknown: string[] = [];
  const bad = (message: string): Parsed => ({ ok: false, unknown: false, message });
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (!looksLikeOption(word)) {
      if (positionals.length < allowed) positionals.push(word);
      else unknown.push(word);
      continue;
    }
    const equals = word.indexOf('=');
    const name = equals === -1 ? word : word.slice(0, equals);
    const found = find(flags, name);
    if (found.length > 1) {
      const names = found.map(({ name: candidate }) => candidate).join(', ');
      return bad(`ambiguous option: ${word} could match ${names}`);
    }
    const flag = found[0]?.flag;
    if (flag === undefined) {
      unknown.push(word);
      continue;
    }
    const label = `argument ${flag.names.join('/')}`;
    const taken: string[] = [];
    if (equals !== -1) {
      if (flag.takes === 'nothing')
        return bad(`${label}: ignored explicit argument '${word.slice(equals + 1)}'`);
      taken.push(word.slice(equals + 1));
    } else if (flag.takes !== 'nothing') {
      const most = flag.takes === 'many' ? Number.POSITIVE_INFINITY : 1;
      while (taken.length < most && index + 1 < argv.length && !looksLikeOption(argv[index + 1] ?? '')) {
        index += 1;
        taken.push(argv[index] ?? '');
      }
      if (taken.length === 0 && flag.takes === 'one') return bad(`${label}: expected one argument`);
      if (taken.length === 0 && flag.takes === 'many') return bad(`${label}: expected at least one argument`);
    }
    const wrong = taken.find((value) => !fits(flag, value));
    if (wrong !== undefined) return bad(`${label}: invalid ${flag.type} value: '${wrong}'`);
    values.set((flag.names[0] ?? '').replace(/^-+/, ''), taken);
  }
  if (unknown.length > 0)
    return { ok: false, unknown: true, message: `unrecognized arguments: ${unknown.join(' ')}` };
  return { ok: true, values, positionals };
}

function looksLikeOption(word: string): boolean {
  const name = word.split('=', 1)[0] ?? '';
  return word.length > 1 && word.startsWith('-') && !/^-\d+$|^-\d*\.\d+$/.test(word) && !name.includes(' ');
}

function find(
  flags: readonly Flag[],
  name: string,
): readonly { readonly flag: Flag; readonly name: string }[] {
  const exact = flags.find((flag) => flag.names.includes(name));
  if (exact !== undefined) return [{ flag: exact, name }];
  if (!name.startsWith('--')) return [];
  return flags.flatMap((flag) =>
    flag.names
      .filter((candidate) => candidate.startsWith(name))
      .map((candidate) => ({ flag, name: candidate })),
  );
}

function fits(flag: Flag, value: string): boolean {
  if (flag.type === 'int') return /^\s*[+-]?\d[\d_]*\s*$/.test(value);
  if (flag.type === 'float') return value.trim() !== '' && !Number.isNaN(Number(value));
  return true;
}
