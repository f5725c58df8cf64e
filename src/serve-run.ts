import { statSync } from 'node:fs';
import { join } from 'node:path';
import { announce, firstAddress } from './faces/http/announce.ts';
import { serveOn } from './faces/http/serve.ts';
import { newWork } from './faces/mcp/client.ts';
import { mcpOverHttp } from './faces/mcp/http.ts';
import { operations } from './operations/index.ts';
import type { Answer } from './operations/operation.ts';
import type { World } from './operations/world.ts';
import { openPage } from './remote/open-page.ts';
import { makeWorld } from './world.ts';

/** `firstlight serve`, joined: the page's folder, a World that follows the cluster file, and the agents' face. */
export async function runServe(input: Parameters<typeof serveOn>[0], outer: World): Promise<Answer> {
  const world = followFile(outer);
  const work = newWork();
  const answer = await serveOn(input, outer, {
    operations,
    world,
    mcp: mcpOverHttp({ world, readOnly: input.readOnly, version: outer.version, work }),
    pageFolder: join(import.meta.dirname, 'faces', 'web'),
    told: (addresses) => {
      announce(addresses, process.argv.includes('--json'));
      if (addresses.browse) openPage(firstAddress(addresses));
    },
  });
  await work.over();
  return answer;
}

/** The World of the cluster file as it stands there: a server lives longer than one reading of it. */
export function followFile(outer: World): () => World {
  let world = outer;
  let stamp = stampOf(outer.clusterFile);
  return () => {
    const now = stampOf(outer.clusterFile);
    if (now === stamp) return world;
    stamp = now;
    world = makeWorld({
      cluster: outer.clusterFile,
      sudoPasswordFiles: [],
      live: outer.live,
      onEvent: outer.told,
      signal: outer.signal,
      env: {},
      shared: outer,
    });
    return world;
  };
}

function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? 'none' : `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
}
