import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const MAIN = join(resolve(process.env['FIRSTLIGHT_DIST'] ?? 'dist'), 'main.js');
const AS = ['--reuid', '54321', '--regid', '54321', '--clear-groups'];

/** Only root may become somebody else, and only where the build can be read by others. */
const may = spawnSync('setpriv', [...AS, 'test', '-r', MAIN]).status === 0;

test.runIf(may)('a user for whom the machine has no name may use it too', () => {
  const said = spawnSync('setpriv', [...AS, process.execPath, MAIN, 'lab', 'list'], { encoding: 'utf8' });
  expect(said.stderr).toBe('');
  expect(said.status).toBe(0);
});
