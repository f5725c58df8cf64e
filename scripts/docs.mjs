// Writes what is generated and checked in: the schemas of the files people write, the manual page, the list of
// causes and the catalogue of failures.
// Needs a build: `npm run docs` does both. A test holds these files equal to what their makers say.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { commands } from '../dist/commands.js';
import { failuresPage } from '../dist/diagnosis/failures-page.js';
import { manPage } from '../dist/faces/cli/man.js';
import { buildProgram } from '../dist/faces/cli/program.js';
import { schemaText } from '../dist/files/schema.js';
import { causesPage } from '../dist/knowledge/causes-page.js';
import { version } from '../dist/world.js';

mkdirSync('schema', { recursive: true });
for (const kind of ['cluster', 'recipe', 'policy'])
  writeFileSync(`schema/${kind}.schema.json`, schemaText(kind));
mkdirSync('man', { recursive: true });
const program = buildProgram({
  operations: commands,
  run: async () => {},
  version: version(),
  print: () => {},
});
writeFileSync('man/firstlight.1', manPage(program, version()));
writeFileSync('docs/causes.md', causesPage());
writeFileSync('docs/failures.md', failuresPage(samples('test/samples/corpus/')));

/** Logs by name of every case in a folder, held-back ones aside; the same as the test reads. */
function samples(root) {
  return readdirSync(root)
    .filter((name) => name !== 'held-back')
    .map((name) => {
      const logs = readdirSync(`${root}${name}`).filter((file) => file.endsWith('.log'));
      return Object.fromEntries(
        logs.map((file) => [file.replace('.log', ''), readFileSync(`${root}${name}/${file}`)]),
      );
    });
}
