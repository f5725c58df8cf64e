import { describe, expect, it, test } from 'vitest';
import { commands } from '../../src/commands.ts';
import { commandLines } from '../../src/faces/cli/help.ts';
import { width } from '../../src/faces/cli/width.ts';
import { run } from './run-cli.ts';

const PAGES = [[], ...commands.map(({ name }) => [name]), ['completion']];

const helpAt = async (columns: number, words: readonly string[]): Promise<string> =>
  (await run([...words, '--help'], commands, { env: { COLUMNS: String(columns) } })).stdout;

describe.each([50, 60, 79, 80, 100, 120])('help in %i columns', (columns) => {
  it.each(PAGES)('of firstlight %s breaks at spaces alone', async (...words) => {
    const text = await helpAt(columns, words);
    expect(text).toContain('Usage: firstlight');
    for (const line of text.split('\n'))
      if (/\S\s+\S/.test(line)) expect(width(line), line).toBeLessThanOrEqual(columns);
    // Nothing is lost, and nothing torn: the same words stand in it as in the widest.
    const wordsOf = (help: string): readonly string[] => help.replaceAll(' \\\n', ' ').split(/\s+/).sort();
    expect(wordsOf(text)).toEqual(wordsOf(await helpAt(120, words)));
  });
});

test('no word of the help is longer than sixty columns', async () => {
  for (const words of PAGES)
    for (const word of (await helpAt(120, words)).split(/\s+/)) expect(word.length, word).toBeLessThan(56);
});

test('nonsense in COLUMNS is passed over', async () => {
  const { stdout } = await run(['--help'], commands, { env: { COLUMNS: 'wide' } });
  expect(stdout).toBe(await helpAt(80, []));
});

test('a command that does not fit goes on behind a backslash, with each flag beside its value', () => {
  expect(commandLines('firstlight up recipe.yaml', 60)).toBe('  firstlight up recipe.yaml');
  expect(
    commandLines('firstlight adopt --rank 0=spark-a:4711 --rank 1=spark-b:worker --engine sglang', 60),
  ).toBe(
    ['  firstlight adopt --rank 0=spark-a:4711 \\', '    --rank 1=spark-b:worker --engine sglang'].join('\n'),
  );
});
