import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { UserError, type UserErrorCode } from '../domain/user-error.ts';

/** What is wrong at one place. `line` and `column` count from 1. */
export type Problem = { readonly line: number; readonly column: number; readonly text: string };

export type Path = readonly PropertyKey[];

/** A parsed YAML file that still knows where everything stands. */
export type YamlFile = {
  /** As the user named it. */
  readonly file: string;
  readonly value: unknown;
  /** A problem at a value, or at its key; at the nearest parent where that path does not exist. */
  problem(path: Path, text: string, at?: 'key' | 'value'): Problem;
};

const SHOWN = 10;
const ALIASES = 32;

/** A UserError that lists problems in the file's order, ten at most. */
export function refusal(
  code: UserErrorCode,
  file: string,
  problems: readonly Problem[],
  hint: string,
): UserError {
  const sorted = [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
  const lines = sorted.slice(0, SHOWN).map(({ line, column, text }) => `${file}:${line}:${column}: ${text}`);
  if (sorted.length > SHOWN)
    lines.push(sorted.length < 50 ? `and ${sorted.length - SHOWN} more` : 'and many more');
  return new UserError(code, lines.join('\n'), hint);
}

/**
 * One YAML document as plain data. Throws a UserError with the code for syntax errors, repeated keys, several
 * documents, unknown tags, too many aliases, nesting without end, and a file without content.
 */
export function parseYaml(text: string, file: string, code: UserErrorCode): YamlFile {
  try {
    return parse(text, file, code);
  } catch (error) {
    // Brackets nested by the thousand exhaust the parser's stack; so it is the file that is wrong.
    if (error instanceof RangeError)
      throw new UserError(
        code,
        `${file} is nested too deeply`,
        'Look whether that is the right file.',
        error,
      );
    throw error;
  }
}

function parse(text: string, file: string, code: UserErrorCode): YamlFile {
  const counter = new LineCounter();
  // The library's own look for repeated keys takes quadratic time; ours is below.
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, uniqueKeys: false });
  const place = (offset: number, words: string): Problem => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1), text: words };
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.some((fault) => fault.code === 'RESOURCE_EXHAUSTION')) throw tooDeep(file, code);
  if (faults.length > 0) {
    const problems = faults.slice(0, 100).map((fault) => place(fault.pos[0], sayFault(fault)));
    throw refusal(code, file, problems, 'Mend the YAML at these lines.');
  }
  refuseAliases(document, place, file, code);
  const repeated = repeatedKeys(document, place);
  if (repeated.length > 0) throw refusal(code, file, repeated, 'Keep one of them.');
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null))
    throw new UserError(code, `${file} is empty`, 'See docs/files.md for an example.');

  return {
    file,
    value: plain(() => document.toJS({ maxAliasCount: ALIASES * 2 }), file, code),
    problem(path, words, at = 'value') {
      let node: unknown = document.contents;
      let offset = start(node) ?? 0;
      for (const [depth, segment] of path.entries()) {
        if (isAlias(node)) node = node.resolve(document);
        if (isSeq(node)) {
          node = node.items[Number(segment)];
          offset = start(node) ?? offset;
        } else if (isMap(node)) {
          const pair = node.items.find(({ key }) => keyName(key) === String(segment));
          if (pair === undefined) break;
          const byKey = (at === 'key' && depth === path.length - 1) || isEmpty(pair.value);
          offset = (byKey ? start(pair.key) : start(pair.value)) ?? offset;
          node = pair.value;
        } else break;
      }
      return place(offset, words);
    },
  };
}

type Place = (offset: number, words: string) => Problem;

function refuseAliases(document: Document, place: Place, file: string, code: UserErrorCode): void {
  let count = 0;
  visit(document, {
    Alias(_, alias) {
      count += 1;
      if (count <= ALIASES) return;
      const problem = place(start(alias) ?? 0, `more than ${ALIASES} aliases (*name)`);
      throw refusal(code, file, [problem], 'Write the values out.');
    },
  });
}

function repeatedKeys(document: Document, place: Place): readonly Problem[] {
  const problems: Problem[] = [];
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const name = keyName(key);
        if (seen.has(name)) problems.push(place(start(key) ?? 0, `the key "${name}" stands twice`));
        seen.add(name);
      }
    },
  });
  return problems;
}

function keyName(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

function tooDeep(file: string, code: UserErrorCode, cause?: unknown): UserError {
  return new UserError(code, `${file} is nested too deeply`, 'Look whether that is the right file.', cause);
}

function plain(read: () => unknown, file: string, code: UserErrorCode): unknown {
  try {
    return read();
  } catch (error) {
    // The library refuses aliases that unfold too often, and aliases of themselves.
    if (error instanceof ReferenceError)
      throw new UserError(
        code,
        `${file} has aliases that unfold without end`,
        'Write the values out.',
        error,
      );
    throw error;
  }
}

function start(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null || !('range' in node) || !Array.isArray(node.range))
    return undefined;
  const [offset]: unknown[] = node.range;
  return typeof offset === 'number' ? offset : undefined;
}

function isEmpty(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

function sayFault(fault: { readonly code: string; readonly message: string }): string {
  switch (fault.code) {
    case 'TAB_AS_INDENT':
      return 'a tab indents this line; YAML wants spaces';
    case 'MULTIPLE_DOCS':
      return 'a second document begins here; one file holds one';
    default:
      return `not valid YAML: ${fault.message.split('\n')[0] ?? fault.code}`;
  }
}
