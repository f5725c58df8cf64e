import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { commands } from '../../src/commands.ts';
import { completion } from '../../src/faces/cli/completion.ts';
import { manPage } from '../../src/faces/cli/man.ts';
import { buildProgram } from '../../src/faces/cli/program.ts';
import { type FileKind, schemaText } from '../../src/files/schema.ts';
import { version } from '../../src/world.ts';

const program = buildProgram({
  operations: commands,
  run: async () => undefined,
  version: version(),
  print: () => undefined,
});
const folder = mkdtempSync(join(tmpdir(), 'fl-generated-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const there = (tool: string): boolean =>
  spawnSync(tool, ['--version'], { stdio: 'ignore' }).error === undefined;
const read = (path: string): string => readFileSync(path, 'utf8');

describe('what npm run docs writes', () => {
  it.each<FileKind>(['cluster', 'recipe', 'policy'])(
    'the schema of the %s file is the one that is checked in',
    (kind) => {
      expect(read(`schema/${kind}.schema.json`)).toBe(schemaText(kind));
    },
  );

  it('the manual page is the one that is checked in', () => {
    expect(read('man/firstlight.1')).toBe(manPage(program, version()));
  });

  it.runIf(there('groff'))('the manual page is clean to groff', () => {
    const said = spawnSync('groff', ['-man', '-ww', '-Tascii', 'man/firstlight.1'], { encoding: 'utf8' });
    expect(said.stderr).toBe('');
    // Bold is printed by overstriking.
    const page = said.stdout.replace(/.\x08/g, '');
    for (const command of program.commands) expect(page).toContain(`firstlight ${command.name()}`);
  });

  it('every key of both files says what it is', () => {
    const silent: string[] = [];
    const walk = (schema: unknown, path: string): void => {
      if (typeof schema !== 'object' || schema === null) return;
      for (const [key, value] of Object.entries(schema)) {
        if (key === 'properties')
          for (const [name, child] of Object.entries(value)) {
            const inside = typeof child === 'object' && child !== null && 'properties' in child;
            const fixed = typeof child === 'object' && child !== null && 'const' in child;
            const said = typeof child === 'object' && child !== null && 'description' in child;
            // Groups say it by their keys, and so do words whose place says it.
            if (!said && !inside && !fixed) silent.push(`${path}${name}`);
          }
        walk(value, key === 'properties' ? path : key === 'items' ? `${path}` : path);
      }
    };
    walk(JSON.parse(schemaText('cluster')), 'cluster ');
    walk(JSON.parse(schemaText('recipe')), 'recipe ');
    const plain = ['recipe env', 'recipe prompt', 'recipe expect', 'recipe in', 'recipe image', 'recipe run'];
    expect(silent.filter((name) => !plain.includes(name))).toEqual([]);
  });
});

/** What completes a line whose last word is being typed; `files` where it is files. */
const OFFERS: readonly (readonly [string, readonly string[] | 'files'])[] = [
  ['firstlight lab ', ['up', 'down', 'story', 'list']],
  ['firstlight lab st', ['story']],
  ['firstlight lab story ', []],
  ['firstlight fit --engine ', ['vllm', 'sglang']],
  ['firstlight adopt --engine vllm-', ['vllm-ray']],
  ['firstlight --plain --cluster c.yaml lab do', ['down']],
  ['firstlight completion ', ['bash', 'zsh', 'fish']],
  ['firstlight help comp', ['completion']],
  ['firstlight serve --port ', []],
  ['firstlight consent ', []],
  ['firstlight consent 14 ', []],
  ['firstlight up ', 'files'],
  ['firstlight --cluster ', 'files'],
  ['firstlight diagnose --facts ', 'files'],
  ['firstlight --plain diagnose ', 'files'],
];

describe('a completion script, really sourced', () => {
  const here = (): readonly string[] => readdirSync(folder).sort();
  const wanted = (offers: readonly string[] | 'files') => (offers === 'files' ? here() : [...offers].sort());
  const script = (shell: string): string => {
    const path = join(folder, `completion.${shell}`);
    writeFileSync(path, completion(program, shell) ?? '');
    return path;
  };
  const asked = (shell: string, args: readonly string[]): string => {
    const ran = spawnSync(shell, [...args], {
      encoding: 'utf8',
      cwd: folder,
      env: { PATH: process.env['PATH'] },
    });
    expect(ran.stderr).toBe('');
    return ran.stdout.trim();
  };

  it.runIf(there('bash'))('completes commands and flags in bash', () => {
    const complete = (words: string): string =>
      asked('bash', [
        '--norc',
        '-c',
        `source ${script('bash')}; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _firstlight; echo "\${COMPREPLY[*]}"`,
      ]);
    expect(complete('firstlight sta')).toBe('status');
    expect(complete('firstlight up --repl')).toBe('--replace');
    expect(complete('firstlight diagnose --fo')).toBe('--follow');
    expect(complete('firstlight up completion')).toBe('completion.bash');
    expect(complete('firstlight adopt --engine = sg')).toBe('sglang');
    for (const [line, offers] of OFFERS) {
      const words = line.endsWith(' ') ? `${line}''` : line;
      const given = complete(words)
        .split(' ')
        .filter((word) => word !== '');
      expect(given.sort(), line).toEqual(wanted(offers));
    }
  });

  it.runIf(there('zsh'))('completes commands and flags in zsh', () => {
    const complete = (words: string): string =>
      asked('zsh', [
        '-f',
        '-c',
        `autoload -Uz compinit && compinit -D -u; source ${script('zsh')}; [[ -n $_comps[firstlight] ]] || echo none; setopt ksh_arrays sh_word_split; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _firstlight; echo "\${COMPREPLY[*]}"`,
      ]);
    // zsh itself keeps what fits the beginning.
    expect(complete('firstlight sta').split(' ')).toContain('status');
    expect(complete('firstlight up --repl').split(' ')).toEqual(
      expect.arrayContaining(['--replace', '--wait']),
    );
    for (const [line, offers] of OFFERS) {
      if (!line.endsWith(' ')) continue;
      const given = complete(`${line}''`)
        .split(' ')
        .filter((word) => word !== '');
      expect(given.sort(), line).toEqual(wanted(offers));
    }
  });

  it.runIf(there('fish'))('completes commands and flags in fish', () => {
    const complete = (line: string): string =>
      asked('fish', ['--no-config', '-c', `source ${script('fish')}; complete -C '${line}'`]);
    expect(complete('firstlight sta')).toMatch(/^status\t/);
    expect(complete('firstlight up --repl')).toMatch(/^--replace\t/);
    for (const [line, offers] of OFFERS) {
      const given = complete(line)
        .split('\n')
        .map((one) => one.split('\t')[0] ?? '')
        .filter((one) => one !== '');
      expect(given.sort(), line).toEqual(wanted(offers));
    }
  });
});
