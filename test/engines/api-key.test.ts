import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { engines } from '../../src/knowledge/engines/index.ts';
import { spark, sparkRecipe } from '../pretend/facts.ts';

test('SGLang gets its key through a pipe that only its user can read, whatever characters it holds', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fl-key-'));
  const program = join(folder, 'sglang');
  writeFileSync(
    program,
    `#!/bin/sh\nfor last; do :; done\nstat -c '%F %a' "$last" >${folder}/mode\ncat "$last" >${folder}/seen.yaml\nprintf '%s' "$FIRSTLIGHT_API_KEY" >${folder}/left\n`,
    { mode: 0o755 },
  );
  const { argv } = engines.sglang.rank({
    recipe: sparkRecipe({
      run: { in: 'process', command: { sglang: program } },
      serve: { apiKey: { env: 'MY_KEY' } },
    }),
    rank: 0,
    addresses: ['192.168.200.12', '192.168.200.13'],
    interfaceName: undefined,
    rdmaDevices: [],
    memoryFraction: undefined,
    facts: spark('a'),
  });
  const [shell = 'sh', ...words] = argv;
  const key = `a'b"c: #d $e \\f`;
  const ran = spawnSync(shell, words, {
    env: { PATH: process.env['PATH'], TMPDIR: folder, FIRSTLIGHT_API_KEY: key },
    encoding: 'utf8',
  });
  expect(ran.stderr).toBe('');
  expect(parse(readFileSync(join(folder, 'seen.yaml'), 'utf8'))).toEqual({ 'api-key': key });
  expect(readFileSync(join(folder, 'mode'), 'utf8')).toBe('fifo 600\n');
  expect(readFileSync(join(folder, 'left'), 'utf8')).toBe('');
  rmSync(folder, { recursive: true, force: true });
});
