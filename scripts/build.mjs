// Compiles src/ to dist/, makes one file of the program, and marks it as executable; `npm ci` runs this through
// `prepare`. See docs/decisions/0010-one-file.md.
import { spawnSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { build } from 'vite';

rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'], {
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);
await bundle();
await build({ configFile: 'vite.config.ts', logLevel: 'warn' }); // the page, to dist/faces/web
chmodSync('dist/main.js', 0o755);

/** All that main.js reads in becomes dist/main.js; what is read in at run time stays in files beside it. */
async function bundle() {
  const dist = join(process.cwd(), 'dist');
  const program = await rolldown({
    input: join(dist, 'main.js'),
    platform: 'node',
    // Parts of these are compiled for the machine.
    external: ['libsql', 'ssh2'],
    plugins: [
      {
        name: 'one-language',
        // zod's messages in fifty languages: ours are our own.
        load: (id) =>
          id.endsWith('/zod/v4/locales/index.js') ? "export { default as en } from './en.js';" : null,
      },
      {
        name: 'own-place',
        // A module that looks for files beside itself finds them where it was compiled to.
        transform(code, id) {
          const folder = relative(dist, join(id, '..'));
          if (folder.startsWith('..') || !code.includes('import.meta.dirname')) return null;
          return code.replaceAll(
            'import.meta.dirname',
            `(import.meta.dirname + ${JSON.stringify(`/${folder}`)})`,
          );
        },
      },
    ],
  });
  await program.write({
    dir: dist,
    format: 'esm',
    entryFileNames: 'main.js',
    chunkFileNames: '[name]-part.js',
  });
}
