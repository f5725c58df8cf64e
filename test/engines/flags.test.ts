import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type EngineName, softwareOf } from '../../src/domain/recipe.ts';
import { engines } from '../../src/knowledge/engines/index.ts';
import { spark, sparkRecipe } from '../pretend/facts.ts';

const FOLDER = new URL('../samples/engines/flags/', import.meta.url);
type Flags = { readonly engine: string; readonly version: string; readonly flags: readonly string[] };
const read: readonly Flags[] = readdirSync(FOLDER).map((name) =>
  JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')),
);

/** Every flag that firstlight itself may write: a recipe that asks for all there is. */
function written(engine: EngineName): readonly string[] {
  const recipe = sparkRecipe({
    layout: { nodes: 2, tensor: 2, pipeline: 2, expert: 2, data: 2 },
    serve: { apiKey: { env: 'KEY' } },
    args: {},
  });
  const words = [0, 1].flatMap((rank) => {
    const command = engines[engine].rank({
      recipe,
      rank,
      addresses: ['192.168.200.12', '192.168.200.13'],
      interfaceName: 'enp1s0f0np0',
      rdmaDevices: ['rocep1s0f0'],
      memoryFraction: 0.8,
      facts: spark('a'),
    });
    return command.argv.slice(command.argv.indexOf('serve') + 1);
  });
  return [...new Set(words.filter((word) => word.startsWith('--')).map((word) => word.slice(2)))];
}

// Read out of the engines' own packages by scripts/engine-flags.py: as pip has them, and about half a year older.
for (const { engine, version, flags } of read) {
  const names: readonly EngineName[] = engine === 'sglang' ? ['sglang'] : ['vllm', 'vllm-ray'];
  for (const name of names)
    test(`${engine} ${version} knows every flag that is written for ${name}`, () => {
      expect(softwareOf(name)).toBe(engine);
      const mine = written(name);
      expect(mine.length).toBeGreaterThan(8);
      expect(mine.filter((flag) => !flags.includes(flag))).toEqual([]);
    });
}

test('there are two versions of each engine to hold them to', () => {
  for (const engine of ['sglang', 'vllm'])
    expect(
      new Set(read.filter((one) => one.engine === engine).map((one) => one.version)).size,
    ).toBeGreaterThan(1);
});
