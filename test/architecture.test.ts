import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

/** Packages by the folders that may import them; ARCHITECTURE.md names folders, and zod for `domain`. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  zod: ['domain', 'files', 'operations', 'faces/cli', 'faces/http', 'faces/mcp', 'lab', 'lab-run.ts'],
  '@modelcontextprotocol/sdk': ['faces/mcp'],
  yaml: ['files', 'lab'],
  libsql: ['journal'],
  ssh2: ['lab'],
  commander: ['faces/cli'],
  nanotar: ['files'],
  preact: ['faces/web'],
  'preact/hooks': ['faces/web'],
  uplot: ['faces/web'],
  'uplot/dist/uPlot.min.css': ['faces/web'],
};

/** Files that are started as processes of their own. */
const PROGRAMS = ['main.ts', 'lab/daemon-main.ts', 'lab/stand-in.ts', 'lab/engine/main.ts'];

/** Files that read in at run time what would slow every other command's start. */
const LATE = ['lab-operation.ts', 'serve-operation.ts', 'mcp-operation.ts'];

type Row = { readonly folder: string; readonly may: readonly string[]; readonly io: string };
type Import = { readonly file: string; readonly from: string; readonly typeOnly: boolean };

const rows = table(readFileSync('ARCHITECTURE.md', 'utf8'));
const files = new Map(
  readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .sort()
    .map((name) => [name, readFileSync(join('src', name), 'utf8')]),
);
const imports: readonly Import[] = [...files].flatMap(([file, text]) =>
  importsOf(text).map((found) => ({ file, ...found })),
);

/** The rows of the first table that has a column "may import". A row for several files is one row each. */
function table(markdown: string): readonly Row[] {
  const found: Row[] = [];
  for (const line of markdown.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim());
    const [, names = '', , may = '', io = ''] = cells;
    if (cells.length < 6 || !names.startsWith('`')) continue;
    for (const [, name = ''] of names.matchAll(/`([^`]+)`/g)) {
      const before = found.map((row) => row.folder);
      found.push({
        folder: name,
        may: may === 'all of the above' ? before : may.split(',').map((word) => word.trim()),
        io,
      });
    }
  }
  return found;
}

/** Specifiers of all static imports and re-exports; they begin their line, text inside template strings aside. */
function importsOf(text: string): readonly Omit<Import, 'file'>[] {
  const statements = text.matchAll(
    /^(?:import|export)\b( type\b)?[^;'"`=()]*?\bfrom '([^'\n]+)';$|^import '([^'\n]+)';$/gm,
  );
  return [...statements].map(([, type, named, bare]) => ({
    from: named ?? bare ?? '',
    typeOnly: type !== undefined,
  }));
}

/** The row that a file of src/ belongs to: the longest folder that it lies in. */
function rowOf(file: string): Row | undefined {
  return rows
    .filter(({ folder }) => file === folder || file.startsWith(`${folder}/`))
    .sort((a, b) => b.folder.length - a.folder.length)[0];
}

/** The file of src/ that a relative import means; undefined for a package. */
function target({ file, from }: Import): string | undefined {
  return from.startsWith('.') ? relative('.', join(dirname(file), from)) : undefined;
}

function packageOf(from: string): string | undefined {
  if (from.startsWith('.') || from.startsWith('node:')) return undefined;
  return from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/');
}

function lines(pattern: RegExp, mayHave: (file: string) => boolean): readonly string[] {
  return [...files].flatMap(([file, text]) =>
    mayHave(file) || !pattern.test(text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, '')) ? [] : [file],
  );
}

test('the table of ARCHITECTURE.md is read, and the imports too', () => {
  expect(rows.map((row) => row.folder)).toEqual(
    expect.arrayContaining(['domain', 'knowledge', 'operations', 'lab', 'faces/cli', 'world.ts', 'main.ts']),
  );
  expect(rows.find((row) => row.folder === 'operations')?.may).toContain('journal');
  expect(
    importsOf("import {\n  a,\n} from './a.ts';\nimport 'b';\nexport type { C } from '../c.ts';\n"),
  ).toEqual([
    { from: './a.ts', typeOnly: false },
    { from: 'b', typeOnly: false },
    { from: '../c.ts', typeOnly: true },
  ]);
  expect(imports.length).toBeGreaterThan(20);
});

test('every file lies in a folder that the table knows', () => {
  expect([...files.keys()].filter((file) => rowOf(file) === undefined)).toEqual([]);
});

test('every import of another folder is one that the table allows', () => {
  const wrong = imports.filter((one) => {
    const from = rowOf(one.file);
    const path = target(one);
    if (path === undefined || from === undefined || from.may.includes('all')) return false;
    const to = rowOf(path);
    return to?.folder !== from.folder && !from.may.some((may) => path === may || path.startsWith(`${may}/`));
  });
  expect(wrong).toEqual([]);
});

test('every import names a file that exists, with its ending', () => {
  const wrong = imports.filter((one) => {
    const path = target(one);
    return path !== undefined && !path.endsWith('.css') && !files.has(path);
  });
  expect(wrong).toEqual([]);
});

test('packages are imported where they belong', () => {
  const wrong = imports.filter(({ file, from }) => {
    const name = packageOf(from);
    return name !== undefined && !PACKAGES[name]?.includes(rowOf(file)?.folder ?? '');
  });
  expect(wrong).toEqual([]);
});

test('what decides touches neither the system nor the clock', () => {
  const pure = rows.filter((row) => row.io === 'none').map((row) => row.folder);
  expect(pure).toEqual(['domain', 'knowledge', 'planning', 'diagnosis']);
  const wrong = imports.filter(
    ({ file, from }) => from.startsWith('node:') && pure.includes(rowOf(file)?.folder ?? ''),
  );
  expect(wrong).toEqual([]);
  const clocks = /\b(Date\.now|new Date\(\)|performance\.now|Math\.random|setTimeout|setInterval|process\.)/;
  expect(lines(clocks, (file) => !pure.includes(rowOf(file)?.folder ?? ''))).toEqual([]);
});

test('operations act through the World alone', () => {
  const system = /^node:(fs|child_process|net|http|https|dns|os|tty|readline)\b/;
  const wrong = imports.filter(({ file, from }) => file.startsWith('operations/') && system.test(from));
  expect(wrong).toEqual([]);
});

test('only hands start processes: remote and lab', () => {
  const wrong = imports.filter(
    ({ file, from }) => from === 'node:child_process' && !/^(remote|lab)\//.test(file),
  );
  expect(wrong).toEqual([]);
});

test('only faces and programs print, and only programs exit', () => {
  const program = (file: string) => PROGRAMS.includes(file);
  const prints = /\bconsole\.|\bprocess\.(stdout|stderr)\b/;
  expect(lines(prints, (file) => file.startsWith('faces/') || program(file))).toEqual([]);
  expect(lines(/\bprocess\.exit\(/, program)).toEqual([]);
});

test('only what few commands need is imported at run time, and nothing is a default export', () => {
  expect(lines(/\bimport\(['"`]/, (file) => LATE.includes(file))).toEqual([]);
  expect(lines(/^export default\b/m, () => false)).toEqual([]);
});

test('no imports go in a circle, types aside', () => {
  const edges = new Map<string, readonly string[]>();
  for (const file of files.keys()) {
    const targets = imports.filter((one) => one.file === file && !one.typeOnly).map(target);
    edges.set(
      file,
      targets.filter((path) => path !== undefined),
    );
  }
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, way: readonly string[]): void => {
    const from = way.indexOf(file);
    if (from !== -1) circles.push([...way.slice(from), file].join(' -> '));
    if (from !== -1 || done.has(file)) return;
    for (const next of edges.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of edges.keys()) visit(file, []);
  expect(circles).toEqual([]);
});

test('shell scripts of probes, lock and undo reach the system through the root prefix', () => {
  const folders = /^(knowledge\/probes\/|planning\/|remote\/(lock|undo)|domain\/node-folder)/;
  // What is said to a person may name a path.
  const SAID = /\becho (?:"[^"\n]*"|'[^'\n]*')/g;
  const bare = /(?:^|[\s"'(=<>])\/(?:proc|sys|etc|tmp|var|run|usr|dev\/shm)\b/;
  const wrong = [...files].flatMap(([file, text]) => {
    const scripts = folders.test(file) ? text.matchAll(/String\.raw`((?:[^`\\]|\\.)*)`/g) : [];
    return [...scripts]
      .flatMap(([, script = '']) => script.replaceAll('"$R"', '$R').replace(SAID, 'echo').split('\n'))
      .filter((line) => bare.test(line.replace(/^\s*#.*/, '')))
      .map((line) => `${file}: ${line.trim()}`);
  });
  expect(wrong).toEqual([]);
});
