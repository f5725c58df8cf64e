import type { z } from 'zod';
import { type FileKind, get, keysAt, placesOf } from './schema.ts';
import { suggest } from './suggest.ts';
import type { Path, Problem, YamlFile } from './yaml-file.ts';

type Issue = z.core.$ZodIssue;

/** What zod found, as problems with places and in plain words: what must stand there, what stands there, what was likely meant. */
export function explain(kind: FileKind, yaml: YamlFile, issues: readonly Issue[]): readonly Problem[] {
  const problems: Problem[] = [];
  for (const issue of issues) {
    problems.push(...explainOne(kind, yaml, issue));
    if (problems.length > ENOUGH) break;
  }
  return problems;
}

/** Above what a refusal shows; a file with more wrong is some other file. */
const ENOUGH = 50;

function explainOne(kind: FileKind, yaml: YamlFile, issue: Issue): readonly Problem[] {
  const value = at(yaml.value, issue.path);
  const name = pathName(issue.path);
  if (issue.code === 'unrecognized_keys')
    return issue.keys
      .slice(0, ENOUGH)
      .map((key) => yaml.problem([...issue.path, key], sayUnknownKey(kind, yaml, issue.path, key), 'key'));
  if (issue.code === 'invalid_key') {
    const key = String(issue.path.at(-1));
    return [yaml.problem(issue.path, `"${key}" ${ownWords(issue.issues[0]) ?? 'is not a key'}`, 'key')];
  }
  if (value === undefined && !present(yaml.value, issue.path))
    return [yaml.problem(issue.path, `${name} is missing${mustBe(issue, '; it must be ')}`)];
  if (value === null)
    return [yaml.problem(issue.path, `${name} is empty; give it a value or leave the key out`)];
  if (issue.code === 'invalid_union' && ownWords(issue) === undefined) {
    // The variant that fits by its own type says best what is wrong inside.
    const inner = issue.errors.find((errors) => errors[0] !== undefined && errors[0].path.length > 0);
    if (inner !== undefined)
      return inner.flatMap((deeper) =>
        explainOne(kind, yaml, { ...deeper, path: [...issue.path, ...deeper.path] }),
      );
  }
  return [yaml.problem(issue.path, sayValue(issue, name, value))];
}

function sayUnknownKey(kind: FileKind, yaml: YamlFile, path: Path, key: string): string {
  const { here, elsewhere } = keysAt(kind, path, at(yaml.value, path));
  const what = `unknown key "${key}"${path.length === 0 ? '' : ` in ${pathName(path)}`}`;
  if (elsewhere.includes(key)) return `${what}: it goes with another kind of ${pathName(path)}`;
  const near = suggest(key, here);
  if (near !== undefined) return `${what}; did you mean "${near}"?`;
  const places = placesOf(kind, key);
  if (places.length > 0) return `${what}; it belongs into ${places.join(' or ')}`;
  return `${what}; known here: ${here.join(', ')}`;
}

function sayValue(issue: Issue, name: string, value: unknown): string {
  const own = ownWords(issue);
  const option = typeof value === 'string' && /^-+[A-Za-z]/.test(value) ? '; it looks like an option' : '';
  if (own !== undefined) return `${name} ${show(value)}${own}${option}`;
  switch (issue.code) {
    case 'too_small':
      if (issue.origin === 'array' || issue.origin === 'string') return `${name} is empty`;
      return `${name} must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}, and is ${String(value)}`;
    case 'too_big':
      if (issue.origin === 'string') return `${name} is longer than ${issue.maximum} characters`;
      return `${name} must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}, and is ${String(value)}`;
    case 'invalid_format':
      return `${name} ${show(value)}has not the right form`;
    default: {
      const options = choices(issue);
      const near = typeof value === 'string' ? suggest(value, options) : undefined;
      const quotes =
        mustBe(issue, '').startsWith('text') && typeof value !== 'object'
          ? `; put it in quotes: "${value}"`
          : '';
      const meant = near === undefined ? quotes : `; did you mean "${near}"?`;
      return `${name} must be ${mustBe(issue, '') || 'something else'}, and is ${kindOf(value)}${meant}`;
    }
  }
}

/** What the issue asks for, after the lead; '' where it does not say. */
function mustBe(issue: Issue, lead: string): string {
  const words = expectations(issue);
  if (words.length === 0) return '';
  const last = words.at(-1);
  return lead + (words.length === 1 ? last : `${words.slice(0, -1).join(', ')} or ${last}`);
}

function expectations(issue: Issue): readonly string[] {
  if (issue.code === 'invalid_type') return [TYPES[issue.expected] ?? issue.expected];
  if (issue.code === 'invalid_value') return issue.values.map(String);
  if (issue.code !== 'invalid_union') return [];
  const options = get(issue, 'options');
  if (Array.isArray(options)) return options.map(String);
  return [...new Set(issue.errors.flat().flatMap(expectations))];
}

function choices(issue: Issue): readonly string[] {
  return expectations(issue).filter((word) => !Object.values(TYPES).includes(word));
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a group of "key: value"',
  record: 'a group of "key: value"',
};

/** The schema's own message; zod's are known by how they begin. */
function ownWords(issue: Issue | undefined): string | undefined {
  if (issue === undefined) return undefined;
  if (!/^(Invalid|Too (small|big)|Unrecognized)/.test(issue.message)) return issue.message;
  if (issue.code !== 'invalid_union') return undefined;
  return issue.errors.map((errors) => ownWords(errors[0])).find((words) => words !== undefined);
}

function show(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const text = String(value);
  return `${JSON.stringify(text.length > 60 ? `${text.slice(0, 59)}…` : text)} `;
}

function kindOf(value: unknown): string {
  if (typeof value === 'string') return show(value).trim();
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a group of "key: value"' : String(value);
}

/** `nodes[1].ssh`; "the file" for the whole. */
function pathName(path: Path): string {
  let name = '';
  for (const segment of path) {
    if (typeof segment === 'number') name += `[${segment}]`;
    else name += name === '' ? String(segment) : `.${String(segment)}`;
  }
  return name === '' ? 'the file' : name;
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(get, value);
}

function present(value: unknown, path: Path): boolean {
  const parent = at(value, path.slice(0, -1));
  const last = path.at(-1);
  return last === undefined || (typeof parent === 'object' && parent !== null && Object.hasOwn(parent, last));
}
