// Compiles src/ to dist/ and marks the entry as executable; `npm ci` runs this through `prepare`.
import { spawnSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'], {
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);
chmodSync('dist/main.js', 0o755);
