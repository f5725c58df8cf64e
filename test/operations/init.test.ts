import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { init } from '../../src/operations/init.ts';
import { inputs } from '../../src/operations/inputs.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

const clusterFile = join(mkdtempSync(join(tmpdir(), 'firstlight-init-')), 'cluster.yaml');
const world = {
  ...pretendWorld({ signal: new AbortController().signal, live: () => {}, onEvent: () => {} }),
  clusterFile,
};
const written = (...nodes: string[]) => init.run(inputs.init.parse({ nodes, probe: false }), world);

test('a mistake in what was typed is told as typed, and names no place in a file that is not there', async () => {
  const refused = await written('a b=h', 'c=-x').then(
    () => expect.fail('it was written'),
    (error: unknown) => error,
  );
  expect(refused).toMatchObject({
    code: 'bad-input',
    message: expect.stringMatching(
      /^nodes\[0\]\.name "a b" must be letters.*; nodes\[1\]\.ssh "-x" is not a host/,
    ),
    hint: 'Mend what init was given; no file was written.',
  });
  await expect(written('a=h,port=abc')).rejects.toMatchObject({
    message: 'the port "abc" in "a=h,port=abc" is no number',
  });
});

test('what was typed is written, and not over a file that is there', async () => {
  await written('a=me@h,port=2222', 'b=h2,jump=a');
  expect(readFileSync(clusterFile, 'utf8')).toContain('port: 2222');
  await expect(written('a=h')).rejects.toMatchObject({ message: expect.stringContaining('exists already') });
});
