import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Addresses } from '../../../src/faces/http/announce.ts';
import { serveOn } from '../../../src/faces/http/serve.ts';
import { newWork } from '../../../src/faces/mcp/client.ts';
import { mcpOverHttp } from '../../../src/faces/mcp/http.ts';
import { inputs } from '../../../src/operations/inputs.ts';
import { makeWorld } from '../../../src/world.ts';

it('a server whose journal cannot be read says so to who asks for a run, and ends when it is told to', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fl-no-journal-'));
  const home = join(folder, 'home');
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, 'journal.db'), 'no journal\n'.repeat(999));
  writeFileSync(
    join(folder, 'cluster.yaml'),
    'cluster: sparks\nnodes:\n  - {name: spark-a, ssh: 127.0.0.1}\n',
  );
  const stop = new AbortController();
  const world = makeWorld({
    cluster: join(folder, 'cluster.yaml'),
    home,
    sudoPasswordFiles: [],
    live: () => {},
    onEvent: () => {},
    signal: stop.signal,
    env: {},
  });
  try {
    let over: Promise<unknown> = Promise.resolve();
    const addresses = await new Promise<Addresses>((told, failed) => {
      over = serveOn(inputs.serve.parse({ port: 0, open: false }), world, {
        operations: [],
        world: () => world,
        mcp: mcpOverHttp({ world: () => world, readOnly: false, version: '0', work: newWork() }),
        pageFolder: join(folder, 'no-page'),
        told,
      });
      over.catch(failed);
    });
    const answer = await fetch(new URL('/api/runs', addresses.base), {
      headers: { Authorization: `Bearer ${addresses.write}` },
    });
    expect(answer.ok).toBe(false);
    expect(await answer.text()).toContain('is not a journal');
    stop.abort(new Error('the test is over'));
    await over;
  } finally {
    world.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
